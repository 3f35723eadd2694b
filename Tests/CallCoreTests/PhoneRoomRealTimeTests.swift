import CallBasics
import MediaEngine
import SIP
import SIPTransport
import TestSupport
import Testing

@testable import CallCore

/// Phones in a room of a conference server, over sockets of 127.0.0.1.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct PhoneRoomRealTimeTests {
    private func phone() async throws -> Phone {
        var configuration = PhoneConfiguration()
        configuration.local = .loopback(port: 0)
        configuration.transports = [.udp]
        return try await Phone(CallEngine(.virtual()), configuration)
    }

    /// What a phone tells until something is the case.
    private func wait<Found>(_ phone: Phone, for find: (PhoneEvent) -> Found?) async throws -> Found {
        for await event in phone.events { if let found = find(event) { return found } }
        throw PhoneError(.state, "It was not told.")
    }

    private func room(_ event: PhoneEvent, _ isWanted: (PhoneRoom) -> Bool) -> PhoneRoom? {
        if case .room(let room) = event, isWanted(room) { room } else { nil }
    }

    @Test func `a room is made, its members hear of it, write in it, change it, and leave`() async throws {
        let server = SIPEndpoint(RoomServer()) { _ in .failure }
        let place = try await server.open(at: .loopback(port: 0), [.udp])
        let (alice, bob) = (try await phone(), try await phone())
        let his = "sip:bob@\(bob.localAddress)"
        let address = try await alice.createRoom(at: "sip:factory@\(place)", subject: "Tea", members: [his])
        #expect(address == "sip:tea@\(place)")

        let invitation = try await wait(bob) { if case .invitation(let come) = $0 { come } else { nil } }
        #expect(invitation.room == address && invitation.subject == "Tea")
        let first = try await wait(bob) { room($0) { $0.members.count == 2 } }
        #expect(first.address == address && first.state == .created && first.subject == "Tea" && first.isFollowed)
        #expect(first.members.map(\.address) == ["sip:127.0.0.1", his])

        let id = try await alice.sendText("Milk?", to: address)
        let text = try await wait(bob) { if case .text(let come) = $0 { come } else { nil } }
        #expect(text.text == "Milk?" && text.id == id && id != nil)
        #expect(text.room == address && text.sender == "sip:127.0.0.1")

        try await alice.addMembers(["sip:carol@127.0.0.1:9"], to: address)
        let more = try await wait(bob) { room($0) { $0.members.count == 3 } }
        #expect(more.members.last?.address == "sip:carol@127.0.0.1:9")
        try await alice.removeMember("sip:carol@127.0.0.1:9", from: address)
        _ = try await wait(bob) { room($0) { $0.members.count == 2 } }

        #expect(await bob.rooms.map(\.address) == [address])
        try await bob.leaveRoom(address)
        let last = try await wait(bob) { room($0) { $0.state == .terminated } }
        #expect(last.address == address)
        #expect(await bob.rooms.isEmpty)

        // Of a former process: the state is told, and it is left by INVITE and BYE.
        try await bob.openRoom(address, subject: "Tea")
        _ = try await wait(bob) { room($0) { !$0.members.isEmpty } }
        try await bob.leaveRoom(address)

        for wrong in ["sip:factory@127.0.0.1:9", "tea"] {
            await #expect(throws: PhoneError.self) { try await bob.leaveRoom(wrong) }
        }
        await #expect(throws: PhoneError.self) { try await alice.openRoom(address) }
        await #expect(throws: PhoneError.self) {
            try await alice.createRoom(at: "sip:factory@\(place)", subject: "", members: [])
        }
        await alice.close()
        await bob.close()
        await server.close()
    }
}
