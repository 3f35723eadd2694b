import CSemaphore
package import CallBasics
import Glibc

/// Sleeps until an instant of the monotonic clock, and does what the sleeping thread is woken for meanwhile.
///
/// Neither side takes a lock: a semaphore of the kernel counts the wakes.
/// Thread: `sleep` and `rest` of the thread that sleeps; `wake` any.
package final class Sleeper: @unchecked Sendable {
    private let semaphore: UnsafeMutablePointer<sem_t>
    private let onWake: () -> Void

    /// A sleeper that calls `onWake` on the sleeping thread, once for one wake or several in a row.
    package init(onWake: @escaping () -> Void = {}) {
        self.onWake = onWake
        semaphore = .allocate(capacity: 1)
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Has the sleeping thread call `onWake`.
    package func wake() {
        sem_post(semaphore)
    }

    /// Sleeps until `deadline`; returns at once when that is over.
    package func sleep(until deadline: MediaTime) {
        let (seconds, rest) = deadline.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        while true {
            guard semaphore_wait_until(semaphore, Int(seconds), Int(rest)) != 0 else {
                drain()
                onWake()
                continue
            }
            guard errno == EINTR else { return }
        }
    }

    /// Sleeps until it is woken, and does what it was woken for, or until `deadline`.
    package func sleep(untilWokenOr deadline: MediaTime) {
        let (seconds, rest) = deadline.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        while semaphore_wait_until(semaphore, Int(seconds), Int(rest)) != 0 {
            guard errno == EINTR else { return }
        }
        drain()
        onWake()
    }

    /// Sleeps until it is woken, and does what it was woken for.
    package func rest() {
        while sem_wait(semaphore) != 0, errno == EINTR {}
        drain()
        onWake()
    }

    private func drain() {
        while sem_trywait(semaphore) == 0 {}
    }
}
