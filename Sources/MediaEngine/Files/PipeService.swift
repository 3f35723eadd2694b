import Glibc
import Synchronization

/// Serves the feed of a pipe on a thread of its own: it waits for whoever writes into the other end, and nobody waits for
/// it.
final class PipeService: Sendable {
    private let isStopping = Atomic(false)

    /// Begins to serve `feed`.
    init(_ feed: WAVFeed) {
        BlockingWork.start { [self] in
            while !isStopping.load(ordering: .acquiring), !feed.isComplete {
                feed.serve()
                usleep(5000)
            }
        }
    }

    /// Serves no longer; the thread ends when the pipe gives something, or ends itself.
    func stop() { isStopping.store(true, ordering: .releasing) }
}
