import SIPTesting
import TestSupport
import Testing

@testable import SIP

/// Conference servers that write badly.
@Suite struct RoomHostileTests {
    private static let list = """
        <resource-lists xmlns="urn:ietf:params:xml:ns:resource-lists"><list><entry uri="sip:bob@x"/></list></resource-lists>
        """

    /// An invitation, the room, a text, and its end; the message of one step is spoiled, and what does not come about is left out.
    private func run(_ step: Int, _ spoil: @escaping ([UInt8]) -> [UInt8]) throws {
        var server = try ConferenceServer()
        var invite: SIPMessage?
        let steps: [(inout ConferenceServer) throws -> Void] = [
            { invite = try $0.invite(body: Self.list) },
            { server in
                let handle = try server.handle()
                server.world.with(0) { agent, now in agent.acceptRoom(handle, at: now) }
                server.world.run(for: .milliseconds(50))
                if let invite { try server.acknowledge(invite) }
            },
            { try $0.answer("SUBSCRIBE", 200, ("Expires", "3600")) },
            { try $0.notify(ConferenceServer.document("full", 0, subject: "Tea", ConferenceServer.user("sip:a@x"))) },
            { try $0.notify(ConferenceServer.document("partial", 1, ConferenceServer.user("sip:b@x"))) },
            { try $0.message(from: "\"Bob\" <sip:bob@x;gr=1>", "Hello") },
            { try $0.within(.bye, ("Reason", "SIP;cause=200")) },
        ]
        for (index, action) in steps.enumerated() {
            server.spoil = index == step ? spoil : { $0 }
            try? action(&server)
        }
        // Whatever has come of it, nothing is left once it is forgotten.
        let rooms = server.world.nodes[0].agent.rooms(of: nil)
        server.world.with(0) { agent, now in for room in rooms { agent.forgetRoom(room, at: now) } }
        for handle in server.world.nodes[0].agent.calls.names {
            server.world.with(0) { agent, now in agent.hangUp(handle, at: now) }
        }
        server.expectEmpty()
    }

    @Test(arguments: 0..<7) func `a message that is cut anywhere leaves nothing behind`(step: Int) throws {
        for count in thorough(stride(from: 0, to: 1200, by: 13), each: 5) {
            try run(step) { Array($0.prefix(count)) }
        }
    }

    @Test(arguments: 0..<7) func `a message with another byte anywhere leaves nothing behind`(step: Int) throws {
        for place in thorough(stride(from: 0, to: 1200, by: 17), each: 5) {
            for byte in [0x00, 0x0A, 0x22, 0x3C, 0x39] as [UInt8] {
                try run(step) { bytes in
                    guard bytes.indices.contains(place) else { return bytes }
                    var changed = bytes
                    changed[place] = byte
                    return changed
                }
            }
        }
    }
}
