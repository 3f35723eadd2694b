internal import CallBasics
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
        guard let source = change.path?.source, source.isIPv4 == localAddress.isIPv4,
            source != localAddress.with(port: 0)
        else { return }
        await move(to: source)
    }

    /// Listens at another own address, registers there, and has the sound of calls sent there.
    func move(to source: SocketAddress) async {
        guard !isClosed else { return }
        do {
            let address = try await endpoint.move(to: source)
            place.withLock { $0 = address }
            for call in calls.values { await call.move(to: address) }
            continuation.yield(.moved(address))
        } catch {
            // The address has gone again, which the next change tells.
        }
    }
}
