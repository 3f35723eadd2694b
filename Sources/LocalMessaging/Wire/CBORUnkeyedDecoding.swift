/// The elements of an array, one after the other; an element that cannot be decoded stays the next one.
struct CBORUnkeyedDecoding: UnkeyedDecodingContainer {
    private let decoder: CBORDecoder
    /// The next element's item.
    private var item: UInt32
    private var index: UInt32 = 0
    private let end: UInt32
    private let elementCount: UInt32

    /// The array has as many items as fit `UInt32`, as `CBORItems` has checked.
    init(_ decoder: CBORDecoder, _ array: Int) {
        self.decoder = decoder
        item = UInt32(array + 1)
        end = UInt32(decoder.items.next(array))
        elementCount = UInt32(decoder.items.count(array))
    }

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { Int(elementCount) }
    var currentIndex: Int { Int(index) }
    var isAtEnd: Bool { item == end }

    mutating func decodeNil() throws -> Bool {
        guard decoder.items.isNull(try next(Any?.self)) else { return false }
        advance()
        return true
    }
    mutating func decode(_: Bool.Type) throws -> Bool {
        try read { items, item throws(CBORMisfit) in try items.bool(item) }
    }
    mutating func decode(_: String.Type) throws -> String {
        try read { items, item throws(CBORMisfit) in try items.string(item) }
    }
    mutating func decode(_: Double.Type) throws -> Double {
        try read { items, item throws(CBORMisfit) in try items.double(item) }
    }
    mutating func decode(_: Float.Type) throws -> Float {
        try read { items, item throws(CBORMisfit) in try items.float(item) }
    }
    mutating func decode(_: Int.Type) throws -> Int { try integer() }
    mutating func decode(_: Int8.Type) throws -> Int8 { try integer() }
    mutating func decode(_: Int16.Type) throws -> Int16 { try integer() }
    mutating func decode(_: Int32.Type) throws -> Int32 { try integer() }
    mutating func decode(_: Int64.Type) throws -> Int64 { try integer() }
    mutating func decode(_: UInt.Type) throws -> UInt { try integer() }
    mutating func decode(_: UInt8.Type) throws -> UInt8 { try integer() }
    mutating func decode(_: UInt16.Type) throws -> UInt16 { try integer() }
    mutating func decode(_: UInt32.Type) throws -> UInt32 { try integer() }
    mutating func decode(_: UInt64.Type) throws -> UInt64 { try integer() }

    mutating func decode<Value: Decodable>(_: Value.Type) throws -> Value {
        let value: Value = try decoder.decode(try next(Value.self), .index(currentIndex))
        advance()
        return value
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        let container = try child(KeyedDecodingContainer<NestedKey>.self).container(keyedBy: type)
        advance()
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try child((any UnkeyedDecodingContainer).self).unkeyedContainer()
        advance()
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let decoder = try child((any Decoder).self)
        advance()
        return decoder
    }

    private func child(_ type: Any.Type) throws -> CBORDecoder { decoder.child(try next(type), .index(currentIndex)) }

    @inline(__always)
    private func next(_ type: Any.Type) throws -> Int {
        guard item < end else {
            throw DecodingError.valueNotFound(
                type,
                DecodingError.Context(
                    codingPath: codingPath + [CBORIndexKey(currentIndex)],
                    debugDescription: "the array has \(elementCount) elements, and no other \(type)."
                )
            )
        }
        return Int(item)
    }

    private mutating func advance() {
        item = UInt32(decoder.items.next(Int(item)))
        index += 1
    }

    private mutating func integer<Number: FixedWidthInteger>() throws -> Number {
        try read { items, item throws(CBORMisfit) in try items.integer(item) }
    }

    @inline(__always)
    private mutating func read<Value>(_ read: (CBORItems, Int) throws(CBORMisfit) -> Value) throws -> Value {
        let item = try next(Value.self)
        do throws(CBORMisfit) {
            let value = try read(decoder.items, item)
            advance()
            return value
        } catch {
            throw decoder.failure(error, Value.self, at: CBORIndexKey(currentIndex))
        }
    }
}
