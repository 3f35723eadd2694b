import CProcessors
import Glibc
import Synchronization

/// Sees when the machine stands still: the host takes its processors away, or a quota is used up.
///
/// On each processor a thread sleeps for 5 ms again and again. Beside a few threads that compute it is woken within some
/// milliseconds, for it has slept; where it is late by 30 ms, the processor was away.
///
/// Thread: any.
final class MachineWitness: Sendable {
    private struct Stall {
        /// Of the monotonic clock, in nanoseconds.
        let end: Int64
        let length: Int64
    }

    static let shared = MachineWitness()
    /// What a test in real time bears.
    static let bearable = Duration.milliseconds(30)
    private static let period: Int64 = 5_000_000
    private static let processorLimit = 64
    /// The newest are kept: more than a test can meet.
    private static let capacity = 1000

    private let stalls = Mutex<[Stall]>([])

    private init() {
        for processor in 0..<Self.processorLimit where processor_is_allowed(Int32(processor)) == 1 {
            var thread = pthread_t()
            let start = Unmanaged.passRetained(Start(self, processor))
            let result = pthread_create(
                &thread,
                nil,
                { argument in
                    guard let argument else { return nil }
                    let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                    start.witness.watch(start.processor)
                    return nil
                },
                start.toOpaque()
            )
            if result != 0 { start.release() }
        }
    }

    /// The longest time for which a processor stood still since `start`, a time of `now`; zero when all went on.
    func longestStall(since start: Int64) -> Duration {
        let longest = stalls.withLock { $0.lazy.filter { $0.end > start }.map(\.length).max() }
        return .nanoseconds(longest ?? 0)
    }

    /// The monotonic clock, in nanoseconds.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    private func watch(_ processor: Int) {
        // Where that is refused, the thread goes where there is room, and sees less.
        _ = processor_stay(Int32(processor))
        while true {
            let due = Self.now + Self.period
            pass(.nanoseconds(Self.period))
            let now = Self.now
            guard .nanoseconds(now - due) > Self.bearable else { continue }
            stalls.withLock { stalls in
                if stalls.count == Self.capacity { stalls.removeFirst() }
                stalls.append(Stall(end: now, length: now - due))
            }
        }
    }

    private final class Start {
        let witness: MachineWitness
        let processor: Int

        init(_ witness: MachineWitness, _ processor: Int) {
            self.witness = witness
            self.processor = processor
        }
    }
}
