/// Values into bytes, little-endian.
///
/// Source: D-Bus Specification 0.43, "Marshaling (Wire Format)".
struct DBusWriter {
    private(set) var bytes: [UInt8] = []

    mutating func align(to alignment: Int) {
        while bytes.count % alignment != 0 { bytes.append(0) }
    }

    mutating func write(_ value: DBusValue) {
        align(to: value.type.alignment)
        switch value {
        case .byte(let value): bytes.append(value)
        case .boolean(let value): append(UInt32(value ? 1 : 0))
        case .int16(let value): append(value)
        case .uint16(let value): append(value)
        case .int32(let value): append(value)
        case .uint32(let value), .descriptor(let value): append(value)
        case .int64(let value): append(value)
        case .uint64(let value): append(value)
        case .double(let value): append(value.bitPattern)
        case .string(let value), .objectPath(let value):
            // A string ends with a zero byte and must not hold one.
            let text = value.utf8.filter { $0 != 0 }
            append(UInt32(text.count))
            bytes += text + [0]
        case .signature(let value):
            bytes += [UInt8(value.utf8.count)] + value.utf8 + [0]
        case .array(let element, let elements):
            let position = bytes.count
            append(UInt32(0))
            // The padding before the first element is not counted.
            align(to: element.alignment)
            let start = bytes.count
            for element in elements { write(element) }
            replace(at: position, UInt32(bytes.count - start))
        case .structure(let members):
            for member in members { write(member) }
        case .entry(let key, let value):
            write(key)
            write(value)
        case .variant(let value):
            write(.signature(value.type.signature))
            write(value)
        }
    }

    mutating func replace(at position: Int, _ value: UInt32) {
        for index in 0..<4 { bytes[position + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
    }

    private mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
    }
}

/// Values out of bytes from the bus; it traps on none.
///
/// Source: D-Bus Specification 0.43, "Marshaling (Wire Format)".
struct DBusReader {
    private let bytes: [UInt8]
    private let isBigEndian: Bool
    private(set) var position: Int

    /// Reads from `position` on; alignment counts from the first byte.
    init(_ bytes: [UInt8], isBigEndian: Bool, position: Int = 0) {
        self.bytes = bytes
        self.isBigEndian = isBigEndian
        self.position = position
    }

    /// Takes the zeros before the next value.
    ///
    /// - Throws: `NotificationError` with code `protocolViolation`.
    mutating func align(to alignment: Int) throws(NotificationError) {
        while position % alignment != 0 {
            guard try integer(UInt8.self) == 0 else { throw Self.malformed }
        }
    }

    /// Reads a value of this type.
    ///
    /// - Throws: `NotificationError` with code `protocolViolation`.
    mutating func read(_ type: DBusType, depth: Int = 0) throws(NotificationError) -> DBusValue {
        guard depth < DBusType.deepest else { throw Self.malformed }
        try align(to: type.alignment)
        switch type {
        case .basic("y"): return .byte(try integer())
        case .basic("b"):
            let value = try integer(UInt32.self)
            guard value <= 1 else { throw Self.malformed }
            return .boolean(value == 1)
        case .basic("n"): return .int16(try integer())
        case .basic("q"): return .uint16(try integer())
        case .basic("i"): return .int32(try integer())
        case .basic("u"): return .uint32(try integer())
        case .basic("x"): return .int64(try integer())
        case .basic("t"): return .uint64(try integer())
        case .basic("d"): return .double(Double(bitPattern: try integer()))
        case .basic("h"): return .descriptor(try integer())
        case .basic("s"): return .string(try text(byteCount: Int(try integer(UInt32.self))))
        case .basic("o"): return .objectPath(try text(byteCount: Int(try integer(UInt32.self))))
        case .basic("g"): return .signature(try text(byteCount: Int(try integer(UInt8.self))))
        case .basic: throw Self.malformed
        case .array(let element):
            let byteCount = Int(try integer(UInt32.self))
            try align(to: element.alignment)
            guard byteCount <= bytes.count - position else { throw Self.malformed }
            let end = position + byteCount
            var elements: [DBusValue] = []
            while position < end { elements.append(try read(element, depth: depth + 1)) }
            guard position == end else { throw Self.malformed }
            return .array(of: element, elements)
        case .structure(let types):
            var members: [DBusValue] = []
            for type in types { members.append(try read(type, depth: depth + 1)) }
            return .structure(members)
        case .entry(let key, let value):
            return .entry(key: try read(key, depth: depth + 1), value: try read(value, depth: depth + 1))
        case .variant:
            guard case .signature(let signature) = try read(.basic("g")) else { throw Self.malformed }
            let types = try DBusType.parse(signature: signature)
            guard types.count == 1 else { throw Self.malformed }
            return .variant(try read(types[0], depth: depth + 1))
        }
    }

    private mutating func integer<Value: FixedWidthInteger>(
        _ type: Value.Type = Value.self
    ) throws(NotificationError) -> Value {
        let size = MemoryLayout<Value>.size
        guard size <= bytes.count - position else { throw Self.malformed }
        var value = Value.zero
        withUnsafeMutableBytes(of: &value) { $0.copyBytes(from: bytes[position..<position + size]) }
        position += size
        return isBigEndian ? Value(bigEndian: value) : Value(littleEndian: value)
    }

    private mutating func text(byteCount: Int) throws(NotificationError) -> String {
        guard byteCount < bytes.count - position, bytes[position + byteCount] == 0,
            let text = String(validating: bytes[position..<position + byteCount], as: UTF8.self)
        else { throw Self.malformed }
        position += byteCount + 1
        return text
    }

    static var malformed: NotificationError {
        NotificationError(.protocolViolation, "The bus sent a message that is not of D-Bus. Check the bus address.")
    }
}
