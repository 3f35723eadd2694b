internal import CSystemd
internal import Glibc

/// What sd-bus said no to.
package struct BusFailure: Error {
    /// As in errno(3).
    package let code: CInt

    package init(code: CInt) { self.code = code }

    /// The result of a call of sd-bus, unless it is a failure.
    @discardableResult
    package static func check(_ result: CInt) throws(BusFailure) -> CInt {
        guard result >= 0 else { throw BusFailure(code: -result) }
        return result
    }

    var reason: String { String(cString: strerror(code)) }
}

// MARK: - Writing

extension BusCall {
    /// Sends the call and answers its number, which the reply will name.
    func send(over bus: OpaquePointer) throws(BusFailure) -> UInt64 {
        var created: OpaquePointer?
        try BusFailure.check(sd_bus_message_new_method_call(bus, &created, destination, path, interface, member))
        guard let message = created else { throw BusFailure(code: ENOMEM) }
        defer { sd_bus_message_unref(message) }
        for value in body { try value.append(to: message) }
        var cookie: UInt64 = 0
        try BusFailure.check(sd_bus_send(bus, message, &cookie))
        return cookie
    }
}

extension BusValue {
    /// Writes the value at the end of a message of sd-bus.
    package func append(to message: OpaquePointer) throws(BusFailure) {
        switch self {
        case .byte(var value): try Self.append(Self.byteType, &value, to: message)
        case .bool(let value):
            // As sd-bus has it, it is an `int`.
            var number: CInt = value ? 1 : 0
            try Self.append(Self.boolType, &number, to: message)
        case .int32(var value): try Self.append(Self.int32Type, &value, to: message)
        case .uint32(var value): try Self.append(Self.uint32Type, &value, to: message)
        case .string(let text): try Self.append(text, to: message)
        case .path(let text): try Self.append(text, Self.pathType, to: message)
        case .bytes(let bytes):
            let result = bytes.withUnsafeBytes {
                sd_bus_message_append_array(message, Self.byteType, $0.baseAddress, $0.count)
            }
            try BusFailure.check(result)
        case .strings(let texts):
            try Self.container(Self.arrayType, "s", in: message) { () throws(BusFailure) in
                for text in texts { try Self.append(text, to: message) }
            }
        case .paths(let texts):
            try Self.container(Self.arrayType, "o", in: message) { () throws(BusFailure) in
                for text in texts { try Self.append(text, Self.pathType, to: message) }
            }
        case .texts(let members):
            try Self.append(members.mapValues { .string($0) }, "ss", to: message)
        case .dictionary(let members):
            try Self.append(members.mapValues { .variant($0) }, "sv", to: message)
        case .variant(let value):
            try Self.container(Self.variantType, value.signature, in: message) { () throws(BusFailure) in
                try value.append(to: message)
            }
        case .structure(let values):
            let contents = values.map(\.signature).joined()
            try Self.container(Self.structType, contents, in: message) { () throws(BusFailure) in
                for value in values { try value.append(to: message) }
            }
        case .other: throw BusFailure(code: EINVAL)
        }
    }

    private static func container(
        _ type: CChar,
        _ contents: String,
        in message: OpaquePointer,
        _ body: () throws(BusFailure) -> Void
    ) throws(BusFailure) {
        try BusFailure.check(sd_bus_message_open_container(message, type, contents))
        try body()
        try BusFailure.check(sd_bus_message_close_container(message))
    }

    private static func append(
        _ members: [String: BusValue],
        _ entry: String,
        to message: OpaquePointer
    ) throws(BusFailure) {
        try container(arrayType, "{" + entry + "}", in: message) { () throws(BusFailure) in
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                try container(entryType, entry, in: message) { () throws(BusFailure) in
                    try append(name, to: message)
                    try value.append(to: message)
                }
            }
        }
    }

    private var signature: String {
        switch self {
        case .byte: "y"
        case .bool: "b"
        case .int32: "i"
        case .uint32: "u"
        case .string: "s"
        case .path: "o"
        case .bytes: "ay"
        case .strings: "as"
        case .paths: "ao"
        case .texts: "a{ss}"
        case .dictionary: "a{sv}"
        case .variant: "v"
        case .structure(let values): "(" + values.map(\.signature).joined() + ")"
        case .other: ""
        }
    }

    private static func append(_ type: CChar, _ value: UnsafeRawPointer, to message: OpaquePointer) throws(BusFailure) {
        try BusFailure.check(sd_bus_message_append_basic(message, type, value))
    }

    /// A text of D-Bus has no zero byte: one is replaced, and the rest is not lost.
    private static func append(
        _ text: String,
        _ type: CChar = stringType,
        to message: OpaquePointer
    ) throws(BusFailure) {
        let scalars = text.unicodeScalars.map { $0 == "\0" ? "\u{FFFD}" : $0 }
        let text = text.utf8.contains(0) ? String(String.UnicodeScalarView(scalars)) : text
        let result = text.withCString { sd_bus_message_append_basic(message, type, $0) }
        try BusFailure.check(result)
    }
}

// MARK: - Reading

extension BusValue {
    /// The most bytes in one value, and the most values in one other.
    private static let most = (bytes: 1 << 20, values: 4096)
    /// How deep values may be in each other; what is deeper is not read.
    private static let deepest = 8

    /// The values in the body of a message.
    package static func body(of message: OpaquePointer) throws(BusFailure) -> [BusValue] {
        try values(of: message, deepest)
    }

    /// The values up to the end of what is read.
    private static func values(of message: OpaquePointer, _ depth: Int) throws(BusFailure) -> [BusValue] {
        var values: [BusValue] = []
        while let value = try next(of: message, depth) {
            guard values.count < most.values else { throw BusFailure(code: EMSGSIZE) }
            values.append(value)
        }
        return values
    }

    /// The next value; nil at the end of what is read.
    private static func next(of message: OpaquePointer, _ depth: Int) throws(BusFailure) -> BusValue? {
        var type: CChar = 0
        var pointer: UnsafePointer<CChar>?
        guard try BusFailure.check(sd_bus_message_peek_type(message, &type, &pointer)) > 0 else { return nil }
        let contents = pointer.map { String(cString: $0) } ?? ""
        switch type {
        case byteType: return .byte(try number(of: message, type))
        case boolType:
            // As sd-bus has it, it is an `int`.
            let value: CInt = try number(of: message, type)
            return .bool(value != 0)
        case int32Type: return .int32(try number(of: message, type))
        case uint32Type: return .uint32(try number(of: message, type))
        case stringType: return .string(try text(of: message))
        case pathType: return .path(try text(of: message, pathType))
        case arrayType where contents == "y": return .bytes(try bytes(of: message))
        case arrayType where contents == "s": return .strings(try texts(of: message, stringType))
        case arrayType where contents == "o": return .paths(try texts(of: message, pathType))
        case arrayType where contents == "{ss}":
            return .texts(try members(of: message, "ss") { (message) throws(BusFailure) in try text(of: message) })
        case arrayType where contents == "{sv}" && depth > 0:
            return .dictionary(
                try members(of: message, "sv") { (message) throws(BusFailure) in
                    try inside(variantType, of: message, depth).first ?? .other
                }
            )
        case variantType where depth > 0: return .variant(try inside(type, of: message, depth).first ?? .other)
        case structType where depth > 0: return .structure(try inside(type, of: message, depth))
        default:
            try BusFailure.check(sd_bus_message_skip(message, signature(type, contents)))
            return .other
        }
    }

    private static func number<Number: FixedWidthInteger & BitwiseCopyable>(
        of message: OpaquePointer,
        _ type: CChar
    ) throws(BusFailure) -> Number {
        var value: Number = 0
        try BusFailure.check(withUnsafeMutablePointer(to: &value) { sd_bus_message_read_basic(message, type, $0) })
        return value
    }

    /// What is in the container that is next.
    private static func inside(_ type: CChar, of message: OpaquePointer, _ depth: Int) throws(BusFailure) -> [BusValue]
    {
        try BusFailure.check(sd_bus_message_enter_container(message, type, nil))
        let values = try values(of: message, depth - 1)
        try BusFailure.check(sd_bus_message_exit_container(message))
        return values
    }

    private static func members<Value>(
        of message: OpaquePointer,
        _ entry: String,
        _ value: (OpaquePointer) throws(BusFailure) -> Value
    ) throws(BusFailure) -> [String: Value] {
        try BusFailure.check(sd_bus_message_enter_container(message, arrayType, "{" + entry + "}"))
        var members: [String: Value] = [:]
        while try BusFailure.check(sd_bus_message_enter_container(message, entryType, entry)) > 0 {
            guard members.count < most.values else { throw BusFailure(code: EMSGSIZE) }
            let name = try text(of: message)
            members[name] = try value(message)
            try BusFailure.check(sd_bus_message_exit_container(message))
        }
        try BusFailure.check(sd_bus_message_exit_container(message))
        return members
    }

    private static func bytes(of message: OpaquePointer) throws(BusFailure) -> [UInt8] {
        var pointer: UnsafeRawPointer?
        var count = 0
        try BusFailure.check(sd_bus_message_read_array(message, byteType, &pointer, &count))
        guard count <= most.bytes else { throw BusFailure(code: EMSGSIZE) }
        return Array(UnsafeRawBufferPointer(start: pointer, count: count))
    }

    private static func texts(of message: OpaquePointer, _ type: CChar) throws(BusFailure) -> [String] {
        try BusFailure.check(sd_bus_message_enter_container(message, arrayType, signature(type, "")))
        var texts: [String] = []
        while let text = try nextText(of: message, type) {
            guard texts.count < most.values else { throw BusFailure(code: EMSGSIZE) }
            texts.append(text)
        }
        try BusFailure.check(sd_bus_message_exit_container(message))
        return texts
    }

    private static func text(of message: OpaquePointer, _ type: CChar = stringType) throws(BusFailure) -> String {
        guard let text = try nextText(of: message, type) else { throw BusFailure(code: EBADMSG) }
        return text
    }

    /// The next text; nil at the end of its container.
    private static func nextText(of message: OpaquePointer, _ type: CChar) throws(BusFailure) -> String? {
        var text: UnsafePointer<CChar>?
        guard try BusFailure.check(sd_bus_message_read_basic(message, type, &text)) > 0, let text else { return nil }
        guard strnlen(text, most.bytes) < most.bytes else { throw BusFailure(code: EMSGSIZE) }
        return String(cString: text)
    }

    private static func signature(_ type: CChar, _ contents: String) -> String {
        switch type {
        case arrayType: "a" + contents
        case structType: "(" + contents + ")"
        case entryType: "{" + contents + "}"
        default: String(UnicodeScalar(UInt8(bitPattern: type)))
        }
    }

    private static var byteType: CChar { CChar(SD_BUS_TYPE_BYTE) }
    private static var boolType: CChar { CChar(SD_BUS_TYPE_BOOLEAN) }
    private static var int32Type: CChar { CChar(SD_BUS_TYPE_INT32) }
    private static var uint32Type: CChar { CChar(SD_BUS_TYPE_UINT32) }
    private static var stringType: CChar { CChar(SD_BUS_TYPE_STRING) }
    private static var pathType: CChar { CChar(SD_BUS_TYPE_OBJECT_PATH) }
    private static var arrayType: CChar { CChar(SD_BUS_TYPE_ARRAY) }
    private static var variantType: CChar { CChar(SD_BUS_TYPE_VARIANT) }
    private static var structType: CChar { CChar(SD_BUS_TYPE_STRUCT) }
    private static var entryType: CChar { CChar(SD_BUS_TYPE_DICT_ENTRY) }
}
