internal import Cryptography

/// How Twilio signs a request by WebSocket, so that an agent knows who calls: HMAC-SHA1 of its URL.
///
/// Source: Twilio, "Validating requests are coming from Twilio"; Media Streams.
enum TwilioSignature {
    /// The header field of a request for `url`, which is taken as it was written.
    static func field(of url: String, token: String) -> (name: String, value: String) {
        let hash = HashFunction.sha1.keyedHash(of: Array(url.utf8), key: Array(token.utf8))
        return ("X-Twilio-Signature", Base64.encode(hash))
    }
}
