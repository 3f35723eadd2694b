/// How connections by TLS (1.2 or 1.3) are secured: whom to trust, and who this side is.
///
/// Source: RFC 3261, section 26.3; RFC 5922; RFC 9325
public struct SIPSecurity: Hashable, Sendable {
    /// An own certificate.
    public struct Certificate: Hashable, Sendable {
        /// The path of its certificates in PEM, the own first, then those that prove it.
        public var path: String
        /// The path of its key in PEM, without a password.
        public var keyPath: String

        /// The certificate in a file, and its key in another.
        public init(path: String, keyPath: String) { (self.path, self.keyPath) = (path, keyPath) }
    }

    /// The path of the certificates (PEM) that prove those of servers; nil for the machine's.
    public var authoritiesPath: String?
    /// Who this side is: needed to be called by TLS, and shown to servers that ask for it.
    public var certificate: Certificate?
    /// The name that a server's certificate has to show; nil for the domain of the URI.
    public var serverName: String?
    /// Whether a server whose certificate is for `*.example.org` is taken for `sip.example.org`.
    ///
    /// RFC 5922, section 7.2 says that it is not.
    public var acceptsWildcards = false
    /// Whether servers prove who they are; off, whoever is on the way can read and change everything.
    public var verifiesServers = true

    /// The machine's authorities, and no own certificate.
    public init() {}
}
