internal import CSystemd
internal import Glibc

/// What sd-bus said no to.
struct BusFailure: Error {
    /// As in errno(3).
    let code: CInt

    /// The result of a call of sd-bus, unless it is a failure.
    @discardableResult
    static func check(_ result: CInt) throws(BusFailure) -> CInt {
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
    func append(to message: OpaquePointer) throws(BusFailure) {
        switch self {
        case .byte(var value): try Self.append(Self.byteType, &value, to: message)
        case .int32(var value): try Self.append(Self.int32Type, &value, to: message)
        case .uint32(var value): try Self.append(Self.uint32Type, &value, to: message)
        case .string(let text): try Self.append(text, to: message)
        case .strings(let texts):
            try BusFailure.check(sd_bus_message_open_container(message, Self.arrayType, "s"))
            for text in texts { try Self.append(text, to: message) }
            try BusFailure.check(sd_bus_message_close_container(message))
        case .dictionary(let members):
            try BusFailure.check(sd_bus_message_open_container(message, Self.arrayType, "{sv}"))
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                try BusFailure.check(sd_bus_message_open_container(message, Self.entryType, "sv"))
                try Self.append(name, to: message)
                try BusFailure.check(sd_bus_message_open_container(message, Self.variantType, value.signature))
                try value.append(to: message)
                try BusFailure.check(sd_bus_message_close_container(message))
                try BusFailure.check(sd_bus_message_close_container(message))
            }
            try BusFailure.check(sd_bus_message_close_container(message))
        case .other: throw BusFailure(code: EINVAL)
        }
    }

    private var signature: String {
        switch self {
        case .byte: "y"
        case .int32: "i"
        case .uint32: "u"
        case .string: "s"
        case .strings: "as"
        case .dictionary: "a{sv}"
        case .other: ""
        }
    }

    private static func append(_ type: CChar, _ value: UnsafeRawPointer, to message: OpaquePointer) throws(BusFailure) {
        try BusFailure.check(sd_bus_message_append_basic(message, type, value))
    }

    /// A text of D-Bus has no zero byte: one is replaced, and the rest is not lost.
    private static func append(_ text: String, to message: OpaquePointer) throws(BusFailure) {
        let scalars = text.unicodeScalars.map { $0 == "\0" ? "\u{FFFD}" : $0 }
        let text = text.utf8.contains(0) ? String(String.UnicodeScalarView(scalars)) : text
        let result = text.withCString { sd_bus_message_append_basic(message, stringType, $0) }
        try BusFailure.check(result)
    }
}

// MARK: - Reading

extension BusValue {
    /// The values in the body of a message.
    static func body(of message: OpaquePointer) throws(BusFailure) -> [BusValue] {
        var values: [BusValue] = []
        while true {
            var type: CChar = 0
            var contents: UnsafePointer<CChar>?
            guard try BusFailure.check(sd_bus_message_peek_type(message, &type, &contents)) > 0 else { return values }
            let inner = contents.map { String(cString: $0) } ?? ""
            values.append(try next(type, inner, of: message))
        }
    }

    private static func next(_ type: CChar, _ contents: String, of message: OpaquePointer) throws(BusFailure)
        -> BusValue
    {
        switch type {
        case byteType:
            var value: UInt8 = 0
            try BusFailure.check(sd_bus_message_read_basic(message, type, &value))
            return .byte(value)
        case int32Type:
            var value: Int32 = 0
            try BusFailure.check(sd_bus_message_read_basic(message, type, &value))
            return .int32(value)
        case uint32Type:
            var value: UInt32 = 0
            try BusFailure.check(sd_bus_message_read_basic(message, type, &value))
            return .uint32(value)
        case stringType:
            guard let text = try nextText(of: message) else { throw BusFailure(code: EBADMSG) }
            return .string(text)
        case arrayType where contents == "s":
            try BusFailure.check(sd_bus_message_enter_container(message, type, contents))
            var texts: [String] = []
            while let text = try nextText(of: message) { texts.append(text) }
            try BusFailure.check(sd_bus_message_exit_container(message))
            return .strings(texts)
        default:
            try BusFailure.check(sd_bus_message_skip(message, signature(type, contents)))
            return .other
        }
    }

    /// The next text; nil at the end of its container.
    private static func nextText(of message: OpaquePointer) throws(BusFailure) -> String? {
        var text: UnsafePointer<CChar>?
        guard try BusFailure.check(sd_bus_message_read_basic(message, stringType, &text)) > 0 else { return nil }
        return text.map { String(cString: $0) }
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
    private static var int32Type: CChar { CChar(SD_BUS_TYPE_INT32) }
    private static var uint32Type: CChar { CChar(SD_BUS_TYPE_UINT32) }
    private static var stringType: CChar { CChar(SD_BUS_TYPE_STRING) }
    private static var arrayType: CChar { CChar(SD_BUS_TYPE_ARRAY) }
    private static var variantType: CChar { CChar(SD_BUS_TYPE_VARIANT) }
    private static var structType: CChar { CChar(SD_BUS_TYPE_STRUCT) }
    private static var entryType: CChar { CChar(SD_BUS_TYPE_DICT_ENTRY) }
}
