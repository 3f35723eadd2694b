internal import CLibSSL
package import SDP

/// A certificate with its key, and how its associations are held.
///
/// Nobody has signed it but itself: its fingerprint in the description is what makes it worth something. One is enough
/// for a whole process; it is valid for 30 days.
/// Thread: any.
/// Source: RFC 5763, section 5; RFC 8827, section 6.5.
package final class DTLSIdentity: @unchecked Sendable {
    /// What descriptions announce.
    package let fingerprint: Fingerprint
    /// Written by nobody after `init`; the library locks what sessions share.
    private let context: OpaquePointer

    /// A new one, with a key of P-256.
    ///
    /// - Throws: `noCertificate`.
    package convenience init() throws(DTLSError) { try self.init(profiles: DTLSKeys.profileNames) }

    /// One that differs from what is offered, for tests.
    init(
        profiles: String = DTLSKeys.profileNames,
        ciphers: String = "ECDHE+AESGCM:ECDHE+CHACHA20",
        showsCertificate: Bool = true
    ) throws(DTLSError) {
        guard Self.isLibraryReady, let context = SSL_CTX_new(DTLS_method()) else { throw .ofLibrary }
        var isDone = false
        defer { if !isDone { SSL_CTX_free(context) } }
        guard dtls_context_restrict(context, Self.certificateByteLimit) == 1,
            SSL_CTX_set_cipher_list(context, ciphers) == 1,
            // 0 says that it is done.
            SSL_CTX_set_tlsext_use_srtp(context, profiles) == 0
        else { throw .ofLibrary }
        SSL_CTX_set_security_level(context, 2)
        CertificateCheck.require(in: context)
        KeyLog.listen(to: context)
        guard let key = p256_key_new() else { throw .ofLibrary }
        defer { EVP_PKEY_free(key) }
        guard let certificate = X509_new() else { throw .ofLibrary }
        defer { X509_free(certificate) }
        guard Self.fill(certificate, key),
            let fingerprint = CertificateCheck.fingerprint(of: certificate, hash: "sha-256")
        else { throw .ofLibrary }
        if showsCertificate {
            guard SSL_CTX_use_certificate(context, certificate) == 1, SSL_CTX_use_PrivateKey(context, key) == 1 else {
                throw .ofLibrary
            }
        }
        (self.context, self.fingerprint, isDone) = (context, fingerprint, true)
    }

    deinit { SSL_CTX_free(context) }

    /// A session for one association, for the caller to free; nil when there is no memory for it.
    func makeSession() -> OpaquePointer? { SSL_new(context) }

    private static func fill(_ certificate: OpaquePointer, _ key: OpaquePointer) -> Bool {
        let name = X509_get_subject_name(certificate)
        return X509_set_version(certificate, Int(X509_VERSION_3)) == 1
            && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), .random(in: 1...(1 << 63 - 1))) == 1
            && X509_gmtime_adj(X509_getm_notBefore(certificate), -day) != nil
            && X509_gmtime_adj(X509_getm_notAfter(certificate), 30 * day) != nil
            && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, "media", -1, -1, 0) == 1
            && X509_set_issuer_name(certificate, name) == 1
            && X509_set_pubkey(certificate, key) == 1
            && X509_sign(certificate, key, EVP_sha256()) > 0
    }

    /// Without a clean-up at the end of the process, since threads may run then, and without the system's settings.
    private static let isLibraryReady =
        OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG), nil) == 1

    /// More than a chain of RSA certificates has; a peer can make the library hold ten times this.
    private static let certificateByteLimit = 16 << 10
    /// Seconds.
    private static let day = 86_400
}

extension DTLSError {
    /// What the library says of its own failure.
    fileprivate static var ofLibrary: DTLSError {
        .noCertificate(ERR_reason_error_string(ERR_peek_last_error()).map { String(cString: $0) } ?? "out of memory")
    }
}
