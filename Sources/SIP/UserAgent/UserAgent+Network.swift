package import CallBasics

extension UserAgent {
    /// Whether there is a network, as was said last.
    package var isNetworkReachable: Bool { isReachable }

    /// Says whether there is a network; at first there is.
    ///
    /// Without one, accounts are not registered, and say so; calls stay for `networkPatience`, and what is wanted of them
    /// waits. Once it is back, no connection is trusted, accounts register, and each call asks whether the other side is
    /// still there. Own calls that were not answered yet go the way of their INVITE.
    package mutating func setNetworkReachable(_ isReachable: Bool, at now: MediaTime) {
        guard isReachable != self.isReachable else { return }
        self.isReachable = isReachable
        if isReachable { flows.suspectAll(at: now) }
        for handle in accounts.names {
            guard var account = accounts[handle] else { continue }
            account.registration?.setNetworkReachable(isReachable, at: now)
            accounts[handle] = account
            settle(handle, at: now)
        }
        networkDeadline = isReachable ? nil : now + configuration.networkPatience
        if isReachable {
            noteMoved()
            for handle in calls.names {
                update(handle) { call in if call.stage == .established, call.room == nil { call.wantsRefresh = true } }
                goOn(handle, at: now)
            }
        }
        settle(at: now)
    }

    /// The network has been away for too long.
    mutating func handleNetworkTimeout(at now: MediaTime) {
        guard let deadline = networkDeadline, deadline <= now else { return }
        networkDeadline = nil
        let end = CallEnd(.network, .failed(.unanswered(.unreachable, triedCount: 1)))
        for handle in calls.names {
            guard let call = calls[handle], call.stage == .established, call.room == nil else { continue }
            leave(handle, end, at: now)
        }
    }
}
