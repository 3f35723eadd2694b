/// Memory for the blocks of plans that run one after the other: a plan's blocks live within its own run, so all plans of
/// a runner share the same few cache lines.
///
/// Thread: made and freed on the control side; blocks media.
final class BlockArena: @unchecked Sendable {
    /// Bytes that plans may use; one that needs more has memory of its own.
    static var byteCount: Int { 512 * 1024 }

    let memory: UnsafeMutableRawPointer

    init() {
        memory = .allocate(byteCount: Self.byteCount, alignment: 64)
    }

    deinit {
        memory.deallocate()
    }

    /// Bytes of silence, or of an empty batch of packets, which ports without a link read and nobody writes.
    static var silenceByteCount: Int { PacketBatch.byteCount }

    nonisolated(unsafe) static let silence: UnsafeMutableRawPointer = {
        let memory = UnsafeMutableRawPointer.allocate(byteCount: silenceByteCount, alignment: 64)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: silenceByteCount)
        return memory
    }()
}
