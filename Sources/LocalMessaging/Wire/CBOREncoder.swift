internal import FoundationEssentials
internal import NIOCore

/// A value that is being written, for `Encodable`.
///
/// Values within each other are written in place. What an encoder gives out for later (`nestedContainer`, `superEncoder`)
/// may be filled in any order: it has a writer of its own, which is put in its place at the end.
final class CBOREncoder: Encoder, SingleValueEncodingContainer {
    private enum Shape {
        case nothing
        case value
        case array
        case map
    }

    /// What is encoded within each other at most; without a bound, a value that contains itself would use up the stack.
    static let maximumDepth = 256

    let writer: CBORWriter
    private let parent: CBOREncoder?
    private let step: CBORStep
    @exclusivity(unchecked) private var shape = Shape.nothing
    @exclusivity(unchecked) private var headOffset = 0
    /// Elements or pairs so far.
    @exclusivity(unchecked) private(set) var count = 0
    @exclusivity(unchecked) private var later: [(offset: Int, encoder: CBOREncoder)] = []

    init(_ writer: CBORWriter) {
        self.writer = writer
        parent = nil
        step = .root
        writer.current = ObjectIdentifier(self)
    }

    private init(_ writer: CBORWriter, in parent: CBOREncoder, _ step: CBORStep) {
        self.writer = writer
        self.parent = parent
        self.step = step
        writer.current = ObjectIdentifier(self)
    }

    /// The message, which has to encode something.
    func encodeMessage(_ message: some Encodable) throws -> ByteBuffer {
        defer {
            letGo()
            writer.failure = nil
        }
        try encode(message)
        guard shape != .nothing || !later.isEmpty else { throw failure(message, "it encodes nothing.") }
        try finish()
        return writer.bytes
    }

    // MARK: Encoder

    var userInfo: [CodingUserInfoKey: Any] { [:] }

    var codingPath: [any CodingKey] {
        var path: [any CodingKey] = []
        var next: CBOREncoder? = self
        while let encoder = next {
            if let key = encoder.step.key { path.append(key) }
            next = encoder.parent
        }
        path.reverse()
        return path
    }

    func container<Key: CodingKey>(keyedBy _: Key.Type) -> KeyedEncodingContainer<Key> {
        begin(.map)
        return KeyedEncodingContainer(CBORKeyedEncoding(self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        begin(.array)
        return CBORUnkeyedEncoding(self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    // MARK: SingleValueEncodingContainer

    func encodeNil() throws { try beginValue().writeNull() }
    func encode(_ value: Bool) throws { try beginValue().write(value) }
    func encode(_ value: String) throws { try beginValue().write(value) }
    func encode(_ value: Double) throws { try beginValue().write(value) }
    func encode(_ value: Float) throws { try beginValue().write(value) }
    func encode(_ value: Int) throws { try beginValue().write(Int64(value)) }
    func encode(_ value: Int8) throws { try beginValue().write(Int64(value)) }
    func encode(_ value: Int16) throws { try beginValue().write(Int64(value)) }
    func encode(_ value: Int32) throws { try beginValue().write(Int64(value)) }
    func encode(_ value: Int64) throws { try beginValue().write(Int64(value)) }
    func encode(_ value: UInt) throws { try beginValue().write(UInt64(value)) }
    func encode(_ value: UInt8) throws { try beginValue().write(UInt64(value)) }
    func encode(_ value: UInt16) throws { try beginValue().write(UInt64(value)) }
    func encode(_ value: UInt32) throws { try beginValue().write(UInt64(value)) }
    func encode(_ value: UInt64) throws { try beginValue().write(UInt64(value)) }

    func encode(_ value: some Encodable) throws {
        guard isOpen, shape == .nothing else { throw failure(value, "a second value, or one after the end.") }
        let start = writer.byteCount
        do {
            if writeBytes(value) {
                shape = .value
            } else {
                try enter(value)
                defer { writer.depth -= 1 }
                try value.encode(to: self)
            }
        } catch {
            writer.truncate(to: start)
            writer.current = ObjectIdentifier(self)
            (shape, count) = (.nothing, 0)
            letGo()
            throw error
        }
    }

    // MARK: For the containers

    /// Where an element or a pair begins, which `takeBack` goes back to.
    var position: Int { writer.byteCount }

    /// Writes a key; its value is next.
    @inline(__always)
    func beginPair(_ key: some CodingKey) throws -> CBORWriter {
        guard isOpen, shape == .map else { throw failure(key, "a value of a container that has ended.") }
        count += 1
        writer.write(key.stringValue)
        return writer
    }

    @inline(__always)
    func beginElement() throws -> CBORWriter {
        guard isOpen, shape == .array else { throw failure(count, "a value of a container that has ended.") }
        count += 1
        return writer
    }

    /// Forgets the last element or pair.
    func takeBack(to position: Int) {
        writer.truncate(to: position)
        writer.current = ObjectIdentifier(self)
        count -= 1
    }

    /// Writes a value that is not one of the leaves.
    func encode<Value: Encodable>(_ value: Value, _ step: @autoclosure () -> CBORStep) throws {
        if writeBytes(value) { return }
        try enter(value)
        let child = CBOREncoder(writer, in: self, step())
        defer {
            child.letGo()
            writer.depth -= 1
            writer.current = ObjectIdentifier(self)
        }
        try value.encode(to: child)
        try child.finish()
    }

    /// An encoder of the next value, that may be used until this one ends.
    func encodeLater(_ step: CBORStep) -> CBOREncoder {
        guard writer.depth < Self.maximumDepth else {
            if writer.failure == nil { writer.failure = tooDeep(step) }
            return self
        }
        let child = CBOREncoder(CBORWriter(capacity: 32, depth: writer.depth + 1), in: self, step)
        later.append((writer.byteCount, child))
        return child
    }

    /// Notes that a container was used wrongly in a method that cannot say so.
    func fail(_ error: any Error) { writer.failure = error as? EncodingError }

    private var isOpen: Bool { writer.current == ObjectIdentifier(self) }

    private func begin(_ shape: Shape) {
        guard self.shape != shape else { return }
        guard isOpen, self.shape == .nothing else {
            writer.failure = failure(self, "containers of two kinds for one value, or one after the end.")
            return
        }
        headOffset = writer.byteCount
        self.shape = shape
        writer.reserveHead()
    }

    private func beginValue() throws -> CBORWriter {
        guard isOpen, shape == .nothing else { throw failure(self, "a second value, or one after the end.") }
        shape = .value
        return writer
    }

    private func enter(_ value: some Encodable) throws {
        guard writer.depth < Self.maximumDepth else { throw tooDeep(value) }
        writer.depth += 1
    }

    /// Puts everything in its place; a value that wrote nothing is an empty map.
    private func finish() throws {
        writer.current = nil
        if !later.isEmpty {
            var pieces: [(offset: Int, bytes: ByteBuffer)] = []
            for (offset, encoder) in later {
                try encoder.finish()
                pieces.append((offset, encoder.writer.bytes))
            }
            writer.insert(pieces)
        }
        if let failure = writer.failure { throw failure }
        switch shape {
        case .nothing: writer.writeEmptyMap()
        case .value: break
        case .array: writer.setHead(at: headOffset, .array, count)
        case .map: writer.setHead(at: headOffset, .map, count)
        }
    }

    /// Forgets the encoders of later values, which hold this one, as do the errors that they note.
    private func letGo() {
        for (_, encoder) in later {
            encoder.letGo()
            encoder.writer.failure = nil
        }
        later.removeAll()
    }

    @inline(__always)
    private func writeBytes<Value>(_ value: Value) -> Bool {
        if Value.self == Data.self, let data = value as? Data {
            data.withUnsafeBytes { writer.write($0) }
            return true
        }
        if Value.self == [UInt8].self, let bytes = value as? [UInt8] {
            bytes.withUnsafeBytes { writer.write($0) }
            return true
        }
        return false
    }

    private func tooDeep(_ value: Any) -> EncodingError {
        failure(value, "more than \(Self.maximumDepth) values within each other.")
    }

    private func failure(_ value: Any, _ what: String) -> EncodingError {
        .invalidValue(value, EncodingError.Context(codingPath: codingPath, debugDescription: what))
    }
}
