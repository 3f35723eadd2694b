import CallBasics
import MediaEngine
import SIPTesting
import SIPTransport
import TestSupport
import Testing

@testable import CallCore
@testable import SIP

/// Who lets everybody register, and answers no call.
private struct RingingFactory: DatagramElement {
    typealias Event = String

    var own = SocketAddress.loopback(port: 0)
    var outputs: [ElementOutput<String>] = []

    mutating func handle(_ input: ElementInput, at now: MediaTime) {
        guard case .datagram(let bytes, _, let remote) = input, let request = try? SIPMessage(datagram: bytes),
            request.method == .invite || request.method == .register,
            var response = try? request.response(
                status: request.method == .invite ? 180 : 200,
                reason: "x",
                tag: Bytes("f")
            )
        else { return }
        if let contact = request.first(.contact) { try? response.append(.contact, contact) }
        outputs.append(.send(response.bytes, Flow(.udp, local: own, remote: remote)))
        if request.method == .invite { outputs.append(.event("rings")) }
    }
}

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

    @Test func `a room whose account goes before it is made is told to be none`() async throws {
        let factory = SIPEndpoint(RingingFactory()) { _ in .failure }
        let place = try await factory.open(at: .loopback(port: 0), [.udp])
        let target = "sip:factory@\(place)"
        let alice = try await phone()
        var account = try PhoneAccount("sip:alice@example.test")
        account.registrar = "sip:\(place)"
        try await alice.register(account)
        let address = account.address
        let made = Task {
            try await alice.createRoom(at: target, subject: "Tea", members: ["sip:bob@example.test"], from: address)
        }
        var rings = factory.events.makeAsyncIterator()
        #expect(await rings.next() == "rings")
        await alice.unregister(address)
        let error = await #expect(throws: PhoneError.self) { try await made.value }
        #expect(error?.message.contains("before the room was made") == true, "\(error?.message ?? "")")
        await alice.close()
        await factory.close()
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
