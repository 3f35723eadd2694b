/// Waits by each clock that never come to their end, so that the timers of the process keep their descriptors.
///
/// A timer that somebody begins to wait for needs one for its clock; without one the process would end.
public struct HeldTimers: Sendable {
    private let tasks: [Task<Void, Never>]

    /// Begins to wait; the tasks run soon.
    public init() {
        tasks = [
            Task { try? await Task.sleep(for: .seconds(3600), clock: .continuous) },
            Task { try? await Task.sleep(for: .seconds(3600), clock: .suspending) },
        ]
    }

    /// Ends the waits.
    public func end() { for task in tasks { task.cancel() } }
}
