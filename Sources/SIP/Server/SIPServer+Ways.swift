internal import CallBasics
internal import Cryptography

/// The way of a request: which Routes are the server's own, what it writes on the request, and where it has been before.
extension SIPServer {
    /// Takes the leading Routes away that are its own; whether one of them is of a call that it let in.
    ///
    /// A request whose sender is a strict router has its own Route in the Request-URI, and the target as the last Route.
    /// Source: RFC 3261, section 16.4
    func takeOwnRoutes(of request: inout SIPMessage) throws(SIPError) -> Bool {
        var isLetIn = false
        let uri = try request.requestURI()
        var routes = try request.list(.route, as: NameAddress.self)
        if uri.isLooseRoute, uri.userBytes == nil, isOwn(uri), let last = routes.popLast() {
            isLetIn = try isSigned(uri, request)
            request.setRequestURI(last.uri.detached)
        }
        while let first = routes.first, isOwn(first.uri), first.uri.userBytes == nil {
            isLetIn = try isSigned(first.uri, request) || isLetIn
            routes.removeFirst()
        }
        guard routes.count != request.count(of: .route) else { return isLetIn }
        let left = routes.map(\.detached)
        request.remove(.route)
        for route in left { try request.append(.route, route) }
        return isLetIn
    }

    /// Whether a route is of the call that a request is within, which either side may have begun.
    private func isSigned(_ uri: SIPURI, _ request: SIPMessage) throws(SIPError) -> Bool {
        guard let way = uri.parameters.value("way"), let callee = try request.to()?.tag,
            let caller = try request.from()?.tag
        else { return false }
        return isSameSecret(way, signature(of: request, from: caller))
            || isSameSecret(way, signature(of: request, from: callee))
    }

    /// What only this server can write on the way of a call: a keyed hash of its Call-ID, and the tag of who has begun it.
    private func signature(of request: SIPMessage, from tag: Bytes) -> Bytes {
        HashFunction.sha256.keyedHash(of: [0] + (request.callID ?? []) + [0] + tag, key: key).prefix(12).hexadecimal
    }

    /// The request as it leaves: one hop less, to the target, without what was for this server alone.
    ///
    /// Source: RFC 3261, section 16.6, items 1 to 5
    func passedOn(_ request: SIPMessage, to target: ForwardTarget) throws(SIPError) -> SIPMessage {
        var request = request
        let hops = try request.value(.maxForwards, as: WholeNumber.self)?.value ?? 70
        try request.set(.maxForwards, to: WholeNumber(max(hops, 1) - 1))
        request.setRequestURI(target.uri.withoutHeaders)
        for route in target.path.reversed() { try request.prepend(.route, route) }
        let credentials = request.values(of: .proxyAuthorization)
        let foreign = credentials.filter { value in
            (try? AuthenticationValue(parsing: value))?["realm"] != Bytes(configuration.domain)
        }.map(\.detached)
        guard foreign.count != credentials.count else { return request }
        request.remove(.proxyAuthorization)
        for value in foreign { try request.append(.proxyAuthorization, value) }
        return request
    }

    /// Stays on the way of a call: a Record-Route, or two when it is another address or transport on the other side.
    ///
    /// Source: RFC 3261, section 16.6, item 4; RFC 5658, section 6
    func recordRoute(in request: inout SIPMessage, from received: Flow, to flow: Flow, isSecure: Bool)
        throws(SIPError)
    {
        guard configuration.staysOnWay, [.invite, .subscribe, .refer].contains(request.method),
            try request.to()?.tag == nil
        else { return }
        let signature = signature(of: request, from: try request.from()?.tag ?? [])
        try request.prepend(.recordRoute, ownRoute(on: received, signature, isSecure: isSecure))
        if received.transport != flow.transport || received.local != flow.local {
            try request.prepend(.recordRoute, ownRoute(on: flow, signature, isSecure: isSecure))
        }
    }

    private func ownRoute(on flow: Flow, _ signature: Bytes, isSecure: Bool) throws(SIPError) -> NameAddress {
        let isSecure = isSecure && flow.transport == .tls
        var text = Array((isSecure ? "<sips:" : "<sip:").utf8) + flow.local.sentBy + ":\(flow.local.port)".utf8
        if flow.transport != .udp, !isSecure { text += ";transport=\(flow.transport == .tcp ? "tcp" : "tls")".utf8 }
        text += ";lr;way=".utf8 + signature + [.greater]
        return try NameAddress(parsing: text[...])
    }

    /// What the own Via says of a request, so that it is known when it comes round: a keyed hash of all that decides its way.
    ///
    /// Source: RFC 3261, section 16.6, item 8; RFC 5393, section 4.2
    func mark(of request: SIPMessage) throws(SIPError) -> Bytes {
        var parts: [Bytes] = [try request.requestURI().bytes, request.callID ?? []]
        parts.append(try request.from()?.tag ?? [])
        parts.append(try request.to()?.tag ?? [])
        parts.append(try request.cSeq()?.bytes[...] ?? [])
        parts += request.values(of: .route)
        let subject = [1] + Array(parts.joined(separator: [0]))
        return HashFunction.sha256.keyedHash(of: subject, key: key).prefix(8).hexadecimal
    }

    /// Whether a request has been here before, bound for the same.
    ///
    /// Source: RFC 3261, section 16.3, item 4
    func hasPassed(_ request: SIPMessage, _ mark: Bytes) throws(SIPError) -> Bool {
        try request.list(.via, as: Via.self).contains { via in
            isOwn(via.host, via.port) && via.branch?.suffix(mark.count).elementsEqual(mark) ?? false
        }
    }
}
