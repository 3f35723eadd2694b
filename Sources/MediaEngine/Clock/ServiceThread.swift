import CallBasics
import Glibc
import Synchronization

/// Calls background services every few milliseconds in real time, so that the media thread never touches a file.
///
/// One that waits for another program has a thread of its own, so that the others do not wait with it; only where the
/// system has no room for one is it served with the others.
/// Thread: control, any but its own. The list has a lock of its own, so that `add` never waits for a disk.
package final class ServiceThread: @unchecked Sendable {
    /// A service, and who serves it.
    private final class Entry: Sendable {
        let service: any BackgroundService
        /// Held while the service runs.
        let serving = Mutex(())
        let pipe: PipeService?

        init(_ service: any BackgroundService) {
            self.service = service
            let waits = (service as? any WaitingService)?.waitsForOthers ?? false
            pipe = waits ? PipeService(service) : nil
        }
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        var thread: MediaThread?
    }

    private let interval: Duration
    private let state = Mutex(State())
    private let isStopping = Atomic<Bool>(false)

    /// A thread that serves every `interval`; `start` starts it, and it runs until `stop`.
    package init(interval: Duration = .milliseconds(20)) {
        self.interval = interval
    }

    /// Serves `service` from now on.
    package func add(_ service: any BackgroundService) {
        state.withLock { state in
            guard state.entries[ObjectIdentifier(service)] == nil else { return }
            state.entries[ObjectIdentifier(service)] = Entry(service)
        }
    }

    /// Stops serving `service`; when it returns the service is not running.
    ///
    /// It waits for `service` when that runs, not for others. One that waits for another program is not waited for: it may
    /// run until it hears from there.
    package func remove(_ service: any BackgroundService) {
        let entry = state.withLock { $0.entries.removeValue(forKey: ObjectIdentifier(service)) }
        guard let entry else { return }
        if let pipe = entry.pipe { pipe.stop() } else { entry.serving.withLock { _ in } }
    }

    /// Begins to serve.
    ///
    /// - Throws: `DriverError` when the thread cannot be made.
    package func start() throws(DriverError) {
        try state.withLock { state throws(DriverError) in
            guard state.thread == nil else { return }
            isStopping.store(false, ordering: .releasing)
            state.thread = try MediaThread(name: "media-service", priority: nil) { [unowned self] _ in run() }
        }
    }

    /// Stops after one last round, so that what the media thread left in rings reaches its file.
    ///
    /// What waits for another program is not waited for: it is emptied by whoever closes it.
    package func stop() {
        isStopping.store(true, ordering: .releasing)
        let thread = state.withLock { state in
            defer { state.thread = nil }
            return state.thread
        }
        thread?.join()
        let pipes = state.withLock { state in
            defer { state.entries = state.entries.filter { $0.value.pipe == nil } }
            return state.entries.values.compactMap(\.pipe)
        }
        for pipe in pipes { pipe.stop() }
    }

    private func run() {
        let pause = UInt32(interval.nanoseconds / 1000)
        while !isStopping.load(ordering: .acquiring) {
            serve()
            usleep(pause)
        }
        serve()
    }

    private func serve() {
        for (identifier, entry) in state.withLock({ $0.entries }) where entry.pipe == nil {
            entry.serving.withLock { _ in
                // It may have been removed while others ran.
                guard state.withLock({ $0.entries[identifier] === entry }) else { return }
                entry.service.serve()
            }
        }
    }
}
