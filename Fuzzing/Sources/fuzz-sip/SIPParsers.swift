import CallBasics
import FuzzDriver
import SDP

@testable import SIP

/// What is fuzzed of signalling.
@main enum SIPParsers {
    static let all: [FuzzedParser] = [
        ("sip-message", message),
        ("sip-stream", stream),
        ("sip-uri", uri),
        ("sip-agent", agent),
        ("sip-summary", summary),
        ("sip-push", push),
        ("sip-cpim", cpim),
        ("sip-receipt", receipt),
        ("sip-list", list),
        ("sip-conference", conference),
    ]

    static func main() { fuzz(all) }

    /// All that can be asked for of a message is; a sound one is written as it is read, and answered by one message.
    static func message(_ bytes: Span<UInt8>) throws {
        let message = try SIPMessage(datagram: array(bytes))
        read(message)
        guard message.defect == nil else { return }
        let written = message.bytes
        guard let again = try? SIPMessage(datagram: written) else { preconditionFailure("it cannot be read") }
        // Content-Length, which is always written, may be one line too many.
        let isFull = message.fields.count >= MessageLimits.lineCount && message.count(of: .contentLength) == 0
        precondition(again.defect == nil || isFull)
        guard again.defect == nil else { return }
        precondition(again.bytes == written && again.body == message.body)
        for name in HeaderName.allCases where name != .contentLength {
            precondition(again.values(of: name) == message.values(of: name))
        }
        guard let answer = try? message.response(status: 400, reason: "Bad Request", tag: Bytes("t")) else { return }
        precondition((try? SIPMessage(datagram: answer.bytes))?.statusCode == 400)
    }

    private static func read(_ message: SIPMessage) {
        _ = (message.isAnswerable, message.hasWildcardContact, message.callID, message.reasonPhrase)
        if let uri = try? message.requestURI() {
            precondition(uri.isEquivalent(to: uri))
            _ = (uri.user, uri.host, uri.parameter("lr"), uri.headers)
        }
        _ = try? message.validated()
        for name in HeaderName.allCases where message.count(of: name) > 0 {
            _ = try? message.tokens(of: name)
            _ = try? message.authentication(name)
            _ = (try? message.list(name, as: NameAddress.self))?.map { ($0.tag, $0.preference, try? $0.expires()) }
            _ = (try? message.list(name, as: Via.self))?.map { ($0.hasUniqueBranch, $0.received, $0.responsePort) }
            _ = try? message.list(name, as: ParameterizedValue.self)
            _ = try? message.list(name, as: DialogReference.self)
            _ = try? message.list(name, as: MediaType.self)
            _ = try? message.list(name, as: RAck.self)
            _ = try? message.list(name, as: SessionInterval.self)
        }
    }

    /// What a Contact says of push; as many tokens as services.
    static func push(_ bytes: Span<UInt8>) throws {
        guard let push = try PushParameters(of: NameAddress(parsing: array(bytes)[...])) else { return }
        precondition(push.tokens.count == push.services.count)
    }

    /// A message in its envelope.
    static func cpim(_ bytes: Span<UInt8>) throws {
        let message = try CPIMMessage(parsing: array(bytes)[...])
        _ = (message.messageID, message.wantedReceipts, message.contentType)
        precondition(message.content.count < bytes.count)
    }

    /// What became of a message; what is written is read again.
    static func receipt(_ bytes: Span<UInt8>) throws {
        let receipt = try DispositionNotification(parsing: array(bytes)[...])
        precondition(!receipt.messageID.isEmpty)
        let written = DispositionNotification(of: receipt.messageID, isDisplayed: true)
        _ = try DispositionNotification(parsing: written.body(dateTime: "2024-05-01T10:00:00Z")[...])
    }

    /// Who is invited to a room; what is written is read again.
    static func list(_ bytes: Span<UInt8>) throws {
        let list = try ResourceList(parsing: array(bytes)[...])
        precondition(list.addresses.count <= ResourceList.limit)
        precondition((try? ResourceList(parsing: list.body[...])) == list)
    }

    /// What a room is like, told twice: the second time it is old, or all of it.
    static func conference(_ bytes: Span<UInt8>) throws {
        let document = try ConferenceDocument(parsing: array(bytes)[...])
        var state = ConferenceState()
        let first = state.take(document)
        precondition(state.members.count <= document.users.count)
        let members = state.members
        if first == .taken { precondition(state.take(document) == (document.version == nil ? .taken : .old)) }
        precondition(state.members == members)
    }

    /// How many messages wait, as a NOTIFY tells it.
    static func summary(_ bytes: Span<UInt8>) throws {
        let summary = try MessageSummary(parsing: array(bytes)[...])
        precondition(summary.counts.count < 64)
    }

    /// The first byte is the size of the pieces in which the rest arrives; at once or in pieces, the same comes out.
    static func stream(_ bytes: Span<UInt8>) throws {
        let all = array(bytes)
        guard let size = all.first else { return }
        let rest = Array(all.dropFirst())
        let step = max(1, Int(size))
        let pieces = stride(from: 0, to: rest.count, by: step).map { Array(rest[$0..<min($0 + step, rest.count)]) }
        precondition(elements(of: [rest]) == elements(of: pieces))
    }

    private static func elements(of pieces: [[UInt8]]) -> [[UInt8]] {
        var framer = StreamFramer()
        var elements: [[UInt8]] = []
        for piece in pieces {
            framer.append(piece)
            while let element = framer.next() {
                switch element {
                case .message(let message): elements.append(message.bytes)
                case .ping: elements.append([1])
                case .pong: elements.append([2])
                case .failure(let error, let message): elements.append(Array("\(error)".utf8) + (message?.bytes ?? []))
                }
            }
        }
        return elements
    }

    /// Datagrams, each ended by a byte 0, to an agent that calls and is called; when all is over nothing is left.
    static func agent(_ bytes: Span<UInt8>) throws {
        let address = SocketAddress(ipv4: 0xC000_0201, port: 5060)
        let other = SocketAddress(ipv4: 0xC000_0202, port: 5060)
        var agent = UserAgent(AgentConfiguration(identity: NameAddress(try SIPURI("sip:alice@192.0.2.1"))), seed: 1)
        var now = MediaTime.zero
        let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        let medium = MediaConfiguration(port: 4000, formats: [format])
        let session = SessionConfiguration(address: "192.0.2.1", media: [medium])
        agent.setLocalAddresses([address], of: .udp, at: now)
        _ = try agent.call(SIPURI("sip:bob@192.0.2.2"), UserAgent.CallWishes(session: session), at: now)
        func settle() {
            while let output = agent.poll() {
                switch output {
                case .event(.incoming(let handle, _)): try? agent.answer(handle, session, at: now)
                // No name is known, and nobody takes a connection.
                case .ask(let question): agent.handle(.answer(.timeout, to: question), at: now)
                case .open(let flow, _): agent.handle(.failed(flow), at: now)
                default: break
                }
            }
        }
        for datagram in array(bytes).split(separator: 0) {
            agent.handle(.datagram(Array(datagram), local: address, remote: other), at: now)
            settle()
            now += .milliseconds(20)
        }
        for handle in agent.calls.names { agent.hangUp(handle, at: now) }
        settle()
        for _ in 0..<10_000 {
            guard let deadline = agent.deadline else { break }
            now = max(now, deadline)
            agent.handle(.timeout, at: now)
            settle()
        }
        let counts = agent.counts
        precondition(counts.calls == 0 && counts.errands == 0 && counts.dialogs == 0 && counts.names == 0)
        precondition(counts.transactions == TransactionCounts() && counts.sources == 0)
    }

    /// A URI equals itself, and what is written of it reads the same.
    static func uri(_ bytes: Span<UInt8>) throws {
        let uri = try SIPURI(parsing: array(bytes)[...])
        precondition(uri.isEquivalent(to: uri))
        precondition((try? SIPURI(parsing: uri.bytes)) == uri)
        _ = HostAddress(array(bytes)[...])
    }
}
