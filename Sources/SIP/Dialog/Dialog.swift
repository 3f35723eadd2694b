internal import CallBasics

/// What two user agents share between their requests: names, numbers, and the way from one to the other.
///
///     UAC   INVITE ──►            ◄── 1xx with tag: early ── 2xx: confirmed
///     UAS   ──► INVITE            1xx with own tag: early ── own 2xx: confirmed
///
/// The way, its route set, is fixed when the dialog is made; the 2xx that confirms an early one of the caller's makes it
/// anew. Only the remote target moves later. It sends nothing: messages come out without Via.
/// Source: RFC 3261, section 12
package struct Dialog: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case early, confirmed
    }

    package let id: DialogID
    package private(set) var state: State
    /// Both with their tags.
    package let local: NameAddress
    package let remote: NameAddress
    /// Where the peer wants requests: its last Contact.
    package private(set) var remoteTarget: SIPURI
    /// The proxies on the way, the first one first.
    package private(set) var routes: [NameAddress]
    /// Whether it was made by TLS and a sips URI, so that it stays so.
    package let isSecure: Bool
    /// The flow that it was made on, where requests of both sides stay while it lives.
    package private(set) var flow: Flow
    /// Whether the flow leads to the first proxy that stays on the way, or to the peer itself.
    ///
    /// A proxy without Record-Route has left the way: by UDP requests then go past it.
    package private(set) var isFlowOnWay = true
    /// The number of the request sent last.
    package private(set) var localNumber: UInt32
    /// The number of the request received last; nil before the first.
    package private(set) var remoteNumber: UInt32?
    /// Numbers begin below this, so that they do not run out (RFC 3261, section 8.1.1.5).
    package static let firstNumbers: Range<UInt32> = 1..<0x8000_0000

    /// The caller's, by a provisional response with a tag or a 2xx to its request.
    ///
    /// Throws: `badRequest` when the response makes no dialog, or a header that is needed breaks the grammar
    /// Source: RFC 3261, section 12.1.2
    package init(client request: SIPMessage, response: SIPMessage, on flow: Flow) throws(SIPError) {
        guard let status = response.statusCode, let id = try DialogID(response: response),
            let from = try request.from(), let to = try response.to(), let number = try request.cSeq()?.number
        else { throw SIPError(.badRequest, "The response makes no dialog: it has no tag, or is none to a request.") }
        self.id = id
        state = status < 200 ? .early : .confirmed
        (local, remote) = (from.detached, to.detached)
        isSecure = try Self.isSecure(request, flow)
        (localNumber, remoteNumber, self.flow) = (number, nil, flow)
        (routes, remoteTarget) = ([], try request.requestURI().detached)
        let isDirect = remoteTarget.hostBytes.text.filter { $0 != "[" && $0 != "]" } == flow.remote.host
        try takeWay(of: response)
        isFlowOnWay = isDirect || !routes.isEmpty || flow.transport.isReliable
    }

    /// The called side's, by the request and the tag of its own response.
    ///
    /// `number` is what its own requests count from.
    /// Throws: `badRequest` when a header that is needed is not there, or breaks the grammar
    /// Source: RFC 3261, section 12.1.1
    package init(
        server request: SIPMessage,
        tag: Bytes,
        isConfirmed: Bool,
        number: UInt32,
        on flow: Flow
    ) throws(SIPError) {
        guard let callID = request.callID, let from = try request.from(), var to = try request.to(),
            let remoteNumber = try request.cSeq()?.number
        else { throw SIPError(.badRequest, "The request has no Call-ID, From, To or CSeq. Send them.") }
        // RFC 2543 knew calls without one: From says where the caller is then.
        let contact = try request.firstContact() ?? from
        to.tag = tag
        id = DialogID(callID: callID, localTag: tag, remoteTag: from.tag ?? [])
        state = isConfirmed ? .confirmed : .early
        (local, remote, remoteTarget) = (to.detached, from.detached, contact.uri.detached)
        routes = try request.list(.recordRoute, as: NameAddress.self).map(\.detached)
        isSecure = try Self.isSecure(request, flow)
        (localNumber, self.remoteNumber, self.flow) = (number, remoteNumber, flow)
        isFlowOnWay = request.count(of: .via) == 1 || !routes.isEmpty || flow.transport.isReliable
    }

    private static func isSecure(_ request: SIPMessage, _ flow: Flow) throws(SIPError) -> Bool {
        guard flow.transport == .tls else { return false }
        return try request.requestURI().scheme == .sips
    }

    // MARK: How it changes

    /// The 2xx to the request that made an early dialog of the caller's.
    ///
    /// Throws: `badRequest` when a header that is needed breaks the grammar; nothing has changed then
    /// Source: RFC 3261, section 13.2.2.4
    package mutating func confirm(by response: SIPMessage) throws(SIPError) {
        guard state == .early else { return }
        var changed = self
        try changed.takeWay(of: response)
        changed.state = .confirmed
        self = changed
    }

    /// This side has sent its 2xx.
    package mutating func confirm() { state = .confirmed }

    private mutating func takeWay(of response: SIPMessage) throws(SIPError) {
        routes = try response.list(.recordRoute, as: NameAddress.self).reversed().map(\.detached)
        try refreshTarget(by: response)
    }

    /// Takes the Contact of a target refresh: of an INVITE, UPDATE, SUBSCRIBE or NOTIFY that was answered by a 2xx, or of
    /// that 2xx; without one nothing changes.
    ///
    /// Throws: `badRequest` when it breaks the grammar
    /// Source: RFC 3261, section 12.2; RFC 3311, section 5.2; RFC 6665, section 4.4.1
    package mutating func refreshTarget(by message: SIPMessage) throws(SIPError) {
        guard let contact = try message.firstContact() else { return }
        remoteTarget = contact.uri.detached
    }

    /// Whether a target refresh tells that the peer itself, with no proxy on the way, is at another host: the former flow leads
    /// nowhere then.
    ///
    /// Throws: `badRequest` when Contact breaks the grammar
    package func isMoved(by request: SIPMessage) throws(SIPError) -> Bool {
        guard routes.isEmpty, request.method == .invite || request.method == .update else { return false }
        return try request.firstContact().map { $0.uri.hostBytes != remoteTarget.hostBytes } ?? false
    }

    /// Another flow carries its requests from now on, since the former one leads there no more.
    package mutating func move(to flow: Flow) { (self.flow, isFlowOnWay) = (flow, true) }

    // MARK: Requests

    /// Where a request is to be sent, when the flow cannot carry it: the first proxy, else the peer.
    package var nextHop: SIPURI { routes.first?.uri ?? remoteTarget }

    /// A request within the dialog, with the next number and without Via; ACK and CANCEL are made from their INVITE.
    ///
    /// Throws: `invalidCharacter` when an address of the dialog would end its line
    /// Source: RFC 3261, section 12.2.1.1
    package mutating func makeRequest(_ method: SIPMethod) throws(SIPError) -> SIPMessage {
        precondition(method != .ack && method != .cancel)
        let request = try self.request(method, number: localNumber + 1)
        localNumber += 1
        return request
    }

    /// The next number, for a request that leaves once more.
    package mutating func takeNumber() -> UInt32 {
        localNumber += 1
        return localNumber
    }

    /// The ACK to a 2xx, with the number of its INVITE.
    ///
    /// Throws: as `makeRequest`
    /// Source: RFC 3261, section 13.2.2.4
    package func makeAcknowledgement(number: UInt32) throws(SIPError) -> SIPMessage {
        try request(.ack, number: number)
    }

    private func request(_ method: SIPMethod, number: UInt32) throws(SIPError) -> SIPMessage {
        // A strict router wants to read its own URI first, and the peer's last.
        let isStrict = routes.first.map { !$0.uri.isLooseRoute } ?? false
        var request = SIPMessage(method, to: isStrict ? routes[0].uri.withoutHeaders : remoteTarget.withoutHeaders)
        try request.append(.maxForwards, WholeNumber(70))
        for route in isStrict ? routes.dropFirst() + [NameAddress(remoteTarget)] : routes[...] {
            try request.append(.route, route)
        }
        try request.append(.from, local)
        try request.append(.to, remote)
        try request.append(.callID, id.callID)
        try request.append(.cSeq, CSeq(number, method))
        return request
    }

    /// What is to be done with a received request.
    package enum Verdict: Hashable, Sendable {
        case taken
        /// It is older than one that was taken: 500 (RFC 3261, section 12.2.2).
        case outOfOrder
    }

    /// Takes the number of a request that was received within the dialog.
    ///
    /// Throws: `badRequest` when it has none
    package mutating func receive(_ request: SIPMessage) throws(SIPError) -> Verdict {
        guard let cSeq = try request.cSeq() else { throw SIPError(.badRequest, "CSeq is missing. Send it.") }
        // They have the numbers of their INVITE.
        if cSeq.method == .ack || cSeq.method == .cancel { return .taken }
        if let remoteNumber, cSeq.number <= remoteNumber { return .outOfOrder }
        remoteNumber = cSeq.number
        return .taken
    }
}

extension NameAddress {
    /// The same in memory of its own, for what outlives its message.
    var detached: NameAddress {
        var address = NameAddress(uri.detached)
        (address.displayName, address.parameters) = (displayName?.detached, parameters.detached)
        return address
    }
}

extension SIPMessage {
    /// Gives a response that makes a dialog the way of its request.
    ///
    /// Throws: `invalidCharacter` when a route would end its line
    /// Source: RFC 3261, section 12.1.1
    package mutating func copyRecordRoute(from request: SIPMessage) throws(SIPError) {
        try append(.recordRoute, of: request)
    }

    /// Whether a request is for `sips:`, by its Request-URI or the next hop, either way.
    ///
    /// Source: RFC 3261, sections 8.1.1.8 and 12.1.1
    var isSecure: Bool {
        if (try? requestURI())?.scheme == .sips { return true }
        let hops = [HeaderName.route, .recordRoute].compactMap { try? list($0, as: NameAddress.self).first }
        return hops.contains { $0.uri.scheme == .sips }
    }

    /// Whether a request may only go on by TLS: it is for `sips:`, or its next proxy is.
    var isBoundForSIPS: Bool {
        if (try? requestURI())?.scheme == .sips { return true }
        return (try? list(.route, as: NameAddress.self).first)??.uri.scheme == .sips
    }

    /// Whether its sender, who came without a proxy, is to be reached by `sips:` alone.
    var comesFromSIPS: Bool {
        count(of: .recordRoute) == 0 && (try? contacts().first)??.uri.scheme == .sips
    }
}
