/// A message of D-Bus.
///
///     0      1      2      3        4            8        12              16
///     +------+------+-------+---------+------------+--------+---------------+--------+-----------+------+
///     | l, B | kind | flags | 1       | body bytes | serial | bytes of the  | fields | zeros to  | body |
///     |      |      |       |         |            |        | fields        |        | 8 bytes   |      |
///     +------+------+-------+---------+------------+--------+---------------+--------+-----------+------+
///
/// Source: D-Bus Specification 0.43, "Message Format".
struct DBusMessage: Hashable, Sendable {
    enum Kind: UInt8 {
        case call = 1
        case reply, error, signal
    }

    var kind: Kind
    var expectsReply = true
    var serial: UInt32 = 0
    var path: String?
    var interface: String?
    var member: String?
    var errorName: String?
    var replySerial: UInt32?
    var destination: String?
    var sender: String?
    var body: [DBusValue] = []

    init(_ kind: Kind) {
        self.kind = kind
    }

    /// A call of a method.
    static func call(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ body: [DBusValue] = []
    ) -> DBusMessage {
        var message = DBusMessage(.call)
        message.destination = destination
        message.path = path
        message.interface = interface
        message.member = member
        message.body = body
        return message
    }

    /// The bytes of the message.
    func serialize() -> [UInt8] {
        var content = DBusWriter()
        for value in body { content.write(value) }
        var writer = DBusWriter()
        for byte in [UInt8(ascii: "l"), kind.rawValue, expectsReply ? 0 : 1, 1] { writer.write(.byte(byte)) }
        writer.write(.uint32(UInt32(content.bytes.count)))
        writer.write(.uint32(serial))
        let signature = body.map(\.type.signature).joined()
        let fields: [(Field, DBusValue?)] = [
            (.path, path.map { .objectPath($0) }),
            (.interface, interface.map { .string($0) }),
            (.member, member.map { .string($0) }),
            (.errorName, errorName.map { .string($0) }),
            (.replySerial, replySerial.map { .uint32($0) }),
            (.destination, destination.map { .string($0) }),
            (.signature, signature.isEmpty ? nil : .signature(signature)),
        ]
        writer.write(
            .array(
                of: .structure([.basic("y"), .variant]),
                fields.compactMap { field, value in
                    value.map { .structure([.byte(field.rawValue), .variant($0)]) }
                }
            )
        )
        writer.align(to: 8)
        return writer.bytes + content.bytes
    }

    /// How many bytes the message has that begins with these 16.
    ///
    /// - Throws: `NotificationError` with code `protocolViolation` when they begin none, or one that is too long.
    static func byteCount(ofHeader header: some RandomAccessCollection<UInt8>) throws(NotificationError) -> Int {
        let bytes = Array(header.prefix(headerByteCount))
        guard bytes.count == headerByteCount, bytes[3] == 1 else { throw DBusReader.malformed }
        var reader = DBusReader(bytes, isBigEndian: try isBigEndian(bytes[0]), position: 4)
        guard case .uint32(let body) = try reader.read(.basic("u")), case .uint32 = try reader.read(.basic("u")),
            case .uint32(let fields) = try reader.read(.basic("u"))
        else { throw DBusReader.malformed }
        let byteCount = (headerByteCount + Int(fields) + 7) / 8 * 8 + Int(body)
        guard byteCount <= mostBytes else {
            let message = "A D-Bus message of \(byteCount) bytes came; at most \(mostBytes) are taken."
            throw NotificationError(.protocolViolation, message)
        }
        return byteCount
    }

    /// Reads a whole message; nil for a kind that is not known, which is to be left out.
    ///
    /// - Throws: `NotificationError` with code `protocolViolation`.
    init?(parsing bytes: [UInt8]) throws(NotificationError) {
        guard try Self.byteCount(ofHeader: bytes) == bytes.count, bytes[1] != 0 else { throw DBusReader.malformed }
        guard let kind = Kind(rawValue: bytes[1]) else { return nil }
        self.kind = kind
        expectsReply = bytes[2] & 1 == 0
        var reader = DBusReader(bytes, isBigEndian: try Self.isBigEndian(bytes[0]), position: 8)
        guard case .uint32(let serial) = try reader.read(.basic("u")),
            case .array(_, let fields) = try reader.read(.array(.structure([.basic("y"), .variant])))
        else { throw DBusReader.malformed }
        self.serial = serial
        var signature = ""
        for case .structure(let members) in fields {
            guard members.count == 2, case .byte(let code) = members[0], case .variant(let value) = members[1] else {
                throw DBusReader.malformed
            }
            switch (Field(rawValue: code), value) {
            case (.path, .objectPath(let text)): path = text
            case (.interface, .string(let text)): interface = text
            case (.member, .string(let text)): member = text
            case (.errorName, .string(let text)): errorName = text
            case (.replySerial, .uint32(let number)): replySerial = number
            case (.destination, .string(let text)): destination = text
            case (.sender, .string(let text)): sender = text
            case (.signature, .signature(let text)): signature = text
            case (nil, _): break
            default: throw DBusReader.malformed
            }
        }
        try reader.align(to: 8)
        for type in try DBusType.parse(signature: signature) { body.append(try reader.read(type)) }
        guard reader.position == bytes.count else { throw DBusReader.malformed }
    }

    /// How many bytes tell how long a message is.
    static var headerByteCount: Int { 16 }
    /// The longest message that is taken; those that concern notifications are short.
    static var mostBytes: Int { 262_144 }

    private enum Field: UInt8 {
        case path = 1
        case interface, member, errorName, replySerial, destination, sender, signature
    }

    private static func isBigEndian(_ letter: UInt8) throws(NotificationError) -> Bool {
        switch letter {
        case UInt8(ascii: "l"): false
        case UInt8(ascii: "B"): true
        default: throw DBusReader.malformed
        }
    }
}
