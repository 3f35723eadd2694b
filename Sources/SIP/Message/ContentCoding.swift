internal import CZlib
internal import CallBasics

/// What Content-Encoding says of a body: nothing, `identity`, or `deflate`, which is read and never sent.
///
///     78 9c ...                 zlib's header (RFC 1950)
///     blocks                    deflate (RFC 1951)
///     checksum                  of what comes out
///
/// Source: RFC 3261, section 20.12; RFC 9110, section 8.4.1.2
enum ContentCoding {
    /// The encodings that are taken, as Accept-Encoding tells them.
    static let accepted = "deflate, identity"

    /// Whether a body of these encodings is deflated; nil when one is not taken, or there are several.
    static func isDeflated(_ encodings: [String]) -> Bool? {
        let names = encodings.map { $0.lowercased() }.filter { $0 != "identity" }
        return names.isEmpty ? false : names == ["deflate"] ? true : nil
    }

    /// The bytes that were deflated.
    ///
    /// Throws: `badRequest` when they are not what was deflated, all of it and no more; `messageTooLarge` when more than 64 KiB
    /// come out: nothing is kept of them
    static func inflate(_ body: Bytes) throws(SIPError) -> [UInt8] {
        let outcome = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: MessageLimits.byteCount) { room in
            var (count, taken) = (uLongf(room.count), uLong(body.count))
            let status = body.withUnsafeBufferPointer { bytes in
                uncompress2(room.baseAddress, &count, bytes.baseAddress, &taken)
            }
            let isWhole = status == Z_OK && taken == uLong(body.count)
            return (status, isWhole ? Array(room.prefix(Int(count))) : nil)
        }
        if let inflated = outcome.1 { return inflated }
        guard outcome.0 != Z_BUF_ERROR else {
            throw SIPError(
                .messageTooLarge,
                "The body is of more than \(MessageLimits.byteCount) bytes when it is inflated. Send a shorter one."
            )
        }
        throw SIPError(.badRequest, "The body is said to be deflated, and is not. Send zlib's format (RFC 1950).")
    }
}

extension SIPMessage {
    /// Puts a deflated body in its plain form, and takes Content-Encoding away; another encoding stays.
    ///
    /// Throws: `badRequest`, `messageTooLarge`
    mutating func inflateBody() throws(SIPError) {
        guard first(.contentEncoding) != nil, !bodyBytes.isEmpty,
            ContentCoding.isDeflated(try tokens(of: .contentEncoding)) == true
        else { return }
        setBody(try ContentCoding.inflate(bodyBytes))
        remove(.contentEncoding)
        wasDeflated = true
    }
}
