import CProcessor
import Synchronization

/// Runs one plan, tick by tick, and lets it be replaced, commanded and listened to while it runs.
///
/// Thread: `tick` belongs to the media thread, or to whoever drives by hand. `install`, `send` and `drainEvents` are
/// for the control side, from any thread.
public final class GraphRunner: @unchecked Sendable {
    /// Every how many ticks each filter's time is taken.
    public static let profilingInterval = 64
    /// How many steps before its turn a filter is fetched.
    private static let prefetchDistance = 3

    private let plans = HandOff<GraphPlan>()
    private var current: Unmanaged<GraphPlan>?
    private var tickNumber = 0
    private var tickLateness = Duration.zero

    private let commands: RingBuffer<GraphCommand>
    private let commandLock = Mutex(())
    private let undelivered = Atomic<Int>(0)
    private let offeredPlans = Atomic<Int>(0)
    private let takenPlans = Atomic<Int>(0)
    private let events: RingBuffer<GraphEvent>
    private let eventLock = Mutex(())

    /// A runner without a plan: its ticks do nothing.
    ///
    /// - Parameters:
    ///   - commandCapacity: Commands that can wait for one tick.
    ///   - eventCapacity: Events that can wait for `drainEvents`.
    public init(commandCapacity: Int = 1024, eventCapacity: Int = 4096) {
        commands = RingBuffer(minimumCapacity: commandCapacity)
        events = RingBuffer(minimumCapacity: eventCapacity)
    }

    deinit {
        current?.release()
    }

    /// Makes `plan` the one that runs from the next tick on.
    ///
    /// No block is lost: blocks live within one tick, and filters that are in both plans keep their state.
    public func install(_ plan: GraphPlan) {
        offeredPlans.wrappingAdd(1, ordering: .acquiringAndReleasing)
        plans.offer(plan)
    }

    /// Whether the plan that was installed last runs, so that filters it lacks are no longer touched.
    public var isSettled: Bool {
        takenPlans.load(ordering: .acquiring) == offeredPlans.load(ordering: .acquiring)
    }

    /// Sends `command`; it takes effect at the edge of the next tick.
    ///
    /// Answers false, and counts, when the ring is full.
    @discardableResult
    public func send(_ command: GraphCommand) -> Bool {
        commandLock.withLock { _ in commands.push(command) }
    }

    /// Hands every waiting event to `body`, oldest first.
    public func drainEvents(_ body: (GraphEvent) -> Void) {
        eventLock.withLock { _ in
            while let event = events.pop() { body(event) }
        }
        plans.reclaim()
    }

    /// Commands refused because the ring was full.
    public var droppedCommandCount: Int { commands.droppedCount }
    /// Commands to a filter that is not in the plan.
    public var undeliveredCommandCount: Int { undelivered.load(ordering: .relaxed) }
    /// Events lost because nobody drained them.
    public var droppedEventCount: Int { events.droppedCount }

    /// Calls and time of `filter`, as of the last time it was measured.
    public func profile(of filter: Filter) -> FilterProfile { filter.profile }

    /// Runs the tick that is due at `now`: obeys commands, takes a new plan, runs every filter once.
    ///
    /// - Parameters:
    ///   - now: When the tick is due; filters see this time.
    ///   - lateness: How much later it starts; events bear the time at which they really happen.
    public func tick(at now: MediaTime, lateness: Duration) {
        tickLateness = lateness
        obeyCommands()
        takePlan()
        guard let current else { return }
        current._withUnsafeGuaranteedRef { plan in
            tickNumber &+= 1
            if tickNumber % Self.profilingInterval == 0 {
                runProfiled(plan, now)
            } else {
                run(plan, now)
            }
        }
    }

    private func run(_ plan: GraphPlan, _ now: MediaTime) {
        let (duration, lateness) = (plan.tickDuration, tickLateness)
        let steps = plan.steps
        for index in 0..<steps.count {
            // A filter of another leg has left the cache since its last tick: it is fetched while others run.
            let ahead = index &+ Self.prefetchDistance
            if ahead < steps.count { prefetch(steps[ahead].filter.toOpaque()) }
            perform(steps[index], now, duration, lateness)
        }
    }

    private func runProfiled(_ plan: GraphPlan, _ now: MediaTime) {
        let (duration, lateness) = (plan.tickDuration, tickLateness)
        var before = MonotonicClock.current.nanoseconds
        for step in plan.steps {
            perform(step, now, duration, lateness)
            let after = MonotonicClock.current.nanoseconds
            let elapsed = after &- before
            before = after
            step.filter._withUnsafeGuaranteedRef {
                $0.addProfile(tickCount: Self.profilingInterval, nanoseconds: elapsed)
            }
        }
    }

    @inline(__always)
    private func perform(_ step: GraphPlan.Step, _ now: MediaTime, _ duration: Duration, _ lateness: Duration) {
        if step.hasPacketOutputs {
            for index in step.inputCount..<(step.inputCount &+ step.outputCount) {
                let slot = step.slots[index]
                if slot.channelCount == 0 { slot.packetBatch.removeAll() }
            }
        }
        step.filter._withUnsafeGuaranteedRef { filter in
            filter.process(
                FilterIO(
                    slots: step.slots,
                    inputCount: step.inputCount,
                    outputCount: step.outputCount,
                    filter: step.id,
                    events: events,
                    time: now,
                    lateness: lateness,
                    tickDuration: duration
                )
            )
        }
    }

    /// Makes the newest plan the current one; answers whether there was one.
    @discardableResult
    private func takePlan() -> Bool {
        // Read first: a plan offered in between is newer than the number, and settles with the next tick.
        let offered = offeredPlans.load(ordering: .acquiring)
        guard let next = plans.take() else { return false }
        takenPlans.store(offered, ordering: .releasing)
        if let previous = current { plans.retire(previous) }
        current = next
        return true
    }

    /// Hands commands to their filters: in the plan that ran so far, so that a filter hears what was sent before its
    /// removal, or else in the one that is to run.
    private func obeyCommands() {
        while let command = commands.pop() {
            if deliver(command) { continue }
            guard takePlan(), deliver(command) else {
                undelivered.wrappingAdd(1, ordering: .relaxed)
                continue
            }
        }
    }

    private func deliver(_ command: GraphCommand) -> Bool {
        guard let current else { return false }
        return current._withUnsafeGuaranteedRef { plan in
            guard let index = plan.step(of: command.filter) else { return false }
            plan.steps[index].filter._withUnsafeGuaranteedRef { $0.handle(command) }
            return true
        }
    }
}
