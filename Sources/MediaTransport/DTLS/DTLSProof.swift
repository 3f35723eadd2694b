package import SDP

/// What the other side has proved, and what protects the leg then.
package struct DTLSProof: Sendable, Hashable {
    package let suite: SRTPSuite
    /// Of its certificate.
    package let fingerprint: Fingerprint
}
