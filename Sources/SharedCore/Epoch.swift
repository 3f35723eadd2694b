/// The number of one ownership of a group: each core that becomes the owner takes one more than the owner before it.
public struct Epoch: Hashable, Comparable, Sendable, Codable {
    /// The number; the first owner's is 1.
    public let number: Int64

    /// The epoch of this number.
    public init(number: Int64) {
        self.number = number
    }

    /// Whether the first owned the group before the second.
    public static func < (first: Epoch, second: Epoch) -> Bool {
        first.number < second.number
    }
}
