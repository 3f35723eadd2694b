internal import Cryptography
package import SDP

extension ICECredentials {
    /// New ones: 48 random bits of name and 144 of password.
    ///
    /// Source: RFC 8445, section 5.3.
    package init(using generator: inout some RandomNumberGenerator) {
        func text(_ byteCount: Int) -> String {
            Base64.encode((0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) })
        }
        self.init(userFragment: text(6), password: text(18))
    }
}
