internal import NIOCore

/// Where items are written, one after the other.
///
/// A container's count is known at its end, and few have 24 values or more: its head is written as one byte first, and
/// what follows moves on when it needs more.
///
/// Thread: one, for as long as a message is being encoded. Its variables, and those of `CBOREncoder`, are not checked for
/// overlapping access: none is used while another method of theirs changes it, and the checks took a third of the time.
final class CBORWriter {
    @exclusivity(unchecked) private(set) var bytes: ByteBuffer
    /// Whose items come next: the encoder that has begun last and not ended.
    @exclusivity(unchecked) var current: ObjectIdentifier?
    /// How many values are being encoded within each other.
    @exclusivity(unchecked) var depth: Int
    /// What was done wrong in a method that cannot throw.
    @exclusivity(unchecked) var failure: EncodingError?

    init(capacity: Int, depth: Int = 0) {
        bytes = ByteBufferAllocator().buffer(capacity: capacity)
        self.depth = depth
    }

    var byteCount: Int { bytes.writerIndex }

    func write(_ value: Bool) { write(byte: 0xE0 | (value ? CBORHead.Simple.yes : CBORHead.Simple.no)) }
    func writeNull() { write(byte: 0xE0 | CBORHead.Simple.null) }
    func write(_ value: UInt64) { write(.unsigned, value) }
    func write(_ value: Int64) {
        if value < 0 { write(.negative, UInt64(~value)) } else { write(.unsigned, UInt64(value)) }
    }

    func write(_ value: Float) { bytes.writeMultipleIntegers(0xE0 | CBORHead.Simple.float, value.bitPattern) }
    func write(_ value: Double) { bytes.writeMultipleIntegers(0xE0 | CBORHead.Simple.double, value.bitPattern) }

    func write(_ text: String) {
        var text = text
        text.withUTF8 { write(.text, UnsafeRawBufferPointer($0)) }
    }

    func write(_ content: UnsafeRawBufferPointer) { write(.bytes, content) }

    func writeEmptyMap() { write(byte: CBORHead.Major.map.rawValue << 5) }

    /// The place of a head that `setHead` fills.
    func reserveHead() { write(byte: 0) }

    func setHead(at offset: Int, _ major: CBORHead.Major, _ count: Int) {
        let extra = CBORHead.byteCount(of: UInt64(count)) - 1
        let contentByteCount = byteCount - offset - 1
        if extra > 0 { bytes.writeRepeatingByte(0, count: extra) }
        bytes.withUnsafeMutableReadableBytes { memory in
            guard let head = memory.baseAddress.map({ $0 + offset }) else { return }
            if extra > 0 { (head + 1 + extra).copyMemory(from: head + 1, byteCount: contentByteCount) }
            CBORHead.write(major, UInt64(count), to: head)
        }
    }

    /// Takes back what was written after `byteCount`.
    func truncate(to byteCount: Int) { bytes.moveWriterIndex(to: byteCount) }

    /// Puts items between those that are written; `pieces` are in the order of their offsets.
    func insert(_ pieces: [(offset: Int, bytes: ByteBuffer)]) {
        guard let first = pieces.first, let tail = bytes.getSlice(at: first.offset, length: byteCount - first.offset)
        else { return }
        var rest = tail
        var position = first.offset
        truncate(to: position)
        for piece in pieces {
            if let between = rest.readSlice(length: piece.offset - position) { bytes.writeImmutableBuffer(between) }
            position = piece.offset
            bytes.writeImmutableBuffer(piece.bytes)
        }
        bytes.writeImmutableBuffer(rest)
    }

    private func write(byte: UInt8) { bytes.writeInteger(byte) }

    private func write(_ major: CBORHead.Major, _ argument: UInt64) {
        if argument < 24 { return write(byte: major.rawValue << 5 | UInt8(argument)) }
        bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: 9) { memory in
            memory.baseAddress.map { CBORHead.write(major, argument, to: $0) } ?? 0
        }
    }

    private func write(_ major: CBORHead.Major, _ content: UnsafeRawBufferPointer) {
        bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: 9 + content.count) { memory in
            guard let start = memory.baseAddress else { return 0 }
            let headByteCount = CBORHead.write(major, UInt64(content.count), to: start)
            if let source = content.baseAddress {
                (start + headByteCount).copyMemory(from: source, byteCount: content.count)
            }
            return headByteCount + content.count
        }
    }
}
