import CAllocationCounter
import Foundation
@testable import MediaEngine
import Synchronization

/// Runs ticks on a thread of its own, and counts what that thread allocates and locks.
///
/// The caller's thread plays the control side: it is asked every few ticks, and the ticks wait for it, so that nothing
/// depends on how threads are scheduled.
final class TickingThread: @unchecked Sendable {
    /// What the ticks after the warm-up did.
    struct Counts: Equatable, CustomStringConvertible {
        var allocations: Int64 = 0
        var frees: Int64 = 0
        var locks: Int64 = 0
        /// First locks of a Swift `Mutex` or of the runtime: they ask for the thread's number once on each thread.
        var swiftLocks: Int64 = 0

        var description: String { "\(allocations) allocations, \(frees) frees, \(locks) locks, \(swiftLocks) mutexes" }
    }

    private let ticks: Range<Int>
    private let interval: Int
    private let lag: Int
    private let tick: (Int) -> Void
    private let asked = Atomic(-1)
    private let answered = Atomic(-1)
    private let isDone = Atomic(false)
    private var counts = Counts()

    private init(ticks: Range<Int>, interval: Int, lag: Int, tick: @escaping (Int) -> Void) {
        self.ticks = ticks
        self.interval = interval
        self.lag = lag
        self.tick = tick
    }

    /// Runs `warmUp` ticks on one thread, then `ticks` whose work is counted on another.
    ///
    /// In the warm-up the Swift runtime makes what it makes once in a process, under locks of its own.
    ///
    /// - Parameters:
    ///   - warmUp: Ticks that may do things once.
    ///   - ticks: Ticks that are counted.
    ///   - interval: Every how many ticks the control side is asked.
    ///   - lag: By how many ticks the control side may be behind; with 0, ticks wait for it whenever it is asked.
    ///   - tick: Runs tick number n.
    ///   - control: Does what the control side and the background do before tick n.
    /// - Returns: What the counted ticks allocated and locked.
    /// - Throws: What `control` throws.
    static func count(
        warmUp: Int = 300,
        ticks: Int = 1000,
        interval: Int = 10,
        lag: Int = 0,
        tick: @escaping (Int) -> Void,
        control: (Int) throws -> Void
    ) throws -> Counts {
        var counts = Counts()
        for part in [0..<warmUp, warmUp..<warmUp + ticks] {
            let work = TickingThread(ticks: part, interval: interval, lag: lag, tick: tick)
            let thread = Thread { work.run() }
            thread.stackSize = 1 << 20
            thread.start()
            defer { while !work.isDone.load(ordering: .acquiring) { sched_yield() } }
            try work.serve(control)
            counts = work.counts
        }
        return counts
    }

    private func serve(_ control: (Int) throws -> Void) throws {
        // Whatever is thrown, the ticks must not wait for ever.
        defer { answered.store(.max, ordering: .releasing) }
        while !isDone.load(ordering: .acquiring) {
            let next = asked.load(ordering: .acquiring)
            guard next > answered.load(ordering: .relaxed) else {
                sched_yield()
                continue
            }
            try control(next)
            answered.store(next, ordering: .releasing)
        }
    }

    private func run() {
        allocation_counter_begin()
        for index in ticks {
            if index % interval == 0 {
                asked.store(index, ordering: .releasing)
                while answered.load(ordering: .acquiring) < index - lag { sched_yield() }
            }
            tick(index)
        }
        let total = allocation_counter_end()
        counts.allocations = total.allocations
        counts.frees = total.frees
        counts.locks = total.locks
        counts.swiftLocks = total.thread_number_requests
        isDone.store(true, ordering: .releasing)
    }
}
