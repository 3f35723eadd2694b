/// The values of a map that is being written, in the order in which they are given.
struct CBORKeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    private let encoder: CBOREncoder

    init(_ encoder: CBOREncoder) { self.encoder = encoder }

    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil(forKey key: Key) throws { try encoder.beginPair(key).writeNull() }
    func encode(_ value: Bool, forKey key: Key) throws { try encoder.beginPair(key).write(value) }
    func encode(_ value: String, forKey key: Key) throws { try encoder.beginPair(key).write(value) }
    func encode(_ value: Double, forKey key: Key) throws { try encoder.beginPair(key).write(value) }
    func encode(_ value: Float, forKey key: Key) throws { try encoder.beginPair(key).write(value) }
    func encode(_ value: Int, forKey key: Key) throws { try encoder.beginPair(key).write(Int64(value)) }
    func encode(_ value: Int8, forKey key: Key) throws { try encoder.beginPair(key).write(Int64(value)) }
    func encode(_ value: Int16, forKey key: Key) throws { try encoder.beginPair(key).write(Int64(value)) }
    func encode(_ value: Int32, forKey key: Key) throws { try encoder.beginPair(key).write(Int64(value)) }
    func encode(_ value: Int64, forKey key: Key) throws { try encoder.beginPair(key).write(Int64(value)) }
    func encode(_ value: UInt, forKey key: Key) throws { try encoder.beginPair(key).write(UInt64(value)) }
    func encode(_ value: UInt8, forKey key: Key) throws { try encoder.beginPair(key).write(UInt64(value)) }
    func encode(_ value: UInt16, forKey key: Key) throws { try encoder.beginPair(key).write(UInt64(value)) }
    func encode(_ value: UInt32, forKey key: Key) throws { try encoder.beginPair(key).write(UInt64(value)) }
    func encode(_ value: UInt64, forKey key: Key) throws { try encoder.beginPair(key).write(UInt64(value)) }

    func encode(_ value: some Encodable, forKey key: Key) throws {
        let position = encoder.position
        _ = try encoder.beginPair(key)
        do {
            try encoder.encode(value, .key(key))
        } catch {
            encoder.takeBack(to: position)
            throw error
        }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        later(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { later(key).unkeyedContainer() }
    func superEncoder() -> any Encoder { later(CBORSuperKey()) }
    func superEncoder(forKey key: Key) -> any Encoder { later(key) }

    private func later(_ key: some CodingKey) -> CBOREncoder {
        do {
            _ = try encoder.beginPair(key)
        } catch {
            encoder.fail(error)
        }
        return encoder.encodeLater(.key(key))
    }
}
