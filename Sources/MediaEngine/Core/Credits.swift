import Synchronization

/// The free places of a bounded queue on the media thread, counted where things are put in: who gets a place knows that
/// what it sends will not be refused later.
///
/// Thread: `take` control, `give` media.
final class Credits: Sendable {
    private let free: Atomic<Int>

    /// The places of an empty queue.
    init(_ count: Int) {
        free = Atomic(count)
    }

    /// Takes `count` places, or none and answers false.
    func take(_ count: Int) -> Bool {
        var known = free.load(ordering: .relaxed)
        while known >= count {
            let (done, found) = free.weakCompareExchange(
                expected: known,
                desired: known - count,
                ordering: .acquiringAndReleasing
            )
            if done { return true }
            known = found
        }
        return false
    }

    /// Gives `count` places back.
    func give(_ count: Int) {
        free.wrappingAdd(count, ordering: .releasing)
    }
}
