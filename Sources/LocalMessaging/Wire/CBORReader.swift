/// Why bytes are not one item of CBOR as messages have it.
struct CBORFault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    init(at offset: Int, _ what: String) {
        description = "byte \(offset): \(what)"
    }
}

/// Why an item is not the value that is asked for.
enum CBORMisfit: Error {
    case null
    case kind(String)
    /// A number that the type cannot hold.
    case range(String)
}

/// Received bytes, read with every bound looked at.
///
/// A read beyond the end is our own mistake, since `CBORItems` has checked the bytes: it traps instead of reading.
struct CBORReader {
    private let start: UnsafeRawPointer
    let count: Int

    /// Bytes that stay where they are for longer than this value is used.
    init(_ bytes: UnsafeRawBufferPointer) {
        start = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
        count = bytes.count
    }

    /// The head at `offset`, or what is wrong with it.
    @inline(__always)
    func checkedHead(at offset: Int) throws(CBORFault) -> CBORHead {
        guard offset < count else { throw CBORFault(at: offset, "the end, where a value is missing.") }
        let first = load(offset, as: UInt8.self)
        let detail = first & 0x1F
        if detail < 24 { return head(first, UInt64(detail), offset + 1) }
        guard detail < 28 else {
            throw CBORFault(at: offset, detail == 31 ? "a value of indefinite length." : "a head of no meaning.")
        }
        guard count - offset > 1 << (detail - 24) else { throw CBORFault(at: offset, "a cut head.") }
        return longHead(first, offset)
    }

    /// The head at `offset`, where there is one.
    @inline(__always)
    func head(at offset: Int) -> CBORHead {
        let first = load(offset, as: UInt8.self)
        let detail = first & 0x1F
        return detail < 24 ? head(first, UInt64(detail), offset + 1) : longHead(first, offset)
    }

    /// `length` bytes from `offset`.
    @inline(__always)
    func slice(_ offset: Int, _ length: Int) -> UnsafeRawBufferPointer {
        precondition(offset >= 0 && length >= 0 && offset <= count && length <= count - offset)
        return UnsafeRawBufferPointer(start: start + offset, count: length)
    }

    private func longHead(_ first: UInt8, _ offset: Int) -> CBORHead {
        switch first & 0x1F {
        case 24: head(first, UInt64(load(offset + 1, as: UInt8.self)), offset + 2)
        case 25: head(first, UInt64(load(offset + 1, as: UInt16.self)), offset + 3)
        case 26: head(first, UInt64(load(offset + 1, as: UInt32.self)), offset + 5)
        default: head(first, load(offset + 1, as: UInt64.self), offset + 9)
        }
    }

    @inline(__always)
    private func head(_ first: UInt8, _ argument: UInt64, _ end: Int) -> CBORHead {
        // Three bits, eight majors.
        let major = CBORHead.Major(rawValue: first >> 5).unsafelyUnwrapped
        return CBORHead(major: major, detail: first & 0x1F, argument: argument, end: end)
    }

    @inline(__always)
    private func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as _: Number.Type) -> Number {
        precondition(offset >= 0 && offset <= count - MemoryLayout<Number>.size)
        return Number(bigEndian: start.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
}
