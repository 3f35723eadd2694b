import Foundation

@testable import SIP

/// Names that a recorded flow has, with those that stand for them while our party takes part in it.
struct FlowWords {
    private var names: [String: String] = [:]
    /// How far the numbers of a sender are from the recorded ones.
    private var offsets: [String: Int64] = [:]
    /// The last number of each who gives us requests of a call.
    private var numbers: [String: UInt32] = [:]

    /// Numbers of another flow begin anew.
    mutating func forgetNumbers() { offsets = [:] }

    // MARK: Names

    /// Where a URI leads, without what is said of the way.
    static func place(of uri: SIPURI) -> String {
        guard uri.scheme != .other else { return uri.description }
        return "uri " + (uri.user.map { $0 + "@" } ?? "") + uri.host.lowercased()
    }

    /// Says what stands for a URI.
    mutating func set(_ uri: SIPURI, to live: String) { names[Self.place(of: uri)] = live }

    /// Says what stands for a tag of a call.
    mutating func set(tag: String, of callID: String, to live: String) { names[Self.tag(tag, callID)] = live }

    private static func tag(_ tag: String, _ callID: String) -> String { "tag \(tag) of \(callID)" }
    private func live(_ name: String, else recorded: String) -> String { names[name] ?? recorded }
    private func live(_ uri: SIPURI) throws -> SIPURI { try SIPURI(names[Self.place(of: uri)] ?? uri.description) }

    /// What stands for a Call-ID.
    func callID(of recorded: String) -> String { live("id " + recorded, else: recorded) }

    /// Notes what stands for a name; false when something else did before.
    private mutating func note(_ name: String, _ live: String) -> Bool {
        let former = names[name]
        names[name] = former ?? live
        return former == nil || former == live
    }

    // MARK: What is given

    /// A recorded request as it is given to our party.
    mutating func translate(request recorded: SIPMessage) throws -> SIPMessage {
        var request = recorded
        let callID = recorded.callID?.text ?? ""
        _ = note("id " + callID, callID)
        try request.set(.callID, to: Bytes(live("id " + callID, else: callID)))
        for name in [HeaderName.from, .to] {
            guard var address: NameAddress = try recorded.value(name), let tag = address.tag?.text else { continue }
            _ = note(Self.tag(tag, callID), tag)
            address.tag = Bytes(live(Self.tag(tag, callID), else: tag))
            try request.set(name, to: address)
        }
        request.setRequestURI(try live(recorded.requestURI()))
        for name in [HeaderName.route, .recordRoute] { try translate(name, in: &request) }
        if let reference: DialogReference = try recorded.value(.replaces) {
            try request.set(.replaces, to: translate(reference))
        }
        if var address: NameAddress = try recorded.value(.referTo), let reference = try recorded.replacedDialog {
            let target = address.uri.description.prefix { $0 != "?" }
            let value = translate(reference).bytes.text
            let escaped = value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            address.uri = try SIPURI("\(target)?Replaces=\(escaped)")
            try request.set(.referTo, to: address)
        }
        if recorded.first(.maxForwards) == nil { try request.append(.maxForwards, WholeNumber(70)) }
        try number(&request, recorded)
        return request
    }

    /// A number above those before it, and a branch that no other request has; an ACK and a CANCEL have those of their INVITE.
    private mutating func number(_ request: inout SIPMessage, _ recorded: SIPMessage) throws {
        guard var cSeq = try recorded.cSeq(), var via = try recorded.topVia() else { return }
        let offset = try Self.sender(of: recorded)
        if cSeq.method == .ack || cSeq.method == .cancel {
            cSeq.number = UInt32(Int64(cSeq.number) + (offsets[offset] ?? 0))
        } else {
            let isRegister = cSeq.method == .register
            let sender = isRegister ? request.callID?.text ?? "" : try Self.sender(of: request)
            cSeq.number = max(cSeq.number, (numbers[sender] ?? 0) + 1)
            numbers[sender] = cSeq.number
            offsets[offset] = Int64(cSeq.number) - Int64(try recorded.cSeq()?.number ?? 0)
        }
        try request.set(.cSeq, to: cSeq)
        via.parameters.set("branch", to: (via.branch ?? []) + Bytes(".\(cSeq.number)"))
        try request.replaceFirst(.via, by: via)
    }

    /// A recorded response as it is given to our party, which has sent `request`.
    mutating func translate(response recorded: SIPMessage, to request: SIPMessage) throws -> SIPMessage {
        var response = recorded
        response.remove(.via)
        for via in request.values(of: .via) { try response.append(.via, via) }
        for name in [HeaderName.from, .to, .callID, .cSeq] { try response.set(name, to: request.first(name) ?? []) }
        if var to = try request.to(), to.tag == nil, let tag = try recorded.to()?.tag {
            to.tag = tag
            _ = note(Self.tag(tag.text, recorded.callID?.text ?? ""), tag.text)
            try response.set(.to, to: to)
        }
        for name in [HeaderName.recordRoute, .contact] where !recorded.hasWildcardContact {
            try translate(name, in: &response)
        }
        return response
    }

    private func translate(_ name: HeaderName, in message: inout SIPMessage) throws {
        let known = try message.list(name, as: NameAddress.self)
        message.remove(name)
        for var address in known {
            address.uri = try live(address.uri)
            try message.append(name, address)
        }
    }

    private func translate(_ reference: DialogReference) -> DialogReference {
        var translated = reference
        let callID = reference.callID.text
        translated.callID = Bytes(live("id " + callID, else: callID))
        for name in ["to-tag", "from-tag"] as [StaticString] {
            guard let tag = reference.parameters.value(name)?.text else { continue }
            translated.parameters.set(name, to: Bytes(live(Self.tag(tag, callID), else: tag)))
        }
        return translated
    }

    private static func sender(of message: SIPMessage) throws -> String {
        "\(message.callID?.text ?? "") \(try message.from()?.tag?.text ?? "")"
    }

    // MARK: What our party has sent

    /// What is different, but for names, in a message of our party; what stands for the names is known from now on.
    mutating func learn(_ recorded: SIPMessage, _ live: SIPMessage, at host: String) throws -> [String: String] {
        var found: [String: String] = [:]
        func check<Value: Equatable>(_ topic: String, _ recorded: Value, _ live: Value) {
            if recorded != live { found[topic] = "\(live) in the place of \(recorded)" }
        }
        let callID = recorded.callID?.text ?? ""
        if !note("id " + callID, live.callID?.text ?? "") { found["Call-ID"] = "it is not that of the flow" }
        for (name, one, other) in [
            ("From", try recorded.from(), try live.from()), ("To", try recorded.to(), try live.to()),
        ] {
            guard let tag = one?.tag?.text else { continue }
            if !note(Self.tag(tag, callID), other?.tag?.text ?? "none") {
                found[name] = "its tag is not that of the flow"
            }
        }
        if let one = try recorded.cSeq(), let other = try live.cSeq() {
            let (sender, offset) = (try Self.sender(of: recorded), Int64(other.number) - Int64(one.number))
            check("CSeq", offsets[sender] ?? offset, offset)
            check("CSeq", one.method, other.method)
            offsets[sender] = offset
        }
        if recorded.first(.via) != nil { check("Via", recorded.count(of: .via), live.count(of: .via)) }
        if recorded.method != nil {
            check("Request-URI", Self.place(of: try recorded.requestURI()), Self.place(of: try live.requestURI()))
            let hops = try [recorded, live].map { try $0.value(.maxForwards, as: WholeNumber.self)?.value }
            if hops[0] != nil { check("Max-Forwards", hops[0], hops[1]) }
        }
        for name in [HeaderName.route, .recordRoute, .contact] {
            let ours = try learnPlaces(name, in: live, recorded, at: host)
            check("\(name.canonical)", try places(name, in: recorded), ours)
        }
        for name in Self.sharedHeaders { check("\(name.canonical)", recorded.count(of: name), live.count(of: name)) }
        for name in [HeaderName.supported, .allow] where try recorded.cSeq()?.method == .invite {
            let wanted = Set(try recorded.tokens(of: name)).subtracting(Self.unknownExtensions)
            let missing = wanted.subtracting(try live.tokens(of: name))
            if !missing.isEmpty { found["\(name.canonical)"] = "\(missing.sorted()) are missing" }
        }
        let references = try [recorded, live].map { try $0.replacedDialog }
        check("Replaces", references[0].map { translate($0).names }, references[1]?.names)
        let targets = try [recorded, live].map {
            try $0.value(.referTo, as: NameAddress.self).map { Self.place(of: $0.uri) }
        }
        check("Refer-To", targets[0], targets[1])
        check("body", try recorded.bodyKind, try live.bodyKind)
        return found
    }

    /// Headers of which both have as many.
    private static let sharedHeaders: [HeaderName] = [
        .wwwAuthenticate, .proxyAuthenticate, .authorization, .proxyAuthorization, .referTo, .referredBy,
        .targetDialog, .event, .subscriptionState, .require,
    ]

    /// What ours does not have, and nobody has to (RFC 5627, RFC 4538).
    private static let unknownExtensions: Set = ["gruu", "tdialog"]

    private func places(_ name: HeaderName, in message: SIPMessage) throws -> [String] {
        guard name != .contact || !message.hasWildcardContact else { return ["*"] }
        return try message.list(name, as: NameAddress.self).map { Self.place(of: try live($0.uri)) }.sorted()
    }

    /// The places in a header of our party, of which its own stand for the recorded ones.
    private mutating func learnPlaces(_ name: HeaderName, in live: SIPMessage, _ recorded: SIPMessage, at host: String)
        throws -> [String]
    {
        let ours = try live.list(name, as: NameAddress.self)
        let theirs = recorded.hasWildcardContact ? [] : try recorded.list(name, as: NameAddress.self)
        guard name != .route, ours.count == theirs.count else { return ours.map { Self.place(of: $0.uri) }.sorted() }
        var found: [String] = []
        for (one, other) in zip(theirs, ours) {
            if other.uri.host == host, one.uri.scheme != .other { set(one.uri, to: other.uri.description) }
            found.append(Self.place(of: other.uri))
        }
        return found.sorted()
    }
}

extension SIPMessage {
    /// The dialog that Replaces names, be it a header of its own or of the URI in Refer-To.
    fileprivate var replacedDialog: DialogReference? {
        get throws {
            if let reference: DialogReference = try value(.replaces) { return reference }
            let header = try value(.referTo, as: NameAddress.self)?.uri.headers.first { $0.name.text == "Replaces" }
            return try header.map { try DialogReference(parsing: $0.value.unescaped[...]) }
        }
    }

    /// A description, or the text.
    fileprivate var bodyKind: String {
        get throws {
            if try contentType()?.isNamed("application", "sdp") == true, try sessionDescription() != nil {
                return "sdp"
            }
            return String(decoding: body, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }
}

extension DialogReference {
    fileprivate var names: [String?] { [callID.text, localTag?.text, remoteTag?.text, isEarlyOnly ? "early" : nil] }
}
