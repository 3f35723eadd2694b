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
    ///   - gap: That something was left out.
    func tell(_ failure: Failure?, gap: Failure?) {
        let (handler, news) = state.withLock { state in
            var news: [Failure] = []
            guard state.handler != nil else { return (state.handler, news) }
            if let failure, !state.hasToldFailure { news.append(failure) }
            if let gap, !state.hasToldGap { news.append(gap) }
            state.hasToldFailure = state.hasToldFailure || failure != nil
            state.hasToldGap = state.hasToldGap || gap != nil
            return (state.handler, news)
        }
        for error in news { handler?(error) }
    }
}
