import Glibc
import Synchronization

/// Serves one end of a pipe on a thread of its own: it waits for whoever has the other end, and nobody waits for it.
final class PipeService: Sendable {
    private let isStopping = Atomic(false)

    /// Begins to serve `service` until that `isComplete`.
    init(_ service: any BackgroundService, until isComplete: @escaping @Sendable () -> Bool = { false }) {
        BlockingWork.start { [self] in
            while !isStopping.load(ordering: .acquiring), !isComplete() {
                service.serve()
                usleep(5000)
            }
        }
    }

    /// Serves no longer; the thread ends when the pipe gives or takes something, or ends itself.
    func stop() { isStopping.store(true, ordering: .releasing) }
}
