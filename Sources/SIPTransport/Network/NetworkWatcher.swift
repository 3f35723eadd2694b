package import CallBasics

/// Watches the ways to servers, and tells when one changes.
///
/// Thread: any. It ends with its last reference, or before by `close`.
package final class NetworkWatcher: Sendable {
    /// Changes that may wait for their listener; one who is slower gets the last of them.
    package static let eventLimit = 16

    private let worker: NetworkWorker

    /// A watcher with a thread of its own, which sleeps until the kernel tells something.
    ///
    /// - Throws: `unavailable` when the kernel gives no socket, descriptor or thread for it.
    package init() throws(NetworkWatchError) {
        worker = try NetworkWorker()
        try worker.start()
    }

    deinit {
        worker.stop()
    }

    /// What becomes of the way to `remote`.
    ///
    /// It begins with `found` as soon as there is a way, mostly at once. It ends with the watcher.
    package func changes(towards remote: SocketAddress) -> AsyncStream<NetworkChange> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: NetworkChange.self,
            bufferingPolicy: .bufferingNewest(Self.eventLimit)
        )
        worker.add(remote, continuation)
        return stream
    }

    /// Ends the watching; the streams end.
    package func close() { worker.stop() }
}
