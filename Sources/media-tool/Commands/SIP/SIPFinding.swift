internal import CallBasics
import SDP
import SIP

/// What was found in bytes that should be a message, a URI or a session description.
struct SIPFinding {
    /// What is wrong, where it is known at which byte, and in which header.
    struct Problem {
        var what: String
        var offset: Int?
        var header: String?
    }

    /// "request", "response", "uri", "sdp", "push", "cpim", or "invalid" when it is nothing of the kind.
    private(set) var kind = "invalid"
    private(set) var problem: Problem?
    /// The status code of the answer that a request with the problem gets.
    private var answer: Int?
    private var message: SIPMessage?
    private var uri: SIPURI?
    private var mediaCount: Int?
    private var push: PushParameters?
    private var envelope: CPIMMessage?
    private var printed: String?

    /// The message in a datagram.
    ///
    /// A strict reader refuses what others forgive.
    init(datagram bytes: [UInt8], isStrict: Bool = false) {
        do {
            self.init(try SIPMessage(datagram: bytes))
            if isStrict { beStrict(bytes) }
        } catch {
            self.init(error)
        }
    }

    /// The URI in `text`.
    init(uri text: String) {
        do {
            let uri = try SIPURI(text)
            self.uri = uri
            kind = "uri"
            printed = uri.description
        } catch {
            problem = Problem(what: error.message)
        }
    }

    /// What the Contact in `text` says of push.
    init(contact text: String) {
        do {
            guard let push = try PushParameters(of: NameAddress(parsing: Bytes(text))) else {
                problem = Problem(what: "It says nothing of push. Give a Contact with pn-provider in its URI.")
                return
            }
            self.push = push
            kind = "push"
        } catch {
            problem = Problem(what: error.message)
        }
    }

    /// The message in an envelope.
    init(cpim bytes: [UInt8]) {
        do {
            envelope = try CPIMMessage(parsing: bytes[...])
            kind = "cpim"
        } catch {
            problem = Problem(what: error.message)
        }
    }

    /// The session description in `bytes`.
    init(sdp bytes: [UInt8]) {
        do {
            let description = try SessionDescription(parsing: bytes.span)
            kind = "sdp"
            mediaCount = description.media.count
            printed = description.description
        } catch {
            problem = Problem(what: error.message)
        }
    }

    private init(_ error: SIPError) {
        problem = Problem(what: error.message)
        answer = error.code.statusCode
    }

    private init(_ message: SIPMessage, failure: SIPError? = nil) {
        self.message = message
        kind = message.method == nil ? "response" : "request"
        printed = message.description
        do throws(SIPError) {
            if let failure { throw failure }
            _ = try message.validated()
        } catch {
            let broken = message.brokenHeader
            let header = broken.map { $0.name.canonical.description }
            problem = Problem(what: error.message, offset: broken?.offset, header: header)
            answer = message.isAnswerable ? error.code.statusCode : nil
        }
    }

    private mutating func beStrict(_ bytes: [UInt8]) {
        guard problem == nil, let faults = message?.strictFaults(in: bytes), !faults.isEmpty else { return }
        problem = Problem(what: faults.joined(separator: " "))
    }

    /// The messages of a stream, up to the first place where nobody knows how it goes on.
    static func all(inStream bytes: [UInt8], isStrict: Bool = false) -> [SIPFinding] {
        var framer = StreamFramer()
        framer.append(bytes)
        var findings: [SIPFinding] = []
        while let element = framer.next() {
            switch element {
            case .message(let message):
                var finding = SIPFinding(message)
                // How its lines ended the framer does not keep.
                if isStrict { finding.beStrict([]) }
                findings.append(finding)
            case .ping, .pong: break
            case .failure(let error, let message):
                findings.append(message.map { SIPFinding($0, failure: error) } ?? SIPFinding(error))
            }
        }
        if framer.waitingByteCount > 0 {
            let what = "The last \(framer.waitingByteCount) bytes are no whole message. Add the rest."
            findings.append(SIPFinding(SIPError(.notAMessage, what)))
        }
        return findings
    }

    // MARK: What is told

    /// The finding with the keys that scripts rely on.
    func json(_ file: String, _ printing: SIPParseCommand.Printing) -> JSONValue {
        var members: [(String, JSONValue)] = [("file", .string(file)), ("kind", .string(kind))]
        members += messageMembers
        if let uri {
            members += [
                ("scheme", .string(Self.scheme(of: uri))), ("user", JSONValue(uri.user)), ("host", .string(uri.host)),
                ("port", uri.port.map { .integer(Int($0)) } ?? .null), ("parameters", Self.parameters(of: uri)),
            ]
        }
        if let mediaCount { members.append(("media", .integer(mediaCount))) }
        if let push { members += Self.members(of: push) }
        if let envelope { members += Self.members(of: envelope) }
        members.append(("problem", problem.map(Self.json) ?? .null))
        members.append(("answer", answer.map { .integer($0) } ?? .null))
        members.append(("printed", printedJSON(printing)))
        return .object(members)
    }

    private var messageMembers: [(String, JSONValue)] {
        guard let message else { return [] }
        return [
            ("method", JSONValue(message.method?.name)), ("uri", JSONValue(requestURI)),
            ("code", message.statusCode.map { .integer($0) } ?? .null),
            ("headers", .integer(message.headerCount)), ("body", .integer(message.body.count)),
            ("rest", .integer(message.restByteCount)),
        ]
    }

    private func printedJSON(_ printing: SIPParseCommand.Printing) -> JSONValue {
        switch printing {
        case .none: .null
        case .canonical: JSONValue(printed)
        case .json: message.map(Self.json) ?? .null
        }
    }

    private static func json(_ message: SIPMessage) -> JSONValue {
        [
            "headers": .array(
                message.writtenHeaders.map { ["name": .string($0.name), "value": .string($0.value)] }
            ),
            "body": .string(String(decoding: message.body, as: UTF8.self)),
        ]
    }

    private static func json(_ problem: Problem) -> JSONValue {
        [
            "what": .string(problem.what), "at": problem.offset.map { .integer($0) } ?? .null,
            "header": JSONValue(problem.header),
        ]
    }

    private static func parameters(of uri: SIPURI) -> JSONValue {
        .object(uri.parameters.map { ($0.name.text, $0.value.map { .string($0.text) } ?? .null) })
    }

    private static func scheme(of uri: SIPURI) -> String {
        String(uri.description.prefix { $0 != ":" }.lowercased())
    }

    private static func members(of push: PushParameters) -> [(String, JSONValue)] {
        let tokens = PushParameters.Service.allCases.compactMap { service in
            push.tokens[service].map { (service.rawValue, JSONValue.string(end(of: $0))) }
        }
        return [
            ("provider", .string(push.provider)), ("query", .bool(push.isQuery)), ("team", JSONValue(push.team)),
            ("bundle", JSONValue(push.bundle)), ("services", JSONValue(push.services.map(\.rawValue))),
            ("tokens", .object(tokens)), ("token", JSONValue(push.token.map(end))),
        ]
    }

    /// The last four characters of a token.
    private static func end(of token: Secret) -> String { "..." + String(token.bytes.text.suffix(4)) }

    private static func members(of envelope: CPIMMessage) -> [(String, JSONValue)] {
        [
            ("from", JSONValue(envelope.value("From"))), ("to", JSONValue(envelope.value("To"))),
            ("messageID", JSONValue(envelope.messageID)), ("wantedReceipts", JSONValue(envelope.wantedReceipts)),
            ("contentType", JSONValue(envelope.contentType)), ("body", .integer(envelope.content.count)),
        ]
    }

    private var requestURI: String? { message?.method == nil ? nil : try? message?.requestURI().description }

    /// A line, with what is wrong in another, and the text of the message behind it where that is wanted.
    func text(_ file: String, _ printing: SIPParseCommand.Printing) -> String {
        var text = "\(file.printable): \(summary.printable)\n"
        if let problem {
            let place = problem.header.map { " in \($0) at byte \(problem.offset ?? 0)" } ?? ""
            let gets = answer.map { "gets \($0)" } ?? "gets no answer"
            text += "  wrong\(place): \(problem.what.printable)\n"
            if message?.method != nil { text += "  \(gets)\n" }
        }
        if printing == .json, let message { return text + Self.json(message).text + "\n" }
        guard printing == .canonical, let printed else { return text }
        let body = printed.replacing("\r\n", with: "\n").printableLines
        return text + body + (body.hasSuffix("\n") ? "" : "\n")
    }

    private var summary: String {
        if let message {
            let what =
                message.method.map { "\($0) \(requestURI ?? "")" }
                ?? "\(message.statusCode ?? 0) \(message.reasonPhrase)"
            let rest = message.restByteCount > 0 ? ", \(message.restByteCount) bytes behind it" : ""
            return what + ", \(English.count(message.headerCount, "header")), \(message.body.count) bytes of body"
                + rest
        }
        if let uri {
            let port = uri.port.map { ", port \($0)" } ?? ""
            let user = uri.user.map { ", user \($0)" } ?? ""
            return "\(Self.scheme(of: uri)) URI" + user + ", host \(uri.host)" + port
        }
        if let push {
            let services = push.services.map(\.rawValue).joined(separator: " and ")
            if push.isQuery { return "question for the push services that are offered" }
            return "push by \(push.provider)" + (services.isEmpty ? "" : " for \(services)")
        }
        if let envelope {
            let id = envelope.messageID.map { ", message \($0)" } ?? ""
            return "CPIM message of \(envelope.content.count) bytes, \(envelope.contentType ?? "no type")" + id
        }
        if let mediaCount { return "session description with \(mediaCount) media" }
        return "invalid"
    }
}
