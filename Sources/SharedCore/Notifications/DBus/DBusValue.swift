/// A value of D-Bus.
///
/// Source: D-Bus Specification 0.43, "Type System".
indirect enum DBusValue: Hashable, Sendable {
    case byte(UInt8)
    case boolean(Bool)
    case int16(Int16)
    case uint16(UInt16)
    case int32(Int32)
    case uint32(UInt32)
    case int64(Int64)
    case uint64(UInt64)
    case double(Double)
    case string(String)
    case objectPath(String)
    case signature(String)
    /// The index of a file descriptor beside the message.
    case descriptor(UInt32)
    case array(of: DBusType, [DBusValue])
    case structure([DBusValue])
    case entry(key: DBusValue, value: DBusValue)
    case variant(DBusValue)

    var type: DBusType {
        switch self {
        case .byte: .basic("y")
        case .boolean: .basic("b")
        case .int16: .basic("n")
        case .uint16: .basic("q")
        case .int32: .basic("i")
        case .uint32: .basic("u")
        case .int64: .basic("x")
        case .uint64: .basic("t")
        case .double: .basic("d")
        case .string: .basic("s")
        case .objectPath: .basic("o")
        case .signature: .basic("g")
        case .descriptor: .basic("h")
        case .array(let element, _): .array(element)
        case .structure(let members): .structure(members.map(\.type))
        case .entry(let key, let value): .entry(key: key.type, value: value.type)
        case .variant: .variant
        }
    }

    /// An array of strings.
    static func strings(_ values: [String]) -> DBusValue { .array(of: .basic("s"), values.map { .string($0) }) }

    /// A dictionary of variants by name.
    static func dictionary(_ members: [(String, DBusValue)]) -> DBusValue {
        .array(
            of: .entry(key: .basic("s"), value: .variant),
            members.map { .entry(key: .string($0.0), value: .variant($0.1)) }
        )
    }

    /// The text of a string; nil for what is none.
    var string: String? { if case .string(let value) = self { value } else { nil } }

    /// The number of an unsigned integer of 32 bits; nil for what is none.
    var uint32: UInt32? { if case .uint32(let value) = self { value } else { nil } }

    /// The texts of an array of strings; nil for what is none.
    var strings: [String]? {
        guard case .array(of: .basic("s"), let elements) = self else { return nil }
        return elements.compactMap(\.string)
    }
}

/// A single complete type of D-Bus.
///
/// Source: D-Bus Specification 0.43, "Type System".
indirect enum DBusType: Hashable, Sendable {
    case basic(Character)
    case array(DBusType)
    case structure([DBusType])
    case entry(key: DBusType, value: DBusType)
    case variant

    /// The types that a signature holds.
    ///
    /// - Throws: `NotificationError` with code `protocolViolation`.
    static func parse(signature: String) throws(NotificationError) -> [DBusType] {
        guard signature.utf8.count <= 255 else { throw malformed(signature) }
        var rest = Substring(signature)
        var types: [DBusType] = []
        while !rest.isEmpty { types.append(try parse(&rest, of: signature, depth: 0)) }
        return types
    }

    /// The type in a signature's letters.
    var signature: String {
        switch self {
        case .basic(let letter): String(letter)
        case .array(let element): "a" + element.signature
        case .structure(let members): "(" + members.map(\.signature).joined() + ")"
        case .entry(let key, let value): "{" + key.signature + value.signature + "}"
        case .variant: "v"
        }
    }

    /// What the first byte of a value is aligned to.
    var alignment: Int {
        switch self {
        case .basic("y"), .basic("g"), .variant: 1
        case .basic("n"), .basic("q"): 2
        case .basic("x"), .basic("t"), .basic("d"), .structure, .entry: 8
        case .basic, .array: 4
        }
    }

    /// How deep types and variants may nest: 32 arrays and 32 structures.
    static var deepest: Int { 64 }

    private static func parse(
        _ rest: inout Substring,
        of signature: String,
        depth: Int,
        inArray: Bool = false
    ) throws(NotificationError) -> DBusType {
        guard depth < deepest, let letter = rest.popFirst() else { throw malformed(signature) }
        switch letter {
        case "y", "b", "n", "q", "i", "u", "x", "t", "d", "s", "o", "g", "h":
            return .basic(letter)
        case "v":
            return .variant
        case "a":
            return .array(try parse(&rest, of: signature, depth: depth + 1, inArray: true))
        case "(":
            var members: [DBusType] = []
            while rest.first != ")" { members.append(try parse(&rest, of: signature, depth: depth + 1)) }
            rest.removeFirst()
            guard !members.isEmpty else { throw malformed(signature) }
            return .structure(members)
        case "{" where inArray:
            let key = try parse(&rest, of: signature, depth: depth + 1)
            let value = try parse(&rest, of: signature, depth: depth + 1)
            guard case .basic = key, rest.popFirst() == "}" else { throw malformed(signature) }
            return .entry(key: key, value: value)
        default:
            throw malformed(signature)
        }
    }

    private static func malformed(_ signature: String) -> NotificationError {
        NotificationError(.protocolViolation, "\"\(signature)\" is no signature of D-Bus. Check the bus address.")
    }
}
