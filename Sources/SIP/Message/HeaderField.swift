/// Where a piece stands in the bytes of a message.
struct ByteRange: Hashable, Sendable, BitwiseCopyable {
    private let start: UInt32
    private let count: UInt32

    static let none = ByteRange(0..<0)

    init(_ range: Range<Int>) {
        start = UInt32(range.lowerBound)
        count = UInt32(range.count)
    }

    var range: Range<Int> { Int(start)..<(Int(start) + Int(count)) }
}

/// One header of a message, or one value of a header with several: what it is, and where its name and value stand.
struct HeaderField: Sendable, BitwiseCopyable {
    let name: HeaderName
    let nameRange: ByteRange
    let valueRange: ByteRange

    /// Whether both came in one line, with a comma between.
    func isInLine(of other: HeaderField) -> Bool {
        name == other.name && nameRange == other.nameRange && !nameRange.range.isEmpty
    }
}
