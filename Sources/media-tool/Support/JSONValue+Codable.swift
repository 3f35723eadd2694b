import FoundationEssentials

/// Any JSON, as a message's body. Members of objects are in the order of their names, because coders keep none.
extension JSONValue: Codable {
    init(from decoder: any Decoder) throws {
        if let members = try? decoder.container(keyedBy: Name.self) {
            self = .object(
                try members.allKeys.sorted { $0.stringValue < $1.stringValue }
                    .map { ($0.stringValue, try members.decode(JSONValue.self, forKey: $0)) }
            )
            return
        }
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let integer = try? value.decode(Int.self) {
            self = .integer(integer)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let text = try? value.decode(String.self) {
            self = .string(text)
        } else {
            self = .array(try value.decode([JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .object(let members):
            var container = encoder.container(keyedBy: Name.self)
            for (name, value) in members { try container.encode(value, forKey: Name(name)) }
        case .null: try encode(Bool?.none, to: encoder)
        case .bool(let value): try encode(value, to: encoder)
        case .integer(let value): try encode(value, to: encoder)
        case .number(let value): try encode(value, to: encoder)
        case .string(let value): try encode(value, to: encoder)
        case .array(let values): try encode(values, to: encoder)
        }
    }

    private func encode(_ value: some Encodable, to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    /// The value of a JSON text.
    ///
    /// - Throws: `DecodingError` when it is none.
    init(parsing text: [UInt8]) throws {
        self = try JSONDecoder().decode(JSONValue.self, from: Data(text))
    }

    /// How many levels of arrays and objects there are.
    var depth: Int {
        switch self {
        case .array(let values): 1 + (values.map(\.depth).max() ?? 0)
        case .object(let members): 1 + (members.map(\.1.depth).max() ?? 0)
        default: 0
        }
    }
}
