internal import Foundation

/// Certificates for servers of tests, made by `Certificates/make`.
package enum TestCertificates {
    /// The path of the certificate that proves the others.
    package static var authority: String { path("authority.pem") }

    /// The paths of a certificate and its key: `loopback` for 127.0.0.1, ::1 and localhost; `domain` for the SIP domain
    /// example.test, on a host other.test; `wildcard` for *.example.test; `relay` for
    /// 198.51.100.1.
    package static func of(_ name: String) -> (path: String, keyPath: String) {
        (path("\(name).pem"), path("\(name).key"))
    }

    private static func path(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Certificates/\(name)").path
    }
}
