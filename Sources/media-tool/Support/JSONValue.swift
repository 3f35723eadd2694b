import MediaEngine

/// A JSON value whose objects keep the order in which they were written.
///
/// Foundation would cost the tool more start-up time and memory than all else that it does to list codecs.
/// Source: RFC 8259.
enum JSONValue: Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([(String, JSONValue)])

    /// The value as one line of JSON.
    var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): String(value)
        case .number(let value): Self.plain(value)
        case .string(let value): Self.quoted(value)
        case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { Self.quoted($0.0) + ":" + $0.1.text }.joined(separator: ",") + "}"
        }
    }

    /// The number, below 1e15 without exponent and to six decimals at most; `null` where JSON has no such number.
    private static func plain(_ value: Double) -> String {
        guard value.isFinite else { return "null" }
        let short = "\(value)"
        guard abs(value) < 1e15 else { return short }
        guard short.contains("e") else { return short.hasSuffix(".0") ? String(short.dropLast(2)) : short }
        let millionths = Int((abs(value) * 1_000_000).rounded())
        let digits = String(millionths % 1_000_000)
        let fraction = String(repeating: "0", count: 6 - digits.count) + digits
        return "\(value < 0 ? "-" : "")\(millionths / 1_000_000).\(fraction)"
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.steers:
                for unit in String(scalar).utf16 {
                    let hex = String(unit, radix: 16)
                    result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
                }
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    init(stringLiteral value: String) { self = .string(value) }
    init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(elements) }

    /// A number of milliseconds to a hundredth.
    static func milliseconds(_ duration: Duration) -> JSONValue {
        .number((duration.milliseconds * 100).rounded() / 100)
    }

    /// The number, or `null`.
    init(_ value: Double?) { self = value.map { .number($0) } ?? .null }

    /// The text, or `null`.
    init(_ value: String?) { self = value.map { .string($0) } ?? .null }

    /// The strings.
    init(_ values: [String]) { self = .array(values.map { .string($0) }) }
}

/// What is in a value that was read; nil where it is another.
extension JSONValue {
    subscript(_ name: String) -> JSONValue? {
        if case .object(let members) = self { members.first { $0.0 == name }?.1 } else { nil }
    }

    var string: String? { if case .string(let text) = self { text } else { nil } }
    var members: [(String, JSONValue)]? { if case .object(let members) = self { members } else { nil } }
    var values: [JSONValue]? { if case .array(let values) = self { values } else { nil } }

    var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }
}
