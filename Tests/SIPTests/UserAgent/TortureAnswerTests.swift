import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// The messages of RFC 4475 and RFC 5118 as datagrams to a phone, and to a registrar: what is sent, and what is left.
@Suite struct TortureAnswerTests {
    private static let stranger = SocketAddress(ipv4: 0xCB00_7109, port: 5060)

    /// A phone that was sent a datagram; a call rings.
    private func phone(sent bytes: [UInt8]) throws -> VirtualNetwork {
        var world = VirtualNetwork()
        _ = try world.add("user")
        receive(bytes, &world)
        if let call = world.nodes[0].events.first?.call {
            try world.with(0) { agent, now in try agent.ring(call, at: now) }
        }
        return world
    }

    private func receive(_ bytes: [UInt8], _ world: inout VirtualNetwork) {
        let address = world.nodes[0].address
        world.with(0) { agent, now in
            agent.handle(.datagram(bytes, local: address, remote: Self.stranger), at: now)
        }
    }

    /// The responses that were sent, but 100.
    private func answers(_ world: VirtualNetwork) throws -> [SIPMessage] {
        try world.sent.map { try SIPMessage(datagram: $0.bytes) }.filter { $0.statusCode != 100 }
    }

    /// What a phone answers to a message that it takes; nil is nothing.
    private func answerToTaken(_ bytes: [UInt8]) -> Int? {
        // A response belongs to no request of this side.
        guard let message = try? SIPMessage(datagram: bytes), let method = message.method else { return nil }
        // There is no such call (RFC 3261, section 12.2.2).
        guard (try? message.to())?.tag == nil else { return 481 }
        switch method {
        case .invite: return 180
        // A phone is no registrar (RFC 4475, section 3.3.7).
        case .register: return 405
        default: return 200
        }
    }

    /// What an expectation allows; nil is no answer.
    private func allowed(_ expectation: String, taken: Int?) throws -> [Int?] {
        try expectation.split(separator: "-or-").map { part in
            switch part {
            case "accept", "accept-first", "lenient": return taken
            case "drop": return nil
            default:
                let code: Int = try #require(Int(part), "\(part)")
                return code
            }
        }
    }

    @Test func `all messages are there, but those of the corpora where these are not`() throws {
        #expect(try TortureMessage.all().count == (CorpusFiles.areThere ? 61 : 25))
    }

    @Test(arguments: try TortureMessage.all())
    func `each gets the answer that the RFC asks for, and leaves nothing behind`(file: TortureMessage) throws {
        var world = try phone(sent: file.bytes)
        let answers = try answers(world)
        let allowed = try allowed(file.expectation, taken: answerToTaken(file.bytes))
        #expect(answers.count <= 1)
        #expect(allowed.contains(answers.first?.statusCode))
        #expect(world.words(0).contains("incoming") == (answers.first?.statusCode == 180))
        receive(Messages.request(), &world)
        #expect(world.sent.last?.startLine == "SIP/2.0 200 OK")
        world.run(for: .seconds(300))
        #expect(world.nodes[0].agent.counts == AgentCounts())
    }

    @Test(arguments: [
        ("intmeth.dat", "Allow"), ("regaut01.dat", "Allow"), ("bext01.dat", "Unsupported"), ("sdp01.dat", "Warning"),
    ])
    func `a refusal tells what would be taken`(name: String, header: String) throws {
        let file = try #require(try TortureMessage.all().first { $0.name == name })
        let answer = try #require(try answers(phone(sent: file.bytes)).first)
        #expect(!answer.values(named: header).isEmpty)
    }

    @Test(arguments: try TortureMessage.all().filter { $0.bytes.starts(with: Array("REGISTER sip:example.com ".utf8)) })
    func `a registrar takes each registration, as the RFC asks`(file: TortureMessage) throws {
        var world = VirtualNetwork()
        let server = SocketAddress(ipv4: 0xC633_6401, port: 5060)
        _ = world.add(ServerConfiguration(domain: "example.com"))
        world.handle(.datagram(file.bytes, local: server, remote: Self.stranger), at: .server(0))
        let answer = try #require(try answers(world).first)
        let contacts = try answer.contacts().map { contact in
            (uri: contact.uri.description, isUnknownKept: contact.parameters.contains("unknownparam"))
        }
        switch file.name {
        // To has to be of a scheme of SIP; a Contact that leads back to the registrar is not taken.
        case "unksm2.dat": #expect(answer.statusCode == 400)
        case "regescrt.dat": #expect(answer.statusCode == 403)
        default: #expect(try allowed(file.expectation, taken: 200).contains(answer.statusCode))
        }
        switch file.name {
        case "escnull.dat":
            #expect(contacts.map(\.uri).sorted() == ["sip:%00%00@host5.example.com", "sip:%00@host5.example.com"])
        case "cparam01.dat":
            #expect(contacts.map(\.uri) == ["sip:+19725552222@gw1.example.net"])
            #expect(contacts.map(\.isUnknownKept) == [true])
        case "cparam02.dat":
            #expect(contacts.map(\.uri) == ["sip:+19725552222@gw1.example.net;unknownparam"])
            #expect(contacts.map(\.isUnknownKept) == [false])
        default: break
        }
    }
}
