import CallBasics
import Glibc
import Synchronization

/// Calls background services every few milliseconds in real time, so that the media thread never touches a file.
///
/// Thread: control, any but its own. The list has a lock of its own, so that `add` never waits for a disk.
package final class ServiceThread: @unchecked Sendable {
    private struct State {
        var services: [ObjectIdentifier: any BackgroundService] = [:]
        var thread: MediaThread?
    }

    private let interval: Duration
    private let state = Mutex(State())
    /// Held while a service runs.
    private let serving = Mutex(())
    private let isStopping = Atomic<Bool>(false)

    /// A thread that serves every `interval`; `start` starts it, and it runs until `stop`.
    package init(interval: Duration = .milliseconds(20)) {
        self.interval = interval
    }

    /// Serves `service` from now on.
    package func add(_ service: any BackgroundService) {
        state.withLock { $0.services[ObjectIdentifier(service)] = service }
    }

    /// Stops serving `service`; when it returns the service is not running.
    ///
    /// It waits for a service that runs.
    package func remove(_ service: any BackgroundService) {
        state.withLock { $0.services[ObjectIdentifier(service)] = nil }
        serving.withLock { _ in }
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
    package func stop() {
        isStopping.store(true, ordering: .releasing)
        let thread = state.withLock { state in
            defer { state.thread = nil }
            return state.thread
        }
        thread?.join()
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
        for (identifier, service) in state.withLock({ $0.services }) {
            serving.withLock { _ in
                // It may have been removed while others ran.
                guard state.withLock({ $0.services[identifier] != nil }) else { return }
                service.serve()
            }
        }
    }
}
