import CallBasics
internal import MediaEngine
package import SDP
import Synchronization

extension DTLSIdentity {
    /// The certificate of this process, which is made anew after a day; calls go on with that of before.
    ///
    /// - Throws: `DTLSError` when none can be made
    package static func ofToday() throws(DTLSError) -> DTLSIdentity {
        try today.withLock { today throws(DTLSError) in
            let now = MonotonicClock.current
            if let known = today, now - known.begin < .seconds(86_400) { return known.identity }
            let made = try DTLSIdentity()
            today = (made, now)
            return made
        }
    }

    private static let today = Mutex<(identity: DTLSIdentity, begin: MediaTime)?>(nil)
}

extension MediaConfiguration {
    /// Has the medium secured by keys that DTLS makes, in a new association, and by nothing else: it is never offered or taken in
    /// the clear.
    package mutating func secure(by identity: DTLSIdentity, using generator: inout some RandomNumberGenerator) {
        protocols = [.dtlsSAVP, .dtlsSAVPF]
        // 32 digits, of 128 random bits (RFC 8842, section 4).
        let digits = (0..<32).map { _ in String(UInt8.random(in: 0..<16, using: &generator), radix: 16) }
        certificate = OwnCertificate(identity.fingerprint, associationID: digits.joined())
    }
}
