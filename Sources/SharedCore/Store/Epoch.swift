/// The number of a term of ownership: each owner of the core begins one that is higher than all before.
///
/// A core writes as its epoch. Once a later one has begun, or a main has fenced the group, the store refuses what the
/// earlier one still tries to write.
public struct Epoch: RawRepresentable, Hashable, Comparable, Codable, Sendable, CustomStringConvertible {
    /// The number; the first owner of a group has 1.
    public let rawValue: Int64

    /// An epoch of a number.
    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Whether one began before the other.
    public static func < (left: Epoch, right: Epoch) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The number.
    public var description: String { String(rawValue) }
}
