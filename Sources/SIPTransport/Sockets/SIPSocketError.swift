package import CallBasics
internal import Glibc
internal import NIOCore
package import NIOSSL

/// Why a socket could not be opened.
package typealias SIPSocketError = Failure<SIPSocketFault>

/// The kinds of `SIPSocketError`.
package enum SIPSocketFault: Hashable, Sendable {
    /// Another socket has the port.
    case portInUse
    /// The address is none of this machine's.
    case notLocal
    /// The port is for the administrator.
    case notAllowed
    /// A file of certificates or keys cannot be used.
    case security
    /// Nobody that is trusted proves the certificate of a server, or there was no handshake at all.
    case untrusted
    /// The certificate of a server is for somebody else.
    case wrongName
    case other
}

extension SIPSocketError {
    init(_ error: any Error, _ place: String) {
        switch (error as? IOError)?.errnoCode {
        case EADDRINUSE?: self.init(.portInUse, "\(place) is taken by another socket. Give another port, or none.")
        case EADDRNOTAVAIL?: self.init(.notLocal, "\(place) is no address of this machine. Give one that is.")
        case EACCES?: self.init(.notAllowed, "\(place) is not allowed. Give a port from 1024 on.")
        default: self.init(.other, "\(place) cannot be opened: \(error).")
        }
    }

    /// Why there is no connection by TLS.
    init(handshake error: any Error, with remote: CallBasics.SocketAddress) {
        if let known = error as? SIPSocketError {
            self = known
        } else if let reason = (error as? NIOSSLError)?.handshakeReason {
            self.init(.untrusted, "The TLS handshake with \(remote) failed: \(reason).")
        } else if let code = (error as? IOError)?.errnoCode, [ECONNRESET, EPIPE].contains(code) {
            // It closed the connection before it read our hello.
            self = .handshakeEnded(by: remote)
        } else {
            self.init(.other, "No connection to \(remote): \(error).")
        }
    }

    /// The other side closed a connection before it was secured.
    static func handshakeEnded(by remote: CallBasics.SocketAddress) -> SIPSocketError {
        SIPSocketError(.untrusted, "\(remote) ended the TLS handshake. Does it speak TLS there?")
    }
}

extension NIOSSLError {
    /// What the library says of a handshake, without its own names; nil where it is no failure of one.
    package var handshakeReason: String? {
        guard case .handshakeFailed(let cause) = self else { return nil }
        let text = "\(cause)"
        // error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED at ...
        if text.contains("CERTIFICATE_VERIFY_FAILED") { return "nobody that is trusted proves its certificate" }
        guard let word = text.split(whereSeparator: { " :[]".contains($0) }).first(where: Self.isReason) else {
            return text
        }
        return word.replacing("_", with: " ").lowercased()
    }

    private static func isReason(_ word: Substring) -> Bool {
        word.contains("_") && word.allSatisfy { $0.isUppercase || $0.isNumber || $0 == "_" }
    }
}
