package import CallBasics

/// The deadlines of numbered slots, the earliest first: a binary heap that knows where each slot stands.
///
/// Setting one takes time by the logarithm of their count; a slot is in it once at most.
package struct DeadlineQueue: Sendable {
    private var heap: [(time: MediaTime, slot: Int)] = []
    /// The place in the heap by slot; below 0 for a slot without deadline.
    private var places: [Int] = []

    package init() {}

    package var count: Int { heap.count }
    package var first: (time: MediaTime, slot: Int)? { heap.first }

    /// Sets the deadline of a slot, or takes it away.
    package mutating func set(_ slot: Int, to time: MediaTime?) {
        while places.count <= slot { places.append(-1) }
        guard let time else { return remove(slot) }
        let place = places[slot]
        guard place >= 0 else {
            heap.append((time, slot))
            places[slot] = heap.count - 1
            return raise(heap.count - 1)
        }
        heap[place].time = time
        restore(place)
    }

    private mutating func remove(_ slot: Int) {
        let place = places[slot]
        guard place >= 0 else { return }
        places[slot] = -1
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        places[last.slot] = place
        restore(place)
    }

    private mutating func restore(_ place: Int) {
        raise(place)
        sink(place)
    }

    private mutating func raise(_ start: Int) {
        var place = start
        while place > 0, heap[place].time < heap[(place - 1) / 2].time {
            swap(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    private mutating func sink(_ start: Int) {
        var place = start
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < heap.count {
                if heap[child].time < heap[least].time { least = child }
            }
            guard least != place else { return }
            swap(place, least)
            place = least
        }
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        heap.swapAt(one, other)
        places[heap[one].slot] = one
        places[heap[other].slot] = other
    }
}
