internal import CallBasics
package import SIP

/// The accounts of a phone.
extension Phone {
    /// Registers an account, and keeps it registered: also at servers that are gone for a while, and behind a NAT.
    ///
    /// An account of the same address is replaced. What becomes of it, now and later, `events` tells, too. One that was refused,
    /// or not answered, stays, and is tried again until `unregister`.
    ///
    /// - Throws: `PhoneError` when the server refuses it, or does not answer, or there is no network
    public func register(_ account: PhoneAccount) async throws { try await register(account, recalling: []) }

    /// As the other; the account goes on where that of another process has ended, and is in the rooms that it was in.
    package func register(
        _ account: PhoneAccount,
        recalling memories: [DigestMemory],
        rooms: [(address: String, subject: String?)] = []
    ) async throws {
        let made = try account.configuration(instance: instance)
        guard !isClosed else { throw Self.closed }
        // Those of the account that it replaces are forgotten with that.
        let kept = openRooms.values.filter { $0.account == account.address }.map { ($0.address, $0.subject) } + rooms
        if let former = accounts.firstIndex(where: { $0.address == account.address }) {
            forget(accounts.remove(at: former).handle)
            noteOutbox(account.address, isRegistered: false)
        }
        let handle = act { agent, _ in
            let handle = agent.addAccount(made)
            agent.recall(memories, of: handle)
            return handle
        }
        accounts.append((account.address, handle))
        try await withCheckedThrowingContinuation { waiter in
            registering[handle] = waiter
            do throws(SIPError) {
                try act { agent, now throws(SIPError) in try agent.register(handle, at: now) }
            } catch {
                settle(handle, PhoneError(.invalid, error.message))
            }
            for room in kept { reopen(room.0, subject: room.1, from: account.address) }
            if !isSIPReachable { settle(handle, Self.noNetwork) }
        }
    }

    /// What each account knows of the realms that have asked it, for the next process.
    package var digestMemories: [String: [DigestMemory]] {
        accounts.reduce(into: [:]) { memories, account in
            let handle = account.handle
            memories[account.address] = act { agent, _ in agent.digestMemories(of: handle) }
        }
    }

    /// Takes the binding of an account away; others of the same address, of other phones, stay.
    public func unregister(_ address: String) {
        guard let place = accounts.firstIndex(where: { $0.address == address }) else { return }
        let handle = accounts.remove(at: place).handle
        settle(handle, PhoneError(.state, "\(address) was unregistered."))
        noteRenewed(handle)
        noteOutbox(address, isRegistered: false)
        act { agent, now in agent.unregister(handle, at: now) }
    }

    func handle(of address: String) throws(PhoneError) -> AccountHandle {
        if let account = accounts.first(where: { $0.address == address }) { return account.handle }
        throw PhoneError(.state, "\(address) is no account of this phone. Register it first.")
    }

    // MARK: What the agent tells

    func note(_ handle: AccountHandle, _ state: Registration.State, _ reason: Registration.Reason) {
        let address = accounts.first { $0.handle == handle }?.address
        if let address { noteOutbox(address, state) }
        switch state {
        case .ok:
            noteRenewed(handle)
            settle(handle, nil)
            if let address { continuation.yield(.registered(address)) }
        case .failed:
            noteRenewed(handle)
            let problem = problem(reason)
            settle(handle, problem)
            if let address { continuation.yield(.unregistered(address, problem)) }
        case .cleared: act { agent, now in agent.removeAccount(handle, at: now) }
        case .none:
            noteRenewed(handle)
            guard reason == .networkDown else { return }
            settle(handle, Self.noNetwork)
            if let address { continuation.yield(.unregistered(address, Self.noNetwork)) }
        case .progress, .refreshing: break
        }
    }

    private func noteOutbox(_ address: String, _ state: Registration.State) {
        switch state {
        case .ok: noteOutbox(address, isRegistered: true)
        case .failed, .cleared, .none: noteOutbox(address, isRegistered: false)
        case .progress, .refreshing: break
        }
    }

    private func problem(_ reason: Registration.Reason) -> PhoneError {
        switch reason {
        case .status(let status) where status == 401 || status == 407:
            PhoneError(.refused(status: status), "The server wants another password, or another name (\(status)).")
        case .status(let status):
            PhoneError(.refused(status: status), "The server refused the registration: \(status).")
        case .failure:
            PhoneError(.unanswered, (securityFailure ?? "The registrar cannot be reached.") + " It is tried again.")
        case .notListed: PhoneError(.unanswered, "The server lists other phones and not this one. It is tried again.")
        default: PhoneError(.state, "The account cannot be registered.")
        }
    }

    func settle(_ handle: AccountHandle, _ problem: PhoneError?) {
        registering.removeValue(forKey: handle)?.resume(with: Self.result(problem))
    }

    private func forget(_ handle: AccountHandle) {
        settle(handle, PhoneError(.state, "Another account of the same address has taken its place."))
        noteRenewed(handle)
        act { agent, now in agent.removeAccount(handle, at: now) }
    }
}
