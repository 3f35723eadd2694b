/// Equal pieces of memory for packets that wait, allocated once.
///
/// The slot freed last is claimed next, so that a pool of which little is in use touches few pages.
/// Thread: one at a time; nothing allocates after `init`.
struct SlotPool: ~Copyable {
    /// Bytes of each slot.
    let slotByteCount: Int
    private let free: UnsafeMutablePointer<Int32>
    private let bytes: UnsafeMutablePointer<UInt8>
    private var freeCount: Int

    /// A pool of `capacity` slots of `slotByteCount` bytes.
    init(capacity: Int, slotByteCount: Int) {
        self.slotByteCount = slotByteCount
        freeCount = capacity
        free = .allocate(capacity: capacity)
        bytes = .allocate(capacity: capacity * slotByteCount)
        for slot in 0..<capacity { (free + slot).initialize(to: Int32(capacity - 1 - slot)) }
    }

    deinit {
        free.deallocate()
        bytes.deallocate()
    }

    /// Claims a slot and copies `content` into it; nil when none is free or the content is too long.
    mutating func claim(_ content: Span<UInt8>) -> Int32? {
        guard freeCount > 0, content.count <= slotByteCount else { return nil }
        freeCount &-= 1
        let slot = free[freeCount]
        let target = address(slot)
        content.withUnsafeBufferPointer { source in
            guard let start = source.baseAddress else { return }
            target.update(from: start, count: source.count)
        }
        return slot
    }

    /// Gives `slot` back.
    mutating func release(_ slot: Int32) {
        free[freeCount] = slot
        freeCount &+= 1
    }

    /// The first byte of `slot`.
    func address(_ slot: Int32) -> UnsafeMutablePointer<UInt8> { bytes + Int(slot) &* slotByteCount }
}
