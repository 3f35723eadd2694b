import CallBasics
import Foundation
import MediaEngine
import SDP
import SIP
import SIPTransport
import TestSupport
import Testing

/// Calls of the tool with somebody who wants to be seen.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct SIPVideoRealTimeTests {
    @Test func `video that the other side wants in a call is refused, and the sound goes on`() async throws {
        let scratch = try Scratch()
        let port = try UDPSocket(bind: .loopback(port: 0))
        let pcmu = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        let audio = MediaConfiguration(port: port.localAddress.port, formats: [pcmu])
        let vp8 = PayloadFormat(payloadType: 96, encodingName: "VP8", clockRate: 90_000)
        var video = MediaConfiguration(port: port.localAddress.port, formats: [vp8])
        video.kind = "video"
        let sound = SessionConfiguration(address: "127.0.0.1", media: [audio])
        let both = SessionConfiguration(address: "127.0.0.1", media: [audio, video])

        let identity = NameAddress(try SIPURI("sip:bob@127.0.0.1"))
        let endpoint = SIPEndpoint(UserAgent(AgentConfiguration(identity: identity), seed: 1)) { _ in .failure }
        let own = try await endpoint.open(at: .loopback(port: 0), [.udp])
        let calling = try ToolRun([
            "sip", "call", "sip:bob@\(own)", "--refuse-video", "--output", scratch.file("heard.wav"), "--seconds", "1",
            "--json",
        ])
        var agreed: [AgreedSession] = []
        for await event in endpoint.events {
            switch event {
            case .incoming(let handle, _):
                try await endpoint.perform { agent, now in try agent.answer(handle, sound, at: now) }
            case .established(let handle):
                await endpoint.perform { agent, now in agent.change(handle, to: both, at: now) }
            case .agreed(_, let session): agreed.append(session)
            case .ended: await endpoint.close()
            default: break
            }
        }
        #expect(calling.wait() == 0, "\(calling.errors)")
        #expect(try calling.json()["status"] as? String == "ok")
        let last = try #require(agreed.last)
        #expect(agreed.count == 2 && last.media.map(\.kind) == ["audio"])
        #expect(last.remote.media.map(\.kind) == ["audio", "video"])
        #expect(last.remote.media.map { $0.port == 0 } == [false, true])
    }
}
