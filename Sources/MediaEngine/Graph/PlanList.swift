/// The plans of a runner in the order in which they run: by stage, and within a stage in any order.
///
/// Plans of one stage need nothing of each other, so one that goes leaves its place to another: both insertion and
/// removal cost a few moves, however many plans there are.
/// Thread: media; memory comes from the control side.
struct PlanList {
    /// Room for plans, made on the control side and handed over when the former room is full.
    final class Storage: @unchecked Sendable {
        let capacity: Int
        let places: UnsafeMutablePointer<Unmanaged<GraphPlan>>

        init(capacity: Int) {
            self.capacity = capacity
            places = .allocate(capacity: capacity)
        }

        deinit {
            places.deallocate()
        }
    }

    static var stageCount: Int { 4 }

    private var storage: Unmanaged<Storage>
    private var places: UnsafeMutablePointer<Unmanaged<GraphPlan>>
    private var capacity: Int
    private(set) var count = 0
    /// Where each stage ends.
    private var ends = InlineArray<4, Int>(repeating: 0)

    init(_ storage: Storage) {
        self.storage = .passRetained(storage)
        places = storage.places
        capacity = storage.capacity
    }

    /// Plan `index` in the order in which they run.
    subscript(index: Int) -> Unmanaged<GraphPlan> { places[index] }

    /// Adds a plan to its stage; there must be room.
    mutating func insert(_ plan: Unmanaged<GraphPlan>, stage: Int) {
        precondition(count < capacity && stage < Self.stageCount)
        var hole = count
        for later in stride(from: Self.stageCount &- 1, to: stage, by: -1) {
            let start = ends[later &- 1]
            // The first plan of a later stage becomes its last.
            if start < hole { move(from: start, to: hole) }
            hole = start
            ends[later] &+= 1
        }
        ends[stage] &+= 1
        count &+= 1
        put(plan, at: hole)
        plan._withUnsafeGuaranteedRef { $0.stage = stage }
    }

    /// Removes a plan, which must be in the list.
    mutating func remove(_ plan: Unmanaged<GraphPlan>) {
        let (stage, place) = plan._withUnsafeGuaranteedRef { ($0.stage, $0.position) }
        var hole = place
        for later in stage..<Self.stageCount {
            let last = ends[later] &- 1
            if last != hole { move(from: last, to: hole) }
            hole = last
            ends[later] &-= 1
        }
        count &-= 1
        plan._withUnsafeGuaranteedRef { $0.position = -1 }
    }

    /// Puts `plan` in the place of another, which must be in the list.
    mutating func replace(_ other: Unmanaged<GraphPlan>, with plan: Unmanaged<GraphPlan>) {
        let (stage, place) = other._withUnsafeGuaranteedRef { ($0.stage, $0.position) }
        put(plan, at: place)
        plan._withUnsafeGuaranteedRef { $0.stage = stage }
        other._withUnsafeGuaranteedRef { $0.position = -1 }
    }

    /// Moves to larger storage; answers the former one, which the control side frees.
    mutating func move(to larger: Unmanaged<Storage>) -> Unmanaged<Storage> {
        defer { storage = larger }
        let places = larger._withUnsafeGuaranteedRef { $0.places }
        places.update(from: self.places, count: count)
        self.places = places
        capacity = larger._withUnsafeGuaranteedRef { $0.capacity }
        return storage
    }

    /// Lets go of all plans and of the storage.
    ///
    /// Thread: control, when nothing runs any more.
    func releaseAll() {
        for index in 0..<count { places[index].release() }
        storage.release()
    }

    private func put(_ plan: Unmanaged<GraphPlan>, at place: Int) {
        (places + place).initialize(to: plan)
        plan._withUnsafeGuaranteedRef { $0.position = place }
    }

    private func move(from place: Int, to hole: Int) {
        put(places[place], at: hole)
    }
}
