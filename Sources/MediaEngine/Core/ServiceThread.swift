import Glibc
import Synchronization

/// A thread that serves background services in turn, over and over.
///
/// A service that may wait long (a card being opened) delays those beside it on the same thread: keep cards and files
/// on two threads.
/// Thread: every call may be made from any control thread. A service is no longer being served when `remove` returns.
public final class ServiceThread: @unchecked Sendable {
    private struct State {
        var services: [any BackgroundService] = []
        var isStopped = false
        var thread: pthread_t?
    }

    private let state = Mutex(State())
    /// Held while services are being served, so that `remove` can wait for the end of a round.
    private let round = Mutex(())
    private let interval: Duration

    /// A thread that has nothing to do yet; it starts with the first service.
    public init(interval: Duration = .milliseconds(20)) {
        self.interval = interval
    }

    /// Serves `service` from now on.
    public func add(_ service: any BackgroundService) {
        let mustStart = state.withLock { state in
            state.services.append(service)
            return state.thread == nil && !state.isStopped
        }
        if mustStart { start() }
    }

    /// Stops serving `service`, and waits for a call that is under way. Not to be called by a service.
    public func remove(_ service: any BackgroundService) {
        state.withLock { state in state.services.removeAll { $0 === service } }
        round.withLock { _ in }
    }

    /// Ends the thread and waits for it.
    public func stop() {
        let thread = state.withLock { state in
            state.isStopped = true
            state.services.removeAll()
            return state.thread.take()
        }
        if let thread { pthread_join(thread, nil) }
    }

    deinit {
        // The thread holds a reference while it runs, so it has ended by now; only its remains are given back.
        if let thread = state.withLock({ $0.thread }) { pthread_detach(thread) }
    }

    private func start() {
        state.withLock { state in
            guard state.thread == nil, !state.isStopped else { return }
            let context = Unmanaged.passRetained(self).toOpaque()
            var thread = pthread_t()
            let result = pthread_create(
                &thread, nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<ServiceThread>.fromOpaque(context).takeRetainedValue().run()
                    return nil
                }, context)
            if result == 0 {
                state.thread = thread
            } else {
                Unmanaged<ServiceThread>.fromOpaque(context).release()
            }
        }
    }

    private func run() {
        let pause = timespec(
            tv_sec: Int(interval.components.seconds),
            tv_nsec: Int(interval.components.attoseconds / 1_000_000_000)
        )
        while true {
            let isStopped = round.withLock { _ in
                let (services, isStopped) = state.withLock { ($0.services, $0.isStopped) }
                for service in services { service.serve() }
                return isStopped
            }
            if isStopped { return }
            var rest = pause
            nanosleep(&rest, nil)
        }
    }
}
