/// Pieces of memory for packets that wait, allocated once.
///
/// Each piece has a short slot, for what most codecs send, and a full one. Short slots lie close together and the one
/// freed last is claimed next, so that a pool of which little is in use touches few pages: with hundreds of legs it is
/// the processor's page table cache that runs out first. Full slots that nobody needs are never touched at all.
/// Thread: one at a time; nothing allocates after `init`.
struct SlotPool: ~Copyable {
    /// Where the slots lie: enough for a thread that reads a slot while another claims others.
    struct Memory: BitwiseCopyable {
        fileprivate static let shortByteCount = 192
        fileprivate let short: UnsafeMutablePointer<UInt8>
        fileprivate let full: UnsafeMutablePointer<UInt8>
        /// Bytes of the longest content.
        fileprivate let slotByteCount: Int

        /// The first byte of the content of `slot`, which has `byteCount` bytes.
        func address(_ slot: Int32, byteCount: Int) -> UnsafeMutablePointer<UInt8> {
            byteCount <= Self.shortByteCount
                ? short + Int(slot) &* Self.shortByteCount
                : full + Int(slot) &* slotByteCount
        }
    }

    /// Where the slots lie, as long as the pool lives.
    let memory: Memory
    private let free: UnsafeMutablePointer<Int32>
    private var freeCount: Int

    /// A pool of `capacity` slots of `slotByteCount` bytes.
    init(capacity: Int, slotByteCount: Int) {
        freeCount = capacity
        free = .allocate(capacity: capacity)
        memory = Memory(
            short: .allocate(capacity: capacity * Memory.shortByteCount),
            full: .allocate(capacity: capacity * slotByteCount),
            slotByteCount: slotByteCount
        )
        for slot in 0..<capacity { (free + slot).initialize(to: Int32(capacity - 1 - slot)) }
    }

    deinit {
        free.deallocate()
        memory.short.deallocate()
        memory.full.deallocate()
    }

    /// Claims a slot and copies `content` into it; nil when none is free or the content is too long.
    mutating func claim(_ content: Span<UInt8>) -> Int32? {
        guard freeCount > 0, content.count <= memory.slotByteCount else { return nil }
        freeCount &-= 1
        let slot = free[freeCount]
        let target = address(slot, byteCount: content.count)
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

    /// The first byte of the content of `slot`, which has `byteCount` bytes.
    func address(_ slot: Int32, byteCount: Int) -> UnsafeMutablePointer<UInt8> {
        memory.address(slot, byteCount: byteCount)
    }
}
