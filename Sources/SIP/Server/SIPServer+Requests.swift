internal import CallBasics

extension SIPServer {
    /// A request that came for the first time.
    mutating func receive(_ request: SIPMessage, _ transaction: TransactionID, on flow: Flow, at now: MediaTime) {
        requestCount += 1
        callCount += request.method == .invite ? 1 : 0
        messageCount += request.method == .message ? 1 : 0
        do {
            let action = takeRule(for: request) { if case .answer = $0 { true } else { false } }
            if case .answer(let status)? = action { return respond(status, to: request, transaction, at: now) }
            try route(request, transaction, on: flow, at: now)
        } catch {
            respond(error.code.statusCode ?? 400, to: request, transaction, at: now)
        }
    }

    /// Finds where a request is to go; what may not go there is answered here.
    ///
    /// Source: RFC 3261, sections 16.3 to 16.5
    private mutating func route(_ received: SIPMessage, _ transaction: TransactionID, on flow: Flow, at now: MediaTime)
        throws(SIPError)
    {
        var request = received
        let isLetIn = try takeOwnRoutes(of: &request)
        let uri = try request.requestURI()
        if request.method == .register, isOwn(uri) { return try register(request, transaction, on: flow, at: now) }
        if try request.value(.maxForwards, as: WholeNumber.self)?.value == 0 {
            guard request.method == .options else { return respond(483, to: request, transaction, at: now) }
            return answerOptions(request, transaction, at: now)
        }
        let unknown = try request.tokens(of: .proxyRequire)
        guard unknown.isEmpty else {
            let value = unknown.joined(separator: ", ")
            return respond(420, to: request, transaction, [(.unsupported, value)], at: now)
        }
        let mark = try mark(of: request)
        guard try !hasPassed(request, mark) else { return respond(482, to: request, transaction, at: now) }
        // What is for a user of its own is in no call: phones are called there by their Contacts.
        if !isLetIn || isOwn(uri) { guard try isFromUser(request, uri, transaction, at: now) else { return } }
        guard let targets = try targets(of: request, uri, transaction, at: now) else { return }
        forward(request, to: targets, mark, transaction, on: flow, at: now)
    }

    /// Whether a request may pass: from whom it says, or from a stranger to a user; if not, it has been answered.
    private mutating func isFromUser(
        _ request: SIPMessage,
        _ uri: SIPURI,
        _ transaction: TransactionID,
        at now: MediaTime
    ) throws(SIPError) -> Bool {
        guard let from = try request.from()?.uri, claimsDomain(from) else {
            // A Route would lead it on past its user.
            let isForUser = isOwn(uri) && request.first(.route) == nil
            if !isForUser { respond(403, to: request, transaction, at: now) }
            return isForUser
        }
        guard let user = user(of: from) else {
            respond(403, to: request, transaction, at: now)
            return false
        }
        return isProved(user, request, transaction, .proxy, at: now)
    }

    /// Where a request goes; nil when it was answered here.
    private mutating func targets(
        of request: SIPMessage,
        _ uri: SIPURI,
        _ transaction: TransactionID,
        at now: MediaTime
    ) throws(SIPError) -> [ForwardTarget]? {
        // What other proxies are named for goes to them.
        guard request.first(.route) == nil else { return [ForwardTarget(uri: uri)] }
        guard isOwn(uri) else { return [ForwardTarget(uri: uri, flow: locations.binding(at: uri)?.flow)] }
        guard let name = uri.user else {
            if request.method == .options {
                answerOptions(request, transaction, at: now)
            } else {
                respond(404, to: request, transaction, at: now)
            }
            return nil
        }
        // Who is called by sips is not reached in the clear (RFC 3261, section 26.2.2).
        let bindings = locations.bindings(of: name).filter { binding in
            binding.isReachable && (uri.scheme != .sips || binding.contact.uri.scheme == .sips)
        }
        guard user(of: uri) != nil else {
            respond(404, to: request, transaction, at: now)
            return nil
        }
        if let status = keep(request, for: name, bindings, at: now) {
            respond(status, to: request, transaction, at: now)
            return nil
        }
        guard !bindings.isEmpty else {
            respond(480, to: request, transaction, at: now)
            return nil
        }
        let chosen = configuration.forking == .all ? bindings[...] : bindings.prefix(1)
        return chosen.compactMap { binding in
            var target = ForwardTarget(binding)
            guard sleeps(binding) else { return target }
            // Only a call is worth waiting for.
            guard request.method == .invite else { return nil }
            target.sleeper = binding
            return target
        }
    }

    private mutating func answerOptions(_ request: SIPMessage, _ transaction: TransactionID, at now: MediaTime) {
        let methods: [SIPMethod] = [
            .invite, .ack, .cancel, .bye, .options, .register, .message, .info, .update, .prack,
        ]
        respond(200, to: request, transaction, [(.allow, methods.map(\.name).joined(separator: ", "))], at: now)
    }

    /// The ACK to a 2xx goes the way of its call, without a transaction.
    mutating func receiveAck(_ received: SIPMessage, on flow: Flow, at now: MediaTime) {
        do {
            var ack = received
            let isLetIn = try takeOwnRoutes(of: &ack)
            let uri = try ack.requestURI()
            let binding = locations.binding(at: uri)
            let isRouted = ack.first(.route) != nil
            guard isLetIn || binding != nil && !isRouted, !isOwn(uri) || isRouted,
                try ack.value(.maxForwards, as: WholeNumber.self)?.value != 0
            else { return }
            passOn(ack: try passedOn(ack, to: ForwardTarget(uri: uri)), on: binding?.flow, at: now)
        } catch {
            // It cannot be answered.
        }
    }

    // MARK: Digest

    /// Whether a user has sent a request; if not, it has been challenged or refused.
    mutating func isProved(
        _ user: ServerUser,
        _ request: SIPMessage,
        _ transaction: TransactionID,
        _ kind: DigestKind,
        at now: MediaTime
    ) -> Bool {
        guard let credentials = user.credentials else { return true }
        var digest = kind == .server ? registrarDigest : proxyDigest
        let verdict = digest.verify(request, at: now) { asked in
            // One who is somebody else here may know that one's password, and nothing more.
            asked == .name(credentials.userName) ? credentials : nil
        }
        var isProved = false
        switch verdict {
        case .accepted: isProved = true
        case .badRequest: respond(400, to: request, transaction, at: now)
        case .missing, .wrong, .stale:
            let challenges = digest.challenges(isStale: verdict == .stale, at: now)
            let headers = challenges.map { (kind.challengeHeader, $0.bytes.text) }
            respond(kind.statusCode, to: request, transaction, headers, at: now)
        }
        if kind == .server { registrarDigest = digest } else { proxyDigest = digest }
        return isProved
    }

    // MARK: Answers

    /// Answers a request without a body.
    mutating func respond(
        _ status: Int,
        to request: SIPMessage,
        _ transaction: TransactionID,
        _ headers: [(name: HeaderName, value: String)] = [],
        at now: MediaTime
    ) {
        do {
            let tag = generator.next().hexadecimal
            var response = try request.response(status: status, reason: SIPStatus.phrase(status), tag: tag)
            for header in headers { try response.append(header.name, Bytes(header.value)) }
            respond(response, transaction, at: now)
        } catch {
            // What was read from one line can be written in one; nothing else is here.
            assertionFailure(error.message)
        }
    }

    mutating func respond(_ response: SIPMessage, _ transaction: TransactionID, at now: MediaTime) {
        var response = response
        if let product = configuration.product { try? response.set(.server, to: Bytes(product)) }
        transactions.respond(response, to: transaction, at: now)
    }
}
