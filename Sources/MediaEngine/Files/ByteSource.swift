/// Bytes that are read from front to back, and from the start again where that is possible.
///
/// Thread: one at a time; a file source waits for the disk, so never the media thread.
protocol ByteSource: AnyObject {
    /// What the source is called in messages.
    var name: String { get }
    /// Bytes in all, or nil for a pipe.
    var byteCount: Int? { get }

    /// Copies the next bytes and answers how many: fewer than asked only at the end.
    func read(into target: UnsafeMutableRawBufferPointer) throws(WAVError) -> Int

    /// Moves to the byte at `offset`; answers false where the source cannot (a pipe).
    func seek(to offset: Int) -> Bool
}

/// Bytes in memory.
final class MemoryByteSource: ByteSource {
    let name: String
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8], name: String) {
        self.bytes = bytes
        self.name = name
    }

    var byteCount: Int? { bytes.count }

    func read(into target: UnsafeMutableRawBufferPointer) throws(WAVError) -> Int {
        let count = min(target.count, bytes.count - position)
        guard count > 0 else { return 0 }
        bytes.withUnsafeBytes { target.copyMemory(from: .init(rebasing: $0[position..<position + count])) }
        position += count
        return count
    }

    func seek(to offset: Int) -> Bool {
        guard (0...bytes.count).contains(offset) else { return false }
        position = offset
        return true
    }
}
