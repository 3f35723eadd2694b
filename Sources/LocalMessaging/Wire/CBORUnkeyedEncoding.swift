/// The elements of an array that is being written.
struct CBORUnkeyedEncoding: UnkeyedEncodingContainer {
    private let encoder: CBOREncoder

    init(_ encoder: CBOREncoder) { self.encoder = encoder }

    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { encoder.count }

    func encodeNil() throws { try encoder.beginElement().writeNull() }
    func encode(_ value: Bool) throws { try encoder.beginElement().write(value) }
    func encode(_ value: String) throws { try encoder.beginElement().write(value) }
    func encode(_ value: Double) throws { try encoder.beginElement().write(value) }
    func encode(_ value: Float) throws { try encoder.beginElement().write(value) }
    func encode(_ value: Int) throws { try encoder.beginElement().write(Int64(value)) }
    func encode(_ value: Int8) throws { try encoder.beginElement().write(Int64(value)) }
    func encode(_ value: Int16) throws { try encoder.beginElement().write(Int64(value)) }
    func encode(_ value: Int32) throws { try encoder.beginElement().write(Int64(value)) }
    func encode(_ value: Int64) throws { try encoder.beginElement().write(Int64(value)) }
    func encode(_ value: UInt) throws { try encoder.beginElement().write(UInt64(value)) }
    func encode(_ value: UInt8) throws { try encoder.beginElement().write(UInt64(value)) }
    func encode(_ value: UInt16) throws { try encoder.beginElement().write(UInt64(value)) }
    func encode(_ value: UInt32) throws { try encoder.beginElement().write(UInt64(value)) }
    func encode(_ value: UInt64) throws { try encoder.beginElement().write(UInt64(value)) }

    func encode(_ value: some Encodable) throws {
        let position = encoder.position
        _ = try encoder.beginElement()
        do {
            try encoder.encode(value, .index(count - 1))
        } catch {
            encoder.takeBack(to: position)
            throw error
        }
    }

    func nestedContainer<NestedKey: CodingKey>(keyedBy type: NestedKey.Type) -> KeyedEncodingContainer<NestedKey> {
        later().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { later().unkeyedContainer() }
    func superEncoder() -> any Encoder { later() }

    private func later() -> CBOREncoder {
        do {
            _ = try encoder.beginElement()
        } catch {
            encoder.fail(error)
        }
        return encoder.encodeLater(.index(count - 1))
    }
}
