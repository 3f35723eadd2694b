import CallBasics
import CallCore
import Foundation
import LocalMessaging
import MediaEngine
import SIP
import SIPTesting
import SIPTransport
import SharedCore
import TestSupport
import Testing

@testable import SharedPhone

/// Rooms of a group: in the store before they are answered, and known to the next process.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) final class RoomServiceRealTimeTests {
    private let path = "/tmp/shared-rooms-\(UUID().uuidString)"
    private let group: GroupContainer
    private let secrets: SecretFiles
    private let registrar: SIPEndpoint<SIPServer>
    private let server = SIPEndpoint(DatagramPeer()) { _ in .failure }
    private let way: String
    private let place: SocketAddress
    private var number = 0

    init() async throws {
        group = try GroupContainer(directory: path)
        secrets = try SecretFiles(group: group)
        var configuration = ServerConfiguration(domain: "example.test")
        configuration.users = ["bob": ServerUser(Credentials(userName: "bob", password: "builder"))]
        registrar = SIPEndpoint(SIPServer(configuration, seed: 3)) { _ in .failure }
        way = "sip:\(try await registrar.open(at: .loopback(port: 0), [.udp]));lr"
        place = try await server.open(at: .loopback(port: 0), [.udp])
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The main of the group, registered.
    private func main() async throws -> (MainCore, SIPService, Phone) {
        var configuration = PhoneConfiguration()
        configuration.local = .loopback(port: 0)
        configuration.transports = [.udp]
        let service = SIPService(secrets: secrets, configuration)
        let main = try MainCore(group: group, service: service)
        try await main.start()
        #expect(try await Polling.eventually { try await main.store.registrations().first?.state == "ok" })
        return (main, service, try #require(await service.current))
    }

    private func address(_ room: String) -> String { "sip:\(room)@\(place)" }

    /// Sends a request of a room's server, and gives its answer; an ACK has none.
    @discardableResult
    private func send(
        _ method: String,
        _ room: String,
        to phone: Phone,
        _ lines: String...,
        tag: String = "",
        body: String = ""
    ) async throws -> SIPMessage? {
        number += 1
        let head = [
            "\(method) sip:bob@\(phone.localAddress) SIP/2.0", "Via: SIP/2.0/UDP \(place);branch=z9hG4bK\(number)",
            "From: <\(address(room))>;tag=r", "To: <sip:bob@example.test>\(tag)",
            "Call-ID: \(method == "MESSAGE" ? "m\(number)" : room)",
            "CSeq: \(method == "ACK" ? number - 1 : number) \(method)", "Contact: <\(address(room));gr=1>;isfocus;text",
        ]
        let text = (head + lines + ["Content-Length: \(body.utf8.count)", "", body]).joined(separator: "\r\n")
        let target = phone.localAddress
        await server.perform { peer, _ in peer.send(Array(text.utf8), to: target) }
        guard method != "ACK" else { return nil }
        for await message in server.events where message.statusCode ?? 0 >= 200 {
            if message.callID?.text == (method == "MESSAGE" ? "m\(number)" : room) { return message }
        }
        return nil
    }

    private func invite(_ room: String, to phone: Phone) async throws -> String {
        let answer = try #require(try await send("INVITE", room, to: phone, "Subject: About \(room)"))
        #expect(answer.statusCode == 200)
        let tag = ";tag=\(try answer.to()?.tag?.text ?? "")"
        try await send("ACK", room, to: phone, tag: tag)
        return tag
    }

    private func write(_ text: String, in room: String, to phone: Phone) async throws {
        let body = """
            From: <sip:carol@example.test;gr=7>\r
            To: <\(address(room))>\r
            NS: imdn <urn:ietf:params:imdn>\r
            imdn.Message-ID: id-\(text)\r
            \r
            Content-Type: text/plain\r
            \r
            \(text)
            """
        let answer = try await send("MESSAGE", room, to: phone, "Content-Type: message/cpim", body: body)
        #expect(answer?.statusCode == 200)
    }

    @Test func `an invitation is in the store before it is answered, and the next process knows the room`() async throws
    {
        try await GroupAccounts(group: group).set(account)
        let (first, _, phone) = try await main()
        _ = try await invite("tea", to: phone)
        let stored = try #require(try await first.store.room(address: address("tea")))
        #expect(stored.invitation.subject == "About tea" && stored.invitation.invitedBy == address("tea"))
        try await write("one", in: "tea", to: phone)
        // One that this side is removed from is gone.
        let tag = try await invite("milk", to: phone)
        #expect(await Polling.eventually { await phone.rooms.count == 2 })
        try await send("BYE", "milk", to: phone, tag: tag)
        #expect(try await Polling.eventually { try await first.store.room(address: self.address("milk")) == nil })
        await first.stop()

        let (second, _, next) = try await main()
        // They are taken up as the account begins to register.
        #expect(await Polling.eventually { await next.rooms.map(\.address) == [self.address("tea")] })
        #expect(await next.rooms.map(\.subject) == ["About tea"])
        #expect(await next.rooms.map(\.account) == ["sip:bob@example.test"])
        try await write("two", in: "tea", to: next)
        let messages = try await second.store.pending().map(\.message)
        #expect(messages.map(\.text) == ["one", "two"])
        #expect(messages.map(\.room) == [address("tea"), address("tea")])
        #expect(messages.map(\.sender) == ["sip:carol@example.test", "sip:carol@example.test"])
        await second.stop()
        await server.close()
        await registrar.close()
    }

    private var account: GroupAccount {
        var account = GroupAccount("sip:bob@example.test")
        account.proxies = [way]
        account.secret = PhoneSecret(password: "builder")
        return account
    }
}

/// Sends datagrams as they are, and tells the messages that come.
struct DatagramPeer: DatagramElement {
    typealias Event = SIPMessage

    var own = SocketAddress.loopback(port: 0)
    var outputs: [ElementOutput<SIPMessage>] = []

    mutating func handle(_ input: ElementInput, at now: MediaTime) {
        guard case .datagram(let bytes, _, _) = input, let message = try? SIPMessage(datagram: bytes) else { return }
        outputs.append(.event(message))
    }

    mutating func send(_ bytes: [UInt8], to remote: SocketAddress) {
        outputs.append(.send(bytes, Flow(.udp, local: own, remote: remote)))
    }
}
