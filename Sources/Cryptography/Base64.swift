internal import COpenSSL

/// Bytes as text (RFC 4648, section 4).
package enum Base64 {
    package static func encode(_ bytes: [UInt8]) -> String {
        let text = [UInt8](unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4 + 1) { buffer, count in
            count = Int(EVP_EncodeBlock(buffer.baseAddress, bytes, CInt(bytes.count)))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of `text`, also without the padding at its end; nil for anything else.
    package static func decode(_ text: String) -> [UInt8]? {
        var text = Array(text.utf8)
        while text.last == padding { text.removeLast() }
        guard !text.isEmpty, text.count % 4 != 1, text.count < limit, text.allSatisfy(isDigit) else { return nil }
        let byteCount = text.count * 3 / 4
        while text.count % 4 != 0 { text.append(padding) }
        var bytes = [UInt8](repeating: 0, count: text.count / 4 * 3)
        guard EVP_DecodeBlock(&bytes, text, CInt(text.count)) == bytes.count else { return nil }
        return Array(bytes[..<byteCount])
    }

    private static let padding = UInt8(ascii: "=")
    /// Longer than any key.
    private static let limit = 1024

    private static func isDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), 0x30...0x39,
            UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }
}
