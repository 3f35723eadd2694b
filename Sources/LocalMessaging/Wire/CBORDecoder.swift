internal import FoundationEssentials

/// A value within a message, for `Decodable`.
///
/// Reads `CBORItems` where they are; nothing is copied but the values that are asked for.
final class CBORDecoder: Decoder, SingleValueDecodingContainer {
    private let message: CBORMessage
    /// The value; `nil` is one that is not there, which reads as null (`superDecoder`).
    private let item: Int?
    private let parent: CBORDecoder?
    private let step: CBORStep
    /// Where the last key was found: the next one that is asked for mostly follows it.
    @exclusivity(unchecked) private var lastKey = 0

    init(_ message: CBORMessage) {
        self.message = message
        item = 0
        parent = nil
        step = .root
    }

    private init(_ item: Int?, in parent: CBORDecoder, _ step: CBORStep) {
        message = parent.message
        self.item = item
        self.parent = parent
        self.step = step
    }

    func child(_ item: Int?, _ step: CBORStep) -> CBORDecoder { CBORDecoder(item, in: self, step) }

    var items: CBORItems { message.items }

    // MARK: Decoder

    var userInfo: [CodingUserInfoKey: Any] { [:] }

    var codingPath: [any CodingKey] {
        var path: [any CodingKey] = []
        var next: CBORDecoder? = self
        while let decoder = next {
            if let key = decoder.step.key { path.append(key) }
            next = decoder.parent
        }
        path.reverse()
        return path
    }

    func container<Key: CodingKey>(keyedBy _: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(CBORKeyedDecoding(self, try container(.map, [String: Any].self)))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        CBORUnkeyedDecoding(self, try container(.array, [Any].self))
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    private func container(_ major: CBORHead.Major, _ type: Any.Type) throws -> Int {
        guard let item else { throw failure(.null, type) }
        let head = items.head(item)
        guard head.major == major else { throw failure(items.misfit(head), type) }
        return item
    }

    // MARK: SingleValueDecodingContainer

    func decodeNil() -> Bool { item.map(items.isNull) ?? true }
    func decode(_: Bool.Type) throws -> Bool { try read { items, item throws(CBORMisfit) in try items.bool(item) } }
    func decode(_: String.Type) throws -> String {
        try read { items, item throws(CBORMisfit) in try items.string(item) }
    }
    func decode(_: Double.Type) throws -> Double {
        try read { items, item throws(CBORMisfit) in try items.double(item) }
    }
    func decode(_: Float.Type) throws -> Float {
        try read { items, item throws(CBORMisfit) in try items.float(item) }
    }
    func decode(_: Int.Type) throws -> Int { try integer() }
    func decode(_: Int8.Type) throws -> Int8 { try integer() }
    func decode(_: Int16.Type) throws -> Int16 { try integer() }
    func decode(_: Int32.Type) throws -> Int32 { try integer() }
    func decode(_: Int64.Type) throws -> Int64 { try integer() }
    func decode(_: UInt.Type) throws -> UInt { try integer() }
    func decode(_: UInt8.Type) throws -> UInt8 { try integer() }
    func decode(_: UInt16.Type) throws -> UInt16 { try integer() }
    func decode(_: UInt32.Type) throws -> UInt32 { try integer() }
    func decode(_: UInt64.Type) throws -> UInt64 { try integer() }

    func decode<Value: Decodable>(_: Value.Type) throws -> Value {
        if let item, let value: Value = bytes(item) { return value }
        return try Value(from: self)
    }

    private func integer<Number: FixedWidthInteger>() throws -> Number {
        try read { items, item throws(CBORMisfit) in try items.integer(item) }
    }

    @inline(__always)
    private func read<Value>(_ read: (CBORItems, Int) throws(CBORMisfit) -> Value) throws -> Value {
        guard let item else { throw failure(.null, Value.self) }
        do throws(CBORMisfit) {
            return try read(items, item)
        } catch {
            throw failure(error, Value.self)
        }
    }

    // MARK: For the containers

    /// A value that is not one of the leaves.
    func decode<Value: Decodable>(_ item: Int, _ step: @autoclosure () -> CBORStep) throws -> Value {
        if let value: Value = bytes(item) { return value }
        return try Value(from: child(item, step()))
    }

    /// The key in a map of this decoder.
    func find(_ name: String, in map: Int) -> Int? {
        var name = name
        let key = name.withUTF8 { items.key(UnsafeRawBufferPointer($0), in: map, from: max(lastKey, map + 1)) }
        if let key { lastKey = key }
        return key
    }

    /// Bytes, where those are in the item and are asked for.
    @inline(__always)
    private func bytes<Value>(_ item: Int) -> Value? {
        if Value.self == Data.self {
            return items.isBytes(item) ? Data(items.bytes(item)) as? Value : nil
        }
        if Value.self == [UInt8].self {
            return items.isBytes(item) ? Array(items.bytes(item)) as? Value : nil
        }
        return nil
    }

    func failure(_ misfit: CBORMisfit, _ type: Any.Type, at key: (any CodingKey)? = nil) -> DecodingError {
        let path = codingPath + (key.map { [$0] } ?? [])
        func context(_ what: String) -> DecodingError.Context {
            DecodingError.Context(codingPath: path, debugDescription: what)
        }
        return switch misfit {
        case .null: .valueNotFound(type, context("null, where \(type) is expected."))
        case .kind(let kind): .typeMismatch(type, context("\(kind), where \(type) is expected."))
        case .range(let number): .dataCorrupted(context("\(number) does not fit \(type)."))
        }
    }
}
