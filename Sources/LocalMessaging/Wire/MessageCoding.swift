import FoundationEssentials
import NIOCore

/// Messages as JSON, within bounds.
enum MessageCoding {
    /// Why bytes are not a message.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    private static let encoder = JSONEncoder()
    private static let decoder = JSONDecoder()

    static func encode(_ message: some Encodable) throws(Failure) -> ByteBuffer {
        do {
            return ByteBuffer(bytes: try encoder.encode(message))
        } catch {
            throw Failure(reason(of: error))
        }
    }

    /// Decodes after a look at the depth and count of values, so that nothing large is built from small bytes.
    static func decode<Message: Decodable>(
        _: Message.Type,
        from payload: ByteBuffer,
        within bounds: JSONBounds
    ) throws(Failure) -> Message {
        if let excess = payload.withUnsafeReadableBytes({ bounds.excess(in: $0) }) { throw Failure(excess) }
        do {
            return try decoder.decode(Message.self, from: payload.withUnsafeReadableBytes { Data($0) })
        } catch {
            throw Failure(reason(of: error))
        }
    }

    private static func reason(of error: any Error) -> String {
        let path: [any CodingKey]
        let what: String
        switch error {
        case EncodingError.invalidValue(_, let context):
            (path, what) = (context.codingPath, context.debugDescription)
        case DecodingError.dataCorrupted(let context), DecodingError.keyNotFound(_, let context),
            DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            (path, what) = (context.codingPath, context.debugDescription)
        default: return "\(error)"
        }
        return path.isEmpty ? what : path.map(\.stringValue).joined(separator: ".") + ": " + what
    }
}

/// How deep and how many the values of a JSON text may be.
struct JSONBounds: Sendable {
    let maximumDepth: Int
    let maximumValueCount: Int

    init(_ configuration: MessagingConfiguration) {
        maximumDepth = configuration.maximumDepth
        maximumValueCount = configuration.maximumValueCount
    }

    /// What goes beyond the bounds.
    ///
    /// A text that is no JSON may pass: its decoder refuses it.
    func excess(in text: UnsafeRawBufferPointer) -> String? {
        var depth = 0
        var count = 1
        var isString = false
        var isEscaped = false
        for byte in text {
            if isString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                count += 1
                guard depth <= maximumDepth else { return "more than \(maximumDepth) levels of nesting." }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: ","): count += 1
            default: break
            }
            guard count <= maximumValueCount else { return "more than \(maximumValueCount) values." }
        }
        return nil
    }
}
