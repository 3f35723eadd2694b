import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// Programs that stand still for 80 ms twice a second, as under a CPU quota: what was due is made up for.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine) struct StalledProgramRealTimeTests {
    private static let seconds = thorough(12, quick: 6)
    private static let stallCount = seconds * 3 / 2

    /// One that speaks and one that hears, one of which stands still again and again.
    private struct Pair {
        let stallsSender: Bool
        let sender: ToolRun
        let receiver: ToolRun
        private let scratch: Scratch

        init(stallsSender: Bool) throws {
            self.stallsSender = stallsSender
            scratch = try Scratch()
            let port = try FreePort.pair()
            let file = scratch.file("heard.wav")
            receiver = try ToolRun(["receive", "--port", "\(port)", "--codec", "PCMU", "--output", file, "--json"])
            FreePort.waitUntilTaken(port)
            sender = try ToolRun(
                [
                    "send", "--to", "127.0.0.1:\(port)", "--codec", "PCMU", "--seconds",
                    "\(StalledProgramRealTimeTests.seconds)", "--json",
                ]
            )
        }

        var stalled: ToolRun { stallsSender ? sender : receiver }

        /// What `run` reports of `side`.
        func report(_ run: ToolRun, _ side: String) throws -> [String: Any] {
            let leg = try #require((try run.json()["legs"] as? [[String: Any]])?.first)
            return try #require(leg[side] as? [String: Any])
        }
    }

    @Test func `no sample is left out, and little is invented`() throws {
        let pairs = try [true, false].map { try Pair(stallsSender: $0) }
        for _ in 0..<Self.stallCount {
            pass(.milliseconds(420))
            for pair in pairs { pair.stalled.signal(SIGSTOP) }
            pass(.milliseconds(80))
            for pair in pairs { pair.stalled.signal(SIGCONT) }
        }
        for pair in pairs {
            let stalled = pair.stallsSender ? "sender" : "receiver"
            #expect(pair.sender.wait() == 0 && pair.receiver.wait() == 0)
            let sent = try pair.report(pair.sender, "sent")
            let received = try pair.report(pair.receiver, "received")
            // The whole signal: a packet for each 20 ms.
            #expect((sent["packets"] as? Int ?? 0) >= Self.seconds * 50, "\(stalled) stalled")
            #expect(received["packets"] as? Int == sent["packets"] as? Int, "\(stalled) stalled")
            #expect(received["lost"] as? Int == 0, "\(stalled) stalled")
            let concealed = try #require(received["concealedMs"] as? Double)
            // 250 ms over 18 stalls.
            let limit = 250.0 / 18 * Double(Self.stallCount)
            #expect(concealed <= limit, "\(stalled) stalled: \(concealed) ms concealed over \(Self.stallCount) stalls")
        }
    }
}
