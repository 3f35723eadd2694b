import Glibc
import Synchronization

/// Serves one end of a pipe on a thread of its own: it waits for whoever has the other end, and nobody waits for it.
final class PipeService: Sendable {
    private let isStopping = Atomic(false)

    /// Begins to serve `service` until that `isComplete`; nil where there is no room for a thread.
    init?(_ service: any BackgroundService, until isComplete: @escaping @Sendable () -> Bool = { false }) {
        let hasThread = BlockingWork.startThread { [self] in
            while !isStopping.load(ordering: .acquiring), !isComplete() {
                service.serve()
                usleep(20_000)
            }
        }
        guard hasThread else { return nil }
    }

    /// Serves no longer; the thread ends when the pipe gives or takes something, or ends itself.
    func stop() { isStopping.store(true, ordering: .releasing) }
}
