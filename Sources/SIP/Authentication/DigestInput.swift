/// All that the response of a digest is made from.
///
///     A1 hash    H(user:realm:password), for -sess H(that:nonce:cnonce)
///     A2 hash    H(method:uri), for auth-int H(method:uri:H(body))
///     response   H(A1 hash:nonce:nc:cnonce:qop:A2 hash), without qop H(A1 hash:nonce:A2 hash)
///
/// Source: RFC 7616, section 3.4.1 to 3.4.3; RFC 3261, section 22.4
struct DigestInput: Sendable {
    var hash: DigestHash
    /// The hash of A1, in hexadecimal digits.
    var key: Secret
    var nonce: Bytes
    /// Nil for the form of RFC 2069, which has no nc and no cnonce.
    var qop: DigestQop?
    /// Eight hexadecimal digits.
    var nonceCount: Bytes = []
    var cnonce: Bytes = []
    var method: Bytes
    /// The Request-URI as it is sent.
    var uri: Bytes
    var body: Bytes

    /// The response, in lower-case hexadecimal digits.
    func response() -> Bytes {
        let request = qop == .authInt ? hash.hex(method, uri, hash.hex(body)) : hash.hex(method, uri)
        guard let qop else { return hash.hex(key.bytes, nonce, request) }
        return hash.hex(key.bytes, nonce, nonceCount, cnonce, Bytes(qop.name), request)
    }

    /// The hash of A1 of a session, which begins with a nonce and a cnonce.
    static func sessionKey(_ hash: DigestHash, ha1: Secret, nonce: Bytes, cnonce: Bytes) -> Secret {
        Secret(hash.hex(ha1.bytes, nonce, cnonce))
    }
}
