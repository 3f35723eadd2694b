/// The values of a map, by their keys.
struct CBORKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let decoder: CBORDecoder
    private let map: Int

    init(_ decoder: CBORDecoder, _ map: Int) {
        self.decoder = decoder
        self.map = map
    }

    var codingPath: [any CodingKey] { decoder.codingPath }

    var allKeys: [Key] {
        var keys: [Key] = []
        var key = map + 1
        let end = decoder.items.next(map)
        while key < end {
            let name = String(decoding: decoder.items.utf8(key), as: UTF8.self)
            if let key = Key(stringValue: name) { keys.append(key) }
            key = decoder.items.next(key + 1)
        }
        return keys
    }

    func contains(_ key: Key) -> Bool { find(key) != nil }

    func decodeNil(forKey key: Key) throws -> Bool { decoder.items.isNull(try value(key)) }
    func decode(_: Bool.Type, forKey key: Key) throws -> Bool {
        try read(key) { items, item throws(CBORMisfit) in try items.bool(item) }
    }
    func decode(_: String.Type, forKey key: Key) throws -> String {
        try read(key) { items, item throws(CBORMisfit) in try items.string(item) }
    }
    func decode(_: Double.Type, forKey key: Key) throws -> Double {
        try read(key) { items, item throws(CBORMisfit) in try items.double(item) }
    }
    func decode(_: Float.Type, forKey key: Key) throws -> Float {
        try read(key) { items, item throws(CBORMisfit) in try items.float(item) }
    }
    func decode(_: Int.Type, forKey key: Key) throws -> Int { try integer(key) }
    func decode(_: Int8.Type, forKey key: Key) throws -> Int8 { try integer(key) }
    func decode(_: Int16.Type, forKey key: Key) throws -> Int16 { try integer(key) }
    func decode(_: Int32.Type, forKey key: Key) throws -> Int32 { try integer(key) }
    func decode(_: Int64.Type, forKey key: Key) throws -> Int64 { try integer(key) }
    func decode(_: UInt.Type, forKey key: Key) throws -> UInt { try integer(key) }
    func decode(_: UInt8.Type, forKey key: Key) throws -> UInt8 { try integer(key) }
    func decode(_: UInt16.Type, forKey key: Key) throws -> UInt16 { try integer(key) }
    func decode(_: UInt32.Type, forKey key: Key) throws -> UInt32 { try integer(key) }
    func decode(_: UInt64.Type, forKey key: Key) throws -> UInt64 { try integer(key) }

    func decode<Value: Decodable>(_: Value.Type, forKey key: Key) throws -> Value {
        try decoder.decode(try value(key), .key(key))
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type,
        forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try decoder.child(try value(key), .key(key)).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder.child(try value(key), .key(key)).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { superDecoder(CBORSuperKey()) }
    func superDecoder(forKey key: Key) throws -> any Decoder { superDecoder(key) }

    private func superDecoder(_ key: some CodingKey) -> CBORDecoder {
        decoder.child(find(key).map { $0 + 1 }, .key(key))
    }

    private func find(_ key: some CodingKey) -> Int? { decoder.find(key.stringValue, in: map) }

    /// The item of a value that has to be there.
    private func value(_ key: Key) throws -> Int {
        if let found = find(key) { return found + 1 }
        throw DecodingError.keyNotFound(
            key,
            DecodingError.Context(codingPath: codingPath, debugDescription: "there is no \(key.stringValue).")
        )
    }

    private func integer<Number: FixedWidthInteger>(_ key: Key) throws -> Number {
        try read(key) { items, item throws(CBORMisfit) in try items.integer(item) }
    }

    @inline(__always)
    private func read<Value>(_ key: Key, _ read: (CBORItems, Int) throws(CBORMisfit) -> Value) throws -> Value {
        let item = try value(key)
        do throws(CBORMisfit) {
            return try read(decoder.items, item)
        } catch {
            throw decoder.failure(error, Value.self, at: key)
        }
    }
}
