import CProcessor
package import CallBasics
import Synchronization

/// Runs plans, tick by tick, and lets them be added, removed, replaced, commanded and listened to while it runs.
///
/// What the control side wants are orders. They are obeyed between two ticks, in the order in which they were given; those
/// that were given together take effect together. What they replace comes back to the control side to be freed.
/// Thread: `tick` and `obeyOrders` belong to the media thread, or to whoever drives by hand. The rest is for the control
/// side, from any thread.
package final class GraphRunner: @unchecked Sendable {
    /// Every how many ticks each filter's time is taken.
    package static let profilingInterval = 64
    /// How many steps before its turn a filter is fetched.
    private static let prefetchDistance = 3

    /// Something that the control side wants done between two ticks.
    struct Order: @unchecked Sendable {
        fileprivate enum Action {
            case command(Filter, MessageSlot)
            case insert(GraphPlan, stage: Int)
            case remove(GraphPlan)
            case replace(GraphPlan, with: GraphPlan)
        }

        fileprivate let action: Action

        /// `command`, for `filter`.
        static func command<Command, Event>(
            _ command: Command,
            to filter: ControlledFilter<Command, Event>
        ) -> Order {
            Order(action: .command(filter, MessageSlot(command)))
        }

        /// Runs `plan` from now on, after those of earlier stages; stages count from 0 to 3.
        static func insert(_ plan: GraphPlan, stage: Int = 0) -> Order {
            Order(action: .insert(plan, stage: stage))
        }

        /// Runs `plan` no longer.
        static func remove(_ plan: GraphPlan) -> Order {
            Order(action: .remove(plan))
        }

        /// Runs `plan` in the place of `other`: filters that are in both keep their state.
        static func replace(_ other: GraphPlan, with plan: GraphPlan) -> Order {
            Order(action: .replace(other, with: plan))
        }
    }

    /// An order on its way to the media thread: it holds what it names.
    private enum GivenOrder: BitwiseCopyable {
        case command(Unmanaged<Filter>, MessageSlot)
        case insert(Unmanaged<GraphPlan>, stage: Int)
        case remove(Unmanaged<GraphPlan>)
        case replace(Unmanaged<GraphPlan>, with: Unmanaged<GraphPlan>)
        case grow(Unmanaged<PlanList.Storage>)

        init(_ order: Order) {
            switch order.action {
            case .command(let filter, let message): self = .command(.passRetained(filter), message)
            case .insert(let plan, let stage): self = .insert(.passRetained(plan), stage: stage)
            case .remove(let plan): self = .remove(.passRetained(plan))
            case .replace(let other, let plan): self = .replace(.passRetained(other), with: .passRetained(plan))
            }
        }

        func release() {
            switch self {
            case .command(let filter, _): filter.release()
            case .insert(let plan, _), .remove(let plan): plan.release()
            case .replace(let other, let plan):
                other.release()
                plan.release()
            case .grow(let storage): storage.release()
            }
        }
    }

    /// An object that comes back to be freed.
    private struct Retired: BitwiseCopyable {
        let object: Unmanaged<AnyObject>
    }

    private struct Control {
        /// Plans that run once all orders are obeyed.
        var planCount = 0
        var capacity = GraphRunner.initialCapacity
        var given: UInt64 = 0
    }

    /// Where the blocks of all its plans are.
    let arena = BlockArena()

    @exclusivity(unchecked) private var plans: PlanList
    private var tickNumber = 0
    private let orders: RingBuffer<GivenOrder>
    private let retired: RingBuffer<Retired>
    private let control = Mutex(Control())
    /// The plan that `install` gave last.
    private let installation = Mutex<GraphPlan?>(nil)
    private let retiredLock = Mutex(())
    private let obeyed = Atomic<UInt64>(0)
    private let events: RingBuffer<GraphEvent>
    private let eventLock = Mutex(())
    private let runningPlans = Atomic<Int>(0)

    private static var initialCapacity: Int { 16 }

    /// A runner without a plan: its ticks do nothing.
    ///
    /// - Parameters:
    ///   - orderCapacity: Orders that can wait for one tick.
    ///   - eventCapacity: Events that can wait for `drainEvents`.
    package init(orderCapacity: Int = 4096, eventCapacity: Int = 4096) {
        orders = RingBuffer(minimumCapacity: orderCapacity)
        // An order gives two objects back at most, one of which may be a plan that it replaces.
        retired = RingBuffer(minimumCapacity: 2 * orderCapacity)
        events = RingBuffer(minimumCapacity: eventCapacity)
        plans = PlanList(PlanList.Storage(capacity: Self.initialCapacity))
    }

    deinit {
        while let order = orders.pop() { order.release() }
        while let object = retired.pop() { object.object.release() }
        plans.releaseAll()
    }

    // MARK: Control side

    /// Makes `plan` the one that runs from the next tick on, in place of the one that was installed before.
    ///
    /// No block is lost: blocks live within one tick, and filters that are in both plans keep their state.
    /// Answers false, and changes nothing, when too many orders wait: the media thread does not run.
    @discardableResult
    package func install(_ plan: GraphPlan) -> Bool {
        installation.withLock { former in
            let order: Order = former.map { .replace($0, with: plan) } ?? .insert(plan)
            guard give([order]) != nil else { return false }
            former = plan
            return true
        }
    }

    /// Sends `command` to `filter`; it takes effect at the edge of the next tick.
    ///
    /// Answers false, and sends nothing, when too many orders wait: the media thread does not run.
    @discardableResult
    package func send<Command, Event>(_ command: Command, to filter: ControlledFilter<Command, Event>) -> Bool {
        give([.command(command, to: filter)]) != nil
    }

    /// Gives `orders`, to take effect together.
    ///
    /// Answers what `obeyedCount` will be when they are obeyed; nil, with nothing given, when too many wait.
    func give(_ wanted: [Order]) -> UInt64? {
        reclaim()
        return control.withLock { control in
            let added = wanted.count { if case .insert = $0.action { true } else { false } }
            let removed = wanted.count { if case .remove = $0.action { true } else { false } }
            var capacity = control.capacity
            while capacity < control.planCount + added { capacity *= 2 }
            let grows = capacity > control.capacity
            guard orders.freeCount >= wanted.count + (grows ? 1 : 0) else { return nil }
            var all = wanted.map { GivenOrder($0) }
            if grows {
                let storage = PlanList.Storage(capacity: capacity)
                control.capacity = storage.capacity
                all.insert(.grow(.passRetained(storage)), at: 0)
            }
            control.planCount += added - removed
            control.given += UInt64(all.count)
            orders.push(contentsOf: all.span)
            return control.given
        }
    }

    /// Orders that have been obeyed.
    ///
    /// Thread: any.
    var obeyedCount: UInt64 { obeyed.load(ordering: .acquiring) }

    /// Whether there is nothing to run, and nothing to obey.
    ///
    /// Thread: any.
    package var isIdle: Bool { runningPlans.load(ordering: .acquiring) == 0 && orders.count == 0 }

    /// Frees what came back from the media thread.
    func reclaim() {
        retiredLock.withLock { _ in
            while let object = retired.pop() { object.object.release() }
        }
    }

    /// Hands every waiting event to `body`, oldest first.
    func drainEvents(_ body: (GraphEvent) -> Void) {
        eventLock.withLock { _ in
            while let event = events.pop() { body(event) }
        }
        reclaim()
    }

    /// Events that wait.
    var waitingEventCount: Int { events.count }
    /// Events lost because nobody drained them.
    package var droppedEventCount: Int { events.droppedCount }

    /// Calls and time of `filter`, as of the last time it was measured.
    package func profile(of filter: Filter) -> FilterProfile { filter.profile }

    // MARK: Media thread

    /// Runs the tick that is due at `now`: obeys orders, then runs every filter once.
    ///
    /// - Parameters:
    ///   - now: When the tick is due; filters see this time.
    ///   - lateness: How much later it starts; events bear the time at which they really happen.
    package func tick(at now: MediaTime, lateness: Duration) {
        obeyOrders()
        guard plans.count > 0 else { return }
        tickNumber &+= 1
        let isProfiled = tickNumber % Self.profilingInterval == 0
        for index in 0..<plans.count {
            prefetchPlans(after: index)
            plans[index]._withUnsafeGuaranteedRef { plan in
                if isProfiled { runProfiled(plan, now, lateness) } else { run(plan, now, lateness) }
            }
        }
    }

    /// Obeys the orders that wait, between two ticks.
    ///
    /// Answers whether there were any.
    @discardableResult
    package func obeyOrders() -> Bool {
        var count: UInt64 = 0
        // What an order gives back must find a place.
        while retired.freeCount > 2, let order = orders.pop() {
            obey(order)
            count &+= 1
        }
        guard count > 0 else { return false }
        runningPlans.store(plans.count, ordering: .releasing)
        obeyed.wrappingAdd(count, ordering: .acquiringAndReleasing)
        return true
    }

    private func obey(_ order: GivenOrder) {
        switch order {
        case .command(let filter, let message):
            filter._withUnsafeGuaranteedRef { $0.obey(message) }
            retire(filter)
        case .insert(let plan, let stage):
            plans.insert(plan, stage: stage)
        case .remove(let plan):
            // One reference is the list's, the other came with the order.
            guard plan._withUnsafeGuaranteedRef({ $0.position >= 0 }) else { return retire(plan) }
            plans.remove(plan)
            retire(plan)
            retire(plan)
        case .replace(let other, let plan):
            guard other._withUnsafeGuaranteedRef({ $0.position >= 0 }) else {
                retire(other)
                return retire(plan)
            }
            plans.replace(other, with: plan)
            retire(other)
            retire(other)
        case .grow(let storage):
            retire(plans.move(to: storage))
        }
    }

    private func retire<Object: AnyObject>(_ object: Unmanaged<Object>) {
        retired.push(Retired(object: Unmanaged.fromOpaque(object.toOpaque())))
    }

    private func run(_ plan: GraphPlan, _ now: MediaTime, _ lateness: Duration) {
        let duration = plan.tickDuration
        let steps = plan.steps
        for index in 0..<steps.count {
            // A filter of another leg has left the cache since its last tick: it is fetched while others run.
            let ahead = index &+ Self.prefetchDistance
            if ahead < steps.count { prefetch(steps[ahead].filter.toOpaque()) }
            perform(steps[index], now, duration, lateness)
        }
    }

    /// Asks for a plan three turns ahead of its own, for its steps two, for its first filters one: each is found only through
    /// the one before.
    private func prefetchPlans(after index: Int) {
        if index &+ 3 < plans.count { prefetch(plans[index &+ 3].toOpaque()) }
        if index &+ 2 < plans.count { plans[index &+ 2]._withUnsafeGuaranteedRef { $0.prefetchSteps() } }
        guard index &+ 1 < plans.count else { return }
        plans[index &+ 1]._withUnsafeGuaranteedRef { plan in
            let steps = plan.steps
            for index in 0..<min(Self.prefetchDistance, steps.count) { prefetch(steps[index].filter.toOpaque()) }
        }
    }

    private func runProfiled(_ plan: GraphPlan, _ now: MediaTime, _ lateness: Duration) {
        var before = MonotonicClock.current.nanoseconds
        for step in plan.steps {
            perform(step, now, plan.tickDuration, lateness)
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
}

extension GraphRunner: TickTarget {
    /// Obeys the orders that wait.
    package func obey() { obeyOrders() }
}
