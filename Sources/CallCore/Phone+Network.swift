internal import CallBasics
internal import SIP
internal import SIPTransport
internal import Synchronization

/// The phone and the own address, which follows the machine.
extension Phone {
    /// Moves with the address that leads out of the machine.
    ///
    /// Where the kernel tells nothing of the network, the phone stays.
    func followNetwork() {
        do throws(NetworkWatchError) { watcher = try NetworkWatcher() } catch { return }
        guard let changes = watcher?.changes(towards: Self.elsewhere) else { return }
        Task { [weak self] in
            for await change in changes {
                guard let self else { return }
                await follow(change)
            }
        }
    }

    private func follow(_ change: NetworkChange) async {
        guard let source = change.path?.source, source.isIPv4 == localAddress.isIPv4 else {
            // A phone that was made without a network has the loopback, which stays.
            network.machine = localAddress.host == "127.0.0.1"
            return tellNetwork()
        }
        if source != localAddress.with(port: 0) { await move(to: source) }
        network.machine = true
        tellNetwork()
    }

    /// Whether there is a network, for SIP and for sound, as the application and the machine say.
    public var isNetworkReachable: Bool { isSIPReachable && isMediaReachable }

    /// Whether there is a network for SIP: accounts, calls and texts.
    public var isSIPReachable: Bool { network.sip && network.machine }

    /// Whether there is a network for the sound of calls.
    public var isMediaReachable: Bool { network.media && network.machine }

    /// Says whether there is a network, where the application knows more of it than the machine, as of one that is not to be
    /// used; at first there is.
    ///
    /// Without one, accounts are not registered, and `events` says so at once; calls stay for a minute, and what is wanted of them
    /// waits. Once it is back, accounts register, and each call asks whether its other side is still there. Without that, too, a
    /// phone that follows the machine's address does the same by itself when the last way out of the machine goes and comes.
    ///
    /// It says so of SIP and of sound; `setSIPReachable` and `setMediaReachable` of one of them.
    public func setNetworkReachable(_ isReachable: Bool) {
        // What each call asks when SIP is back tells where its sound is, too.
        guard network.sip != isReachable else { return setMediaReachable(isReachable) }
        network.media = isReachable
        if isReachable { catchUp() }
        setSIPReachable(isReachable)
    }

    /// Says whether there is a network for SIP, as `setNetworkReachable` does; sound flows on where it can.
    public func setSIPReachable(_ isReachable: Bool) {
        network.sip = isReachable
        tellNetwork()
    }

    /// Says whether there is a network for the sound of calls, as where a mobile network takes signalling alone.
    ///
    /// Without one, no call is made or answered (`noNetwork`); those that are on stay, and their ports where they are, also when the
    /// phone moves. Once it is back, these go to the phone's address, and the other sides are told where sound is wanted (re-INVITE).
    public func setMediaReachable(_ isReachable: Bool) {
        guard isReachable != network.media else { return }
        network.media = isReachable
        guard isReachable else { return }
        network.isSoundBehind = true
        catchUp()
    }

    /// The sound of calls goes where the phone is, if it is not there.
    private func catchUp() {
        guard network.isSoundBehind else { return }
        network.isSoundBehind = false
        let address = localAddress
        for call in calls.values { Task { await call.move(to: address) } }
    }

    private func tellNetwork() {
        let isReachable = isSIPReachable
        act { agent, now in agent.setNetworkReachable(isReachable, at: now) }
        noteOutboxNetwork(isReachable)
    }

    // MARK: Background

    /// Prepares for the process to be suspended: registers all accounts anew, so that pushes find their way, and waits until the
    /// servers have answered, 4 s at most.
    ///
    /// Calls go on, and so does the phone if the process is not suspended after all.
    public func enterBackground() async {
        let handles = Set(accounts.map(\.handle))
        guard !isClosed, isSIPReachable, !handles.isEmpty else { return }
        let giveUp = Task { [weak self] in
            do { try await Task.sleep(for: .seconds(4)) } catch { return }
            for handle in handles { await self?.noteRenewed(handle) }
        }
        await withCheckedContinuation { done in
            renewals.append((handles, done))
            refreshRegistrations()
        }
        giveUp.cancel()
    }

    /// The process runs again: no connection is trusted any more, and all accounts register anew.
    ///
    /// A phone whose process slept finds that out by itself, within a second.
    public func enterForeground() {
        act { agent, now in agent.handleAbsence(at: now) }
        wakeNetwork()
    }

    /// Has a network come up that waits for something to send, where that is wanted; nothing waits for it.
    func wakeNetwork() {
        guard configuration.wakesNetwork, !isClosed else { return }
        var seen: Set<String> = []
        for account in accounts {
            let handle = account.handle
            guard let server = act({ agent, _ in agent.server(of: handle) }),
                seen.insert("\(server.host) \(server.port)").inserted
            else { continue }
            Task.detached { await NetworkWake.touch(server.host, port: server.port) }
        }
    }

    /// An account was registered anew, or will not be.
    func noteRenewed(_ handle: AccountHandle) {
        for index in renewals.indices { renewals[index].waiting.remove(handle) }
        let done = renewals.filter(\.waiting.isEmpty)
        renewals.removeAll(where: \.waiting.isEmpty)
        for renewal in done { renewal.done.resume() }
    }

    /// Listens at another own address, registers there, and has the sound of calls sent there.
    func move(to source: SocketAddress) async {
        guard !isClosed else { return }
        do {
            let address = try await endpoint.move(to: source)
            place.withLock { $0 = address }
            if network.media {
                // What each call is told next has to name where it is.
                await withDiscardingTaskGroup { group in
                    for call in calls.values { group.addTask { await call.move(to: address) } }
                }
            } else {
                network.isSoundBehind = true
            }
            continuation.yield(.moved(address))
        } catch {
            // The address has gone again, which the next change tells.
        }
    }
}

/// What there is a network for, as the application says, and whether there is one, as the machine does.
struct PhoneNetwork: Sendable {
    var sip = true
    var media = true
    var machine = true
    /// Whether the phone has moved, and the sound of its calls has not.
    var isSoundBehind = false
}
