internal import CLibSSL
internal import SDP

/// What the peer's certificate has to be, and what came of it.
///
/// Who signed it, for whom and until when does not matter: the description has announced this one.
/// Source: RFC 8122, section 5.
final class CertificateCheck {
    enum Outcome {
        /// By this one of the fingerprints that were told.
        case fits(Fingerprint)
        case refused(DTLSError)
    }

    /// Nil until the peer has shown its certificate.
    private(set) var outcome: Outcome?
    private let expected: [(fingerprint: Fingerprint, function: OpaquePointer)]

    /// - Throws: `noUsableFingerprint` when none is by a hash of SHA-2: others can be forged.
    init(_ fingerprints: [Fingerprint]) throws(DTLSError) {
        expected = fingerprints.compactMap { fingerprint in
            Self.function(of: fingerprint.hash).map { (fingerprint, $0) }
        }
        if expected.isEmpty { throw .noUsableFingerprint }
    }

    /// Has `session` ask here.
    ///
    /// The check has to live as long as it.
    func attach(to session: OpaquePointer) {
        SSL_set_ex_data(session, Self.place, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Has each session of `context` ask its check, within the handshake, so that the peer hears an alert.
    static func require(in context: OpaquePointer) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        SSL_CTX_set_cert_verify_callback(context, { store, _ in CertificateCheck.verify(store) }, nil)
    }

    /// - Returns: nil for a hash that does not count.
    static func fingerprint(of certificate: OpaquePointer, hash: String) -> Fingerprint? {
        function(of: hash).flatMap { fingerprint(of: certificate, hash, $0) }
    }

    /// 1 when the certificate fits, as the library wants it.
    private static func verify(_ store: OpaquePointer?) -> CInt {
        guard let session = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let check = SSL_get_ex_data(OpaquePointer(session), place),
            let certificate = X509_STORE_CTX_get0_cert(store)
        else { return 0 }
        let error = Unmanaged<CertificateCheck>.fromOpaque(check).takeUnretainedValue()
            .judge(certificate, of: OpaquePointer(session))
        X509_STORE_CTX_set_error(store, error)
        return error == X509_V_OK ? 1 : 0
    }

    /// The library's code for it, of which it makes an alert: bad certificate, or handshake failure.
    private func judge(_ certificate: OpaquePointer, of session: OpaquePointer) -> CInt {
        let actual = expected.map { Self.fingerprint(of: certificate, $0.fingerprint.hash, $0.function) }
        guard let fitting = zip(expected, actual).first(where: { $0.fingerprint == $1 })?.0.fingerprint else {
            if let first = actual[0] {
                outcome = .refused(.wrongFingerprint(expected: expected.map(\.fingerprint), actual: first))
            }
            return X509_V_ERR_CERT_REJECTED
        }
        // What there is to agree on has been said by both sides, and there is no other way to tell the peer.
        guard SSL_get_selected_srtp_profile(session) != nil else {
            outcome = .refused(.noProfile)
            return X509_V_ERR_APPLICATION_VERIFICATION
        }
        outcome = .fits(fitting)
        return X509_V_OK
    }

    private static func fingerprint(
        of certificate: OpaquePointer,
        _ hash: String,
        _ function: OpaquePointer
    ) -> Fingerprint? {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(certificate, function, &bytes, &count) == 1 else { return nil }
        return Fingerprint(hash: hash, bytes: Array(bytes[..<Int(count)]))
    }

    private static func function(of hash: String) -> OpaquePointer? {
        switch hash {
        case "sha-256": EVP_sha256()
        case "sha-384": EVP_sha384()
        case "sha-512": EVP_sha512()
        default: nil
        }
    }

    /// Where sessions keep it; the library leaves this place to its users.
    private static let place: CInt = 0
}
