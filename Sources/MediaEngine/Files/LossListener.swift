import Synchronization

/// Who hears that something is missing in a file: once that its disk fails, and once that it is too slow.
final class LossListener<Failure: Error>: Sendable {
    private struct State {
        var handler: (@Sendable (Failure) -> Void)?
        var hasToldGap = false
        var hasToldFailure = false
    }

    private let state = Mutex(State())

    init() {}

    func set(_ handler: @escaping @Sendable (Failure) -> Void) {
        state.withLock { $0.handler = handler }
    }

    /// Tells what has not been told yet.
    ///
    /// - Parameters:
    ///   - failure: Why nothing is written any more.
    ///   - gap: That something was left out, which goes without saying once nothing is written.
    func tell(_ failure: Failure?, gap: Failure?) {
        let (handler, news) = state.withLock { state in
            var news: Failure?
            if let failure {
                if !state.hasToldFailure { news = failure }
                state.hasToldFailure = state.handler != nil
            } else if let gap {
                if !state.hasToldGap { news = gap }
                state.hasToldGap = state.handler != nil
            }
            return (state.handler, news)
        }
        if let news { handler?(news) }
    }
}
