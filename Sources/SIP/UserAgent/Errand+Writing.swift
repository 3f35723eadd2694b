internal import CallBasics

/// What a request is given before it leaves.
extension UserAgent {
    /// Gives a request that leaves once more the next number of its dialog.
    mutating func renumber(_ errand: inout Errand) throws(SIPError) {
        guard let cSeq = try errand.request.cSeq() else { return }
        var number = cSeq.number + 1
        switch errand.owner {
        case .registration(let handle):
            if var account = accounts[handle], var registration = account.registration {
                try registration.renumber(&errand.request)
                account.registration = registration
                accounts[handle] = account
            }
            return
        case .change(let handle), .within(let handle), .refer(let handle), .notification(let handle):
            if var call = calls[handle], let next = call.dialog?.takeNumber() {
                number = next
                calls[handle] = call
            }
        case .acknowledgement(let id, let dialog):
            if var invite = errands[id], let next = invite.forks?.takeNumber(in: dialog) {
                number = next
                errands[id] = invite
            } else if let handle = callOfDialog[dialog], var call = calls[handle],
                let next = call.dialog?.takeNumber()
            {
                number = next
                calls[handle] = call
            }
        case .subscription(let handle):
            guard var subscription = subscriptions[handle] else { break }
            number = subscription.dialog?.takeNumber() ?? number
            // A dialog that a NOTIFY makes goes on from there.
            if subscription.dialog == nil { subscription.number = number }
            subscriptions[handle] = subscription
        case .invite, .success, .farewell, .roomFarewell, .user: break
        }
        try errand.request.set(.cSeq, to: CSeq(number, cSeq.method))
    }

    func contact(on flow: Flow, of errand: Errand) -> NameAddress? {
        let account = errand.account.flatMap { accounts[$0] }
        let user = (account?.identity ?? configuration.identity).uri.userBytes
        // Who is reached by the own connection alone is not told that of the registrar.
        let isElsewhere = isReachedByConnection(flow) && account?.flow != flow
        var seen = isElsewhere ? nil : account?.publicAddress(on: flow)
        // What a registrar sees is told when it has bound that.
        if case .registration = errand.owner {} else { seen = seen ?? flows.ownEnd(of: flow) }
        return contact(on: flow, at: seen, user: user, isSecure: errand.request.isSecure)
    }

    /// Whether the other side can send by this connection alone, since nobody listens by TLS.
    private func isReachedByConnection(_ flow: Flow) -> Bool {
        flow.transport == .tls && !configuration.isReachableByTLS
    }

    /// Notes the own end of such a connection, which a response tells in Via.
    mutating func noteOwnEnd(of flow: Flow, _ response: SIPMessage) {
        guard isReachedByConnection(flow), let via = try? response.topVia(),
            let port = via.responsePort,
            let end = SocketAddress(host: via.received?.text ?? flow.local.host, port: port)
        else { return }
        flows.noteOwnEnd(end, of: flow)
    }

    /// Whether Contact would be another one now than it was in a request that left before the own end of its connection was known.
    func hasOtherContact(_ errand: Errand?, on flow: Flow) -> Bool {
        guard let errand, flows.ownEnd(of: flow) != nil, let former = try? errand.request.contacts().first
        else { return false }
        return contact(on: flow, of: errand)?.uri.bytes != former.uri.bytes
    }

    /// Says where the other side's requests are to come.
    mutating func place(_ contact: NameAddress?, in errand: inout Errand) throws(SIPError) {
        guard let contact else { return }
        guard case .registration(let handle) = errand.owner else {
            guard errand.method?.needsContact == true else { return }
            try errand.request.set(.contact, to: isOfRoom(errand) ? contact.withText : contact)
            return
        }
        guard var account = accounts[handle] else { return }
        try account.registration?.place(contact.uri, in: &errand.request)
        accounts[handle] = account
    }

    /// Whether it is the INVITE of a room's call.
    private func isOfRoom(_ errand: Errand) -> Bool {
        if case .invite(let handle) = errand.owner { calls[handle]?.room != nil } else { false }
    }
}
