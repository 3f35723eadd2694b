internal import CallBasics

/// Phones that sleep: calls wait for them, texts are kept for them, and a push wakes them.
///
///     INVITE ──► push, parked ── REGISTER of the phone ──► on to it
///                            └── patience is over ───────► 480
///     MESSAGE ─► kept, 202, push ── REGISTER of the user ──► on to it ── 2xx ──► forgotten
///
/// A phone that holds a connection is awake; one that came by UDP, or through a proxy, is asleep when it can be woken.
/// Source: RFC 8599, section 5; RFC 3428, section 7
extension SIPServer {
    /// What a REGISTER says of push; nil when it says nothing, or nothing is done about it.
    ///
    /// Throws: `badRequest` when it cannot be used
    func pushParameters(of contact: NameAddress) throws(SIPError) -> PushParameters? {
        configuration.push == nil ? nil : try PushParameters(of: contact)
    }

    /// What a 200 to a REGISTER tells of push; nil when there is nothing to tell.
    ///
    /// Source: RFC 8599, section 5.1
    func featureCapabilities(for request: SIPMessage) throws(SIPError) -> Bytes? {
        guard let settings = configuration.push else { return nil }
        let general: WholeNumber? = try request.value(.expires)
        // Who takes a binding away names the service and no token (RFC 8599, section 4.1.2).
        for contact in try request.contacts() where try contact.expires() ?? general?.value != 0 {
            guard let push = try pushParameters(of: contact) else { continue }
            let services = push.isQuery && push.provider.isEmpty ? settings.providers.sorted() : [push.provider]
            var value = "*" + services.map { ";+sip.pns=\"\($0)\"" }.joined()
            if contact.parameters.contains("+sip.pnsreg") { value += ";+sip.pnsreg=\"\(settings.refreshSeconds)\"" }
            return Bytes(value)
        }
        return nil
    }

    /// Whether a phone has to be woken before it takes anything.
    func sleeps(_ binding: Binding) -> Bool {
        guard configuration.push != nil, binding.push != nil else { return false }
        guard let flow = binding.flow, flow.transport != .udp else { return true }
        return !flows.isUsable(flow)
    }

    // MARK: Calls

    /// Has a way wait for its phone, which is woken.
    mutating func park(_ id: BranchID, for binding: Binding, at now: MediaTime) {
        guard let branch = branches[id], let settings = configuration.push else { return }
        branches.setDeadline(of: id, to: now + settings.patience)
        parkedOfUser[binding.user, default: []].append(id)
        wake(binding, for: .voip, branch.request)
        tell(.parked(user: binding.user, callID: branch.request.callID?.text ?? ""))
    }

    /// Phones of a user have registered: what waited for them goes on.
    mutating func handleAwakening(of user: String, by isOfThis: (Binding) -> Bool, at now: MediaTime) {
        guard parkedOfUser[user] != nil || texts.count(of: user) > 0 else { return }
        for binding in locations.bindings(of: user) where binding.isReachable && isOfThis(binding) {
            handleAwakening(of: binding, at: now)
        }
    }

    private mutating func handleAwakening(of binding: Binding, at now: MediaTime) {
        for id in parkedOfUser[binding.user] ?? [] {
            // Who is called by sips is not reached in the clear, also when the phone comes without it.
            guard var branch = branches[id], let sleeper = branch.sleeper, binding.isSame(as: sleeper.contact),
                !branch.isSecure || binding.contact.uri.scheme == .sips
            else { continue }
            branch.sleeper = nil
            let target = ForwardTarget(binding)
            guard let forward = branch.forward.flatMap({ forwards[$0] }),
                let passed = try? passedOn(forward.request, to: target)
            else { continue }
            branch.request = passed
            branch.flow = target.path.isEmpty ? target.flow : nil
            branches[id] = branch
            branches.setDeadline(of: id, to: nil)
            unpark(id, of: binding.user)
            tell(.released(user: binding.user, callID: passed.callID?.text ?? ""))
            start(id, at: now)
        }
        deliverText(of: binding.user, at: now)
    }

    /// Whether a way waited for a phone, which it does not any more.
    mutating func unpark(_ id: BranchID, of user: String) {
        guard let waiting = parkedOfUser[user] else { return }
        let left = waiting.filter { $0 != id }
        parkedOfUser[user] = left.isEmpty ? nil : left
    }

    private mutating func wake(_ binding: Binding, for kind: ServerPush.Kind, _ request: SIPMessage) {
        let from = (try? request.from()).map { $0.uri.bytes.text } ?? ""
        let push = ServerPush(
            kind: kind,
            user: binding.user,
            callID: request.callID?.text ?? "",
            from: from,
            contact: Secret(binding.contact.uri.bytes)
        )
        tell(.push(push))
    }

    // MARK: Texts

    /// Keeps a text for a user of whom no phone is awake; nil when one is, or it is no text, else what it is answered.
    mutating func keep(_ request: SIPMessage, for user: String, _ bindings: [Binding], at now: MediaTime) -> Int? {
        guard request.method == .message, bindings.allSatisfy(sleeps) else { return nil }
        guard texts.count(of: user) < configuration.keptTextsPerUser, texts.count < configuration.keptTextCount,
            texts.byteCount + request.bytes.count <= configuration.keptTextBytes
        else { return 480 }
        var kept = request
        kept.remove(.via)
        texts.insert(kept, for: user, until: now + configuration.textPatience)
        for binding in bindings { wake(binding, for: .message, request) }
        tell(.kept(user: user, callID: request.callID?.text ?? ""))
        return 202
    }

    /// Sends the oldest text of a user to the phone that came last; the next leaves when that was taken.
    private mutating func deliverText(of user: String, at now: MediaTime) {
        let bindings = locations.bindings(of: user).filter(\.isReachable)
        guard texts.count(of: user) > 0, let binding = bindings.max(by: { $0.order < $1.order }),
            let id = texts.takeNext(
                of: user,
                to: binding.contact.uri.bytes,
                isSecure: binding.contact.uri.scheme == .sips,
                { contact in bindings.contains { $0.contact.uri.bytes == contact } }
            ), let text = texts[id]
        else { return }
        let target = ForwardTarget(binding)
        guard let passed = try? passedOn(text.request, to: target) else {
            texts.remove(id)
            return
        }
        let flow = target.path.isEmpty ? target.flow : nil
        let purpose = Branch.Purpose.text(id, attempt: text.attempt)
        let made = Branch(passed, purpose, flow: flow, isSecure: text.isSecure || passed.isBoundForSIPS)
        start(branches.insert { _ in made }, at: now)
    }

    /// A phone has taken a text, or not: that waits for the next who registers.
    mutating func handleText(_ id: TextID, attempt: Int, status: Int?, at now: MediaTime) {
        // Who refuses it for good does not get it again.
        guard let status, TextStore.isFinal(status) else { return texts.giveBack(id, attempt: attempt) }
        guard let text = texts.remove(id) else { return }
        if status < 300 { tell(.fetched(user: text.user, callID: text.request.callID?.text ?? "")) }
        deliverText(of: text.user, at: now)
    }
}

extension TextStore {
    /// Whether a text is not to be sent again: it was taken, or refused for good.
    static func isFinal(_ status: Int) -> Bool {
        ![401, 407, 408, 480, 486].contains(status) && !(500..<600).contains(status)
    }
}
