import NIOCore

/// Messages as CBOR (RFC 8949), within bounds.
enum MessageCoding {
    /// Why bytes are not a message.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    static func encode(_ message: some Encodable) throws(Failure) -> ByteBuffer {
        do {
            return try CBOREncoder(CBORWriter(capacity: 256)).encodeMessage(message)
        } catch {
            throw Failure(reason(of: error))
        }
    }

    /// Decodes after a look at the depth, count and form of all values, so that nothing large is built from small bytes.
    static func decode<Message: Decodable>(
        _: Message.Type,
        from payload: ByteBuffer,
        within bounds: MessageBounds
    ) throws(Failure) -> Message {
        let received: CBORMessage
        do throws(CBORFault) {
            received = try CBORMessage(payload, within: bounds)
        } catch {
            throw Failure(error.description)
        }
        do {
            return try CBORDecoder(received).decode(Message.self)
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
