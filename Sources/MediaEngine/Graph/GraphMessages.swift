/// A short name that fits in eight bytes, so that it travels through a ring: "xrun", "digit".
public struct MessageName: Hashable, Sendable, BitwiseCopyable, CustomStringConvertible, ExpressibleByStringLiteral {
    private let packed: UInt64

    /// The name `value`, of at most eight ASCII characters.
    public init(stringLiteral value: StaticString) {
        precondition(value.utf8CodeUnitCount <= 8 && value.hasPointerRepresentation)
        var packed: UInt64 = 0
        for index in 0..<value.utf8CodeUnitCount {
            packed |= UInt64(value.utf8Start[index]) << (8 * UInt64(index))
        }
        self.packed = packed
    }

    /// The characters of the name.
    public var description: String {
        var text = ""
        var rest = packed
        while rest != 0 {
            text.unicodeScalars.append(Unicode.Scalar(UInt8(rest & 0xFF)))
            rest >>= 8
        }
        return text
    }
}

/// Identity of a filter in messages.
public struct FilterID: Hashable, Sendable, BitwiseCopyable {
    let number: UInt64
}

/// Something that the control side asks of a filter; it takes effect at the edge of the next tick.
public struct GraphCommand: Sendable, BitwiseCopyable {
    /// The filter that is asked.
    public let filter: FilterID
    /// What is asked, in the filter's own words.
    public let name: MessageName
    /// The first operand; its meaning is the filter's.
    public let value: Int64
    /// The second operand.
    public let detail: Int64

    /// A command to `filter`.
    ///
    /// Filters offer functions that make theirs.
    public init(to filter: Filter, _ name: MessageName, value: Int64 = 0, detail: Int64 = 0) {
        self.filter = filter.id
        self.name = name
        self.value = value
        self.detail = detail
    }
}

/// Something that happened on the media thread, on its way to the control side.
public struct GraphEvent: Sendable, BitwiseCopyable {
    /// The filter where it happened.
    public let filter: FilterID
    /// When it happened: the moment at which its tick started.
    public let time: MediaTime
    /// What happened.
    public let name: MessageName
    /// The first detail; its meaning goes with the name.
    public let value: Int64
    /// The second detail.
    public let detail: Int64
}
