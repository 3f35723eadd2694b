import Synchronization

/// Brings events from a runner to those who wait for them, off the media thread.
final class EventPump: BackgroundService {
    typealias Handler = @Sendable (GraphEvent) -> Void

    private let runner: GraphRunner
    private let handlers = Mutex<[FilterID: Handler]>([:])

    init(_ runner: GraphRunner) {
        self.runner = runner
    }

    /// Hands the events of `filter` to `handler` from now on.
    func listen(to filter: Filter, _ handler: @escaping Handler) {
        handlers.withLock { $0[filter.id] = handler }
    }

    /// Hands the events of `filters` to nobody any more.
    func forget(_ filters: [Filter]) {
        handlers.withLock { handlers in
            for filter in filters { handlers[filter.id] = nil }
        }
    }

    func serve() {
        var waiting: [(Handler, GraphEvent)] = []
        let known = handlers.withLock { $0 }
        runner.drainEvents { event in
            if let handler = known[event.filter] { waiting.append((handler, event)) }
        }
        for (handler, event) in waiting { handler(event) }
    }
}
