/// One step of the way from a message to a value within it; the way is put together when it is asked for.
enum CBORStep {
    case root
    case key(any CodingKey)
    case index(Int)

    /// The step as part of a coding path.
    var key: (any CodingKey)? {
        switch self {
        case .root: nil
        case .key(let key): key
        case .index(let index): CBORIndexKey(index)
        }
    }
}

/// An element's place in its array, in a coding path.
struct CBORIndexKey: CodingKey {
    private let index: Int

    init(_ index: Int) { self.index = index }
    init?(stringValue: String) { nil }
    init?(intValue: Int) { index = intValue }

    var stringValue: String { "\(index)" }
    var intValue: Int? { index }
}

/// The key of a superclass's part.
struct CBORSuperKey: CodingKey {
    init() {}
    init?(stringValue: String) { nil }
    init?(intValue: Int) { nil }

    var stringValue: String { "super" }
    var intValue: Int? { nil }
}
