/// The parameters of a payload format, as `a=fmtp` carries them after the payload type: "minptime=10;useinbandfec=1".
///
/// Names compare without regard to case; of a name that occurs twice the first counts. Any text parses: a part
/// without "=" is a name with an empty value.
/// Source: RFC 8866, section 6.15.
struct FormatParameters {
    private let pairs: [(name: String, value: String)]

    /// The parameters in `text`.
    init(parsing text: String) {
        pairs = text.split(separator: ";").prefix(Self.mostPairs).compactMap { part in
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = Self.trimmed(halves[0])
            guard !name.isEmpty else { return nil }
            return (name.lowercased(), halves.count > 1 ? Self.trimmed(halves[1]) : "")
        }
    }

    /// Whether there is no parameter.
    var isEmpty: Bool { pairs.isEmpty }

    /// The value of `name`, which must be in lower case.
    subscript(name: String) -> String? {
        pairs.first { $0.name == name }?.value
    }

    /// The value of `name` as a number in `range`; nil when it is absent or anything else.
    func integer(_ name: String, in range: ClosedRange<Int>) -> Int? {
        guard let text = self[name], let value = Int(text), range.contains(value) else { return nil }
        return value
    }

    /// The value of `name` as 0 or 1; nil when it is absent or anything else.
    func flag(_ name: String) -> Bool? {
        integer(name, in: 0...1).map { $0 == 1 }
    }

    private static let mostPairs = 64

    private static func trimmed(_ text: Substring) -> String {
        let start = text.drop { $0.isWhitespace }
        guard let end = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(start[...end])
    }
}
