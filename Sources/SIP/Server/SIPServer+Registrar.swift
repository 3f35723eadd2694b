internal import CallBasics

extension SIPServer {
    /// Answers a REGISTER.
    ///
    /// Throws: `badRequest` when a header breaks the grammar
    /// Source: RFC 3261, section 10.3
    mutating func register(_ request: SIPMessage, _ transaction: TransactionID, on flow: Flow, at now: MediaTime)
        throws(SIPError)
    {
        guard let to = try request.to(), to.uri.scheme == .sip || to.uri.scheme == .sips else {
            return respond(400, to: request, transaction, at: now)
        }
        guard isOwn(to.uri), let name = to.uri.user, let user = user(of: to.uri) else {
            return respond(404, to: request, transaction, at: now)
        }
        guard isProved(user, request, transaction, .server, at: now) else { return }
        let unknown = try request.tokens(of: .require).filter {
            !["path", "outbound", "gruu"].contains($0.lowercased())
        }
        guard unknown.isEmpty else {
            return respond(420, to: request, transaction, [(.unsupported, unknown.joined(separator: ", "))], at: now)
        }
        let path = try request.list(.path, as: NameAddress.self)
        let supported = try request.tokens(of: .supported).map { $0.lowercased() }
        guard path.isEmpty || supported.contains("path") else {
            return respond(421, to: request, transaction, [(.require, "path")], at: now)
        }
        let change = RegistrationChange(
            user: name,
            path: path,
            flow: request.count(of: .via) == 1 ? flow : nil,
            callID: request.callID?.detached ?? [],
            number: try request.cSeq()?.number ?? 0
        )
        if let status = try apply(change, of: request, at: now) {
            let shortest = String(configuration.expires.lowerBound)
            return respond(status, to: request, transaction, status == 423 ? [(.minExpires, shortest)] : [], at: now)
        }
        var response = try request.response(
            status: 200,
            reason: SIPStatus.phrase(200),
            tag: generator.next().hexadecimal
        )
        for value in path { try response.append(.path, value) }
        for binding in locations.bindings(of: name) {
            var contact = binding.contact
            contact.parameters.set("expires", to: Bytes("\(binding.seconds(at: now))"))
            try response.append(.contact, contact)
        }
        // It keeps to the flow: that is what outbound promises.
        let isNamed = try request.contacts().contains { $0.parameters.contains("reg-id") }
        if isNamed, supported.contains("outbound"), change.flow != nil {
            try response.append(.require, Bytes("outbound"))
        }
        if let features = try featureCapabilities(for: request) {
            try response.append(.featureCaps, features)
        }
        respond(response, transaction, at: now)
        handleAwakening(of: name, by: { $0.callID == change.callID && $0.number == change.number }, at: now)
    }

    /// Takes all Contacts of a REGISTER or none; a status when it is refused.
    private mutating func apply(_ change: RegistrationChange, of request: SIPMessage, at now: MediaTime)
        throws(SIPError) -> Int?
    {
        let contacts = try request.contacts()
        let general: WholeNumber? = try request.value(.expires)
        let known = locations.bindings(of: change.user)
        let isLate = known.contains { $0.callID == change.callID && change.number <= $0.number }
        guard !request.hasWildcardContact else {
            guard contacts.isEmpty, general?.value == 0 else { return 400 }
            guard !isLate else { return 500 }
            remove(known)
            return nil
        }
        guard !contacts.isEmpty else { return nil }
        guard !isLate else { return 500 }
        var wanted: [(contact: NameAddress, seconds: UInt32, push: PushParameters?)] = []
        for contact in contacts {
            let asked = try contact.expires() ?? general?.value ?? configuration.expires.upperBound
            guard asked == 0 || asked >= configuration.expires.lowerBound else { return 423 }
            // One that leads back here would only go round.
            guard !isOwn(contact.uri) else { return 403 }
            let push = asked == 0 ? nil : try pushParameters(of: contact)
            if let push, configuration.push?.providers.contains(push.provider) == false, !push.provider.isEmpty {
                return 555
            }
            wanted.append((contact, min(asked, configuration.expires.upperBound), push))
        }
        let isKept = { (binding: Binding) in !wanted.contains { binding.isSame(as: $0.contact) } }
        let addedCount = wanted.count { $0.seconds > 0 }
        let removedCount = known.count { !isKept($0) }
        guard known.count(where: isKept) + addedCount <= configuration.bindingsPerUser,
            locations.count - removedCount + addedCount <= configuration.bindingCount
        else { return 503 }
        for item in wanted {
            guard item.seconds > 0 else {
                remove(known.filter { $0.isSame(as: item.contact) || $0.isSame(asRemoved: item.contact) })
                continue
            }
            bindingOrder += 1
            let push = item.push.flatMap { $0.isQuery ? nil : $0 }
            locations.insert(change.binding(item.contact, push, seconds: item.seconds, order: bindingOrder, at: now))
            let contact = item.contact.uri.withoutPush
            tell(.binding(user: change.user, contact: contact, seconds: item.seconds, push: push))
        }
        return nil
    }

    private mutating func remove(_ removed: [Binding]) {
        for binding in removed {
            locations.remove(binding.user) { $0.order == binding.order }
            tell(.binding(user: binding.user, contact: binding.contact.uri.withoutPush, seconds: 0))
        }
    }
}

/// What a REGISTER says of all its Contacts.
private struct RegistrationChange {
    let user: String
    let path: [NameAddress]
    let flow: Flow?
    let callID: Bytes
    let number: UInt32

    func binding(
        _ contact: NameAddress,
        _ push: PushParameters?,
        seconds: UInt32,
        order: UInt64,
        at now: MediaTime
    ) -> Binding {
        var kept = contact.detached
        kept.parameters.remove("expires")
        return Binding(
            user: user,
            contact: kept,
            callID: callID,
            number: number,
            path: path.map(\.detached),
            flow: flow,
            push: push,
            expiresAt: now + .seconds(Int64(seconds)),
            order: order
        )
    }
}
