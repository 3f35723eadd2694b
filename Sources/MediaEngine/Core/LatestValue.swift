import Synchronization

/// The newest value of one thread, readable by another without either waiting: a triple buffer.
///
/// The media thread publishes its counters here once a tick; a report reads them whenever it likes and always sees
/// the values of one instant together.
/// Thread: `publish` from one thread; `value` from any, in turn (readers share a lock, which the publisher never
/// touches).
package final class LatestValue<Value: BitwiseCopyable>: @unchecked Sendable {
    private let slots: UnsafeMutablePointer<Value>
    /// The slot between the two sides, with `freshFlag` set when it holds an unread value.
    private let exchange = Atomic<Int>(1)
    private var writeSlot = 0
    private let readSlot = Mutex(2)
    private static var freshFlag: Int { 4 }

    /// A cell that holds `value` until another is published.
    package init(_ value: Value) {
        slots = .allocate(capacity: 3)
        slots.initialize(repeating: value, count: 3)
    }

    deinit {
        slots.deallocate()
    }

    /// Makes `value` the newest.
    ///
    /// Allocates nothing, waits for nobody.
    package func publish(_ value: Value) {
        publish { $0 = value }
    }

    /// Makes what `write` leaves the newest value.
    ///
    /// What it finds is an older value; a large one is written in place, without a copy of its own.
    @inline(__always)
    package func publish(_ write: (inout Value) -> Void) {
        write(&slots[writeSlot])
        writeSlot = exchange.exchange(writeSlot | Self.freshFlag, ordering: .acquiringAndReleasing) & 3
    }

    /// The newest published value.
    package var value: Value {
        readSlot.withLock { slot in
            if exchange.load(ordering: .relaxed) & Self.freshFlag != 0 {
                slot = exchange.exchange(slot, ordering: .acquiringAndReleasing) & 3
            }
            return slots[slot]
        }
    }
}
