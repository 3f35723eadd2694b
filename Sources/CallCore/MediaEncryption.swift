package import MediaTransport

/// What secures the sound of calls.
public enum MediaEncryption: Hashable, Sendable {
    /// RTP in the clear: all on the way can hear it. Secured calls are refused (488).
    case none
    /// SRTP with keys in the session descriptions (SDES, RFC 4568): calls in the clear are neither made nor taken (488).
    ///
    /// Whoever reads the messages of SIP has the keys: have accounts on TLS. Proxies on the way read them in any case.
    case sdes
}

/// How the sound of one call is secured.
package struct CallSecurity: Sendable {
    /// The suite, as RFC 4568 names it: "AEAD_AES_128_GCM".
    package let suite: String
    /// What was not sent and not taken.
    package let counts: SecurityStatistics

    package init(suite: SRTPSuite, _ counts: SecurityStatistics) {
        (self.suite, self.counts) = (suite.rawValue, counts)
    }
}
