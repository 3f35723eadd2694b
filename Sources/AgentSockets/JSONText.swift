internal import FoundationEssentials

/// JSON as it is written.
enum JSONText {
    static func quoted(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        // Every string can be written.
        return (try? encoder.encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }

    /// An object of texts, sorted by their names.
    static func object(_ members: [String: String]) -> String {
        "{\(members.sorted { $0.key < $1.key }.map { "\(quoted($0)):\(quoted($1))" }.joined(separator: ","))}"
    }
}
