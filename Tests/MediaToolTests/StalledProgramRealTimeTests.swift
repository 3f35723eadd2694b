import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// Programs that stand still for 80 ms twice a second, as under a CPU quota: what was due is made up for.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime)) struct StalledProgramRealTimeTests {
    private static let seconds = 12
    private static let stallCount = 18

    private func leg(_ run: ToolRun) throws -> [String: Any] {
        try #require((try run.json()["legs"] as? [[String: Any]])?.first)
    }

    /// Lets `sender` speak to `receiver`, one of which stands still again and again.
    private func run(stalling isSender: Bool) throws -> (sent: [String: Any], received: [String: Any]) {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let receiver = try ToolRun(
            ["receive", "--port", "\(port)", "--codec", "PCMU", "--output", scratch.file("heard.wav"), "--json"]
        )
        FreePort.waitUntilTaken(port)
        let sender = try ToolRun(
            ["send", "--to", "127.0.0.1:\(port)", "--codec", "PCMU", "--seconds", "\(Self.seconds)", "--json"]
        )
        let stalled = isSender ? sender : receiver
        for _ in 0..<Self.stallCount {
            pass(.milliseconds(420))
            stalled.signal(SIGSTOP)
            pass(.milliseconds(80))
            stalled.signal(SIGCONT)
        }
        #expect(sender.wait() == 0 && receiver.wait() == 0)
        return (
            try #require(try leg(sender)["sent"] as? [String: Any]),
            try #require(try leg(receiver)["received"] as? [String: Any])
        )
    }

    @Test(arguments: [true, false]) func `no sample is left out, and little is invented`(stallsSender: Bool) throws {
        let (sent, received) = try run(stalling: stallsSender)
        // The whole signal: a packet for each 20 ms.
        #expect((sent["packets"] as? Int ?? 0) >= Self.seconds * 50)
        #expect(received["packets"] as? Int == sent["packets"] as? Int)
        #expect(received["lost"] as? Int == 0)
        let concealed = try #require(received["concealedMs"] as? Double)
        #expect(concealed <= 250, "\(concealed) ms concealed over \(Self.stallCount) stalls")
    }
}
