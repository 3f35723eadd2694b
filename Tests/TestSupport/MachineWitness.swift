import CProcessors
import Foundation
import Glibc
import Synchronization

/// Sees for how long the machine stands still: the host takes its processors away, or a quota is used up.
///
/// The kernel tells what a host takes (steal, proc(5)). For the rest, a thread on each processor sleeps for 5 ms again and
/// again: beside a few threads that compute it is woken within some milliseconds, for it has slept; where it is late by 10 ms,
/// the processor was away.
///
/// Thread: any.
final class MachineWitness: Sendable {
    /// A point in time, from which on it is asked.
    struct Mark {
        /// Of the monotonic clock, in nanoseconds.
        fileprivate let time: Int64
        fileprivate let stolen: Duration
    }

    private struct Stall {
        let end: Int64
        let length: Int64
    }

    static let shared = MachineWitness()
    /// What a test in real time bears, in all.
    static let bearable = Duration.milliseconds(30)
    private static let period: Int64 = 5_000_000
    private static let usualLateness: Int64 = 10_000_000
    private static let processorLimit = 64
    /// The newest are kept: more than a test can meet.
    private static let capacity = 1000

    private let stalls = Mutex<[Stall]>([])

    private init() {
        for processor in 0..<Self.processorLimit where processor_is_allowed(Int32(processor)) == 1 {
            Thread.detachNewThread { self.watch(processor) }
        }
    }

    /// Now.
    var mark: Mark { Mark(time: Self.now, stolen: Self.stolen) }

    /// For how long processors stood still since `mark`, in all.
    func lostTime(since mark: Mark) -> Duration {
        let late = stalls.withLock { $0.lazy.filter { $0.end > mark.time }.map(\.length).reduce(0, +) }
        return max(.nanoseconds(late), Self.stolen - mark.stolen)
    }

    private func watch(_ processor: Int) {
        // Where that is refused, the thread goes where there is room, and sees less.
        _ = processor_stay(Int32(processor))
        while true {
            let due = Self.now + Self.period
            pass(.nanoseconds(Self.period))
            let now = Self.now
            guard now - due > Self.usualLateness else { continue }
            stalls.withLock { stalls in
                if stalls.count == Self.capacity { stalls.removeFirst() }
                stalls.append(Stall(end: now, length: now - due))
            }
        }
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// What hosts took of all processors since the start; zero where the kernel does not tell.
    private static var stolen: Duration {
        // cpu user nice system idle iowait irq softirq steal guest guest_nice
        guard let text = try? String(contentsOfFile: "/proc/stat", encoding: .utf8) else { return .zero }
        let fields = text.prefix { $0 != "\n" }.split(separator: " ")
        guard fields.count > 8, let ticks = Int64(fields[8]) else { return .zero }
        return .seconds(Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK))))
    }
}
