import Synchronization

/// An open card with a number of its own; freeing it closes the card.
final class CardSlot: Sendable {
    let endpoint: any CardEndpoint
    /// Counts from 1 in its route.
    let number: Int

    init(_ endpoint: any CardEndpoint, number: Int) {
        self.endpoint = endpoint
        self.number = number
    }
}

/// Where the control side puts an open card for the media thread, and takes it away, at any time.
///
/// The media thread borrows the card for a tick, or for a wait, and gives it back. A card that was taken away or replaced
/// meanwhile, and one that turned out to be gone, comes back through `reclaim`. So the control side never waits for a tick,
/// and a card is closed although no tick runs any more.
/// Thread: `borrow`, `giveBack` and `retire` media; `put`, `take` and `reclaim` control, one at a time.
final class CardHolder: @unchecked Sendable {
    /// The card; nil while there is none, or it is borrowed; `withdrawn` when it was taken away while borrowed.
    private let held = Atomic<UnsafeRawPointer?>(nil)
    private let retired = RingBuffer<Unmanaged<CardSlot>>(minimumCapacity: 64)

    private static var withdrawn: UnsafeRawPointer? { UnsafeRawPointer(bitPattern: 1) }

    init() {}

    deinit {
        take()?.release()
        while let slot = retired.pop() { slot.release() }
    }

    // MARK: Control

    /// Makes `slot` the card; answers the one before, to be released, unless it is borrowed.
    func put(_ slot: CardSlot) -> Unmanaged<CardSlot>? {
        let pointer = UnsafeRawPointer(Unmanaged.passRetained(slot).toOpaque())
        return Self.slot(held.exchange(pointer, ordering: .acquiringAndReleasing))
    }

    /// Takes the card away; answers it, to be released, unless it is borrowed.
    func take() -> Unmanaged<CardSlot>? {
        Self.slot(held.exchange(Self.withdrawn, ordering: .acquiringAndReleasing))
    }

    /// The cards that the media thread is done with, to be released.
    func reclaim() -> [Unmanaged<CardSlot>] {
        var slots: [Unmanaged<CardSlot>] = []
        while let slot = retired.pop() { slots.append(slot) }
        return slots
    }

    private static func slot(_ pointer: UnsafeRawPointer?) -> Unmanaged<CardSlot>? {
        guard let pointer, pointer != withdrawn else { return nil }
        return .fromOpaque(pointer)
    }

    // MARK: Media

    /// The card, to be given back or retired; nil when there is none.
    func borrow() -> Unmanaged<CardSlot>? {
        Self.slot(held.exchange(nil, ordering: .acquiringAndReleasing))
    }

    /// Gives a borrowed card back; answers false when it was taken away meanwhile, so that it has to be closed.
    func giveBack(_ slot: Unmanaged<CardSlot>) -> Bool {
        let pointer = UnsafeRawPointer(slot.toOpaque())
        guard held.compareExchange(expected: nil, desired: pointer, ordering: .acquiringAndReleasing).exchanged else {
            retired.push(slot)
            return false
        }
        return true
    }

    /// Gives a borrowed card back to be closed.
    func retire(_ slot: Unmanaged<CardSlot>) { retired.push(slot) }
}
