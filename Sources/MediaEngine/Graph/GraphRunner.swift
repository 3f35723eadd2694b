import Synchronization

/// Runs one plan, tick by tick, and lets it be replaced, commanded and listened to while it runs.
///
/// Thread: `tick` belongs to the media thread, or to whoever drives by hand. `install`, `send` and `drainEvents` are
/// for the control side, from any thread.
public final class GraphRunner: @unchecked Sendable {
    /// Every how many ticks each filter's time is taken.
    public static let profilingInterval = 16

    private let plans = HandOff<GraphPlan>()
    private var current: Unmanaged<GraphPlan>?
    private var tickNumber = 0

    private let commands: RingBuffer<GraphCommand>
    private let commandLock = Mutex(())
    private let undelivered = Atomic<Int>(0)
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
        plans.offer(plan)
    }

    /// Sends `command`; it takes effect at the edge of the next tick. Answers false, and counts, when the ring is full.
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
    public func profile(of filter: Filter) -> FilterProfile { filter.profile.value }

    /// Runs one tick that starts at `now`: takes a new plan, obeys commands, runs every filter once.
    public func tick(at now: MediaTime) {
        if let next = plans.take() {
            if let previous = current { plans.retire(previous) }
            current = next
        }
        guard let current else { return }
        current._withUnsafeGuaranteedRef { plan in
            obeyCommands(plan)
            tickNumber &+= 1
            if tickNumber % Self.profilingInterval == 0 {
                runProfiled(plan, now)
            } else {
                run(plan, now)
            }
        }
    }

    private func run(_ plan: GraphPlan, _ now: MediaTime) {
        let duration = plan.tickDuration
        for step in plan.steps {
            Self.perform(step, events, now, duration)
        }
    }

    private func runProfiled(_ plan: GraphPlan, _ now: MediaTime) {
        let duration = plan.tickDuration
        var before = MonotonicClock.current.nanoseconds
        for step in plan.steps {
            Self.perform(step, events, now, duration)
            let after = MonotonicClock.current.nanoseconds
            let elapsed = after &- before
            before = after
            step.filter._withUnsafeGuaranteedRef { filter in
                filter.runningProfile.tickCount &+= Self.profilingInterval
                filter.runningProfile.sampleCount &+= 1
                filter.runningProfile.totalNanoseconds &+= elapsed
                filter.runningProfile.maximumNanoseconds = max(filter.runningProfile.maximumNanoseconds, elapsed)
                filter.profile.publish(filter.runningProfile)
            }
        }
    }

    @inline(__always)
    private static func perform(
        _ step: GraphPlan.Step,
        _ events: RingBuffer<GraphEvent>,
        _ now: MediaTime,
        _ duration: Duration
    ) {
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
                    tickDuration: duration
                )
            )
        }
    }

    private func obeyCommands(_ plan: GraphPlan) {
        while let command = commands.pop() {
            guard let index = plan.step(of: command.filter) else {
                undelivered.wrappingAdd(1, ordering: .relaxed)
                continue
            }
            plan.steps[index].filter._withUnsafeGuaranteedRef { $0.handle(command) }
        }
    }
}
