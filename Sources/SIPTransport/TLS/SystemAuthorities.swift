internal import Glibc
internal import NIOSSL

/// The authorities that TLS trusts where none are named.
package enum SystemAuthorities {
    /// Where NIOSSL looks for them, the first that is there.
    private static let paths = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"]

    /// The file of the machine and how many certificates it has; nil when there is none.
    package static func find() -> (path: String, count: Int)? {
        guard let path = paths.first(where: { access($0, R_OK) == 0 }) else { return nil }
        return (path, (try? NIOSSLCertificate.fromPEMFile(path).count) ?? 0)
    }
}
