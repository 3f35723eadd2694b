internal import CallBasics
internal import NIOCore
internal import NIOPosix
package import NIOSSL
internal import SIP

/// What connections by TLS are made with, read from files when it is needed first.
///
/// Files are read, and certificates taken apart, on a thread that may wait.
/// Thread: the event loop of the sockets.
package struct TLSContexts {
    let security: SIPSecurity
    private var client: EventLoopFuture<NIOSSLContext>?
    private var server: EventLoopFuture<NIOSSLContext>?

    init(_ security: SIPSecurity) { self.security = security }

    mutating func forClient(on loop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
        if let client { return client }
        let security = security
        let made = NIOThreadPool.singleton.runIfActive(eventLoop: loop) { try Self.makeClient(security) }
        client = made
        return made
    }

    /// Nil without an own certificate.
    mutating func forServer(on loop: any EventLoop) -> EventLoopFuture<NIOSSLContext>? {
        if let server { return server }
        guard let certificate = security.certificate else { return nil }
        let made = NIOThreadPool.singleton.runIfActive(eventLoop: loop) { try Self.makeServer(certificate) }
        server = made
        return made
    }

    /// Files that could not be read are read again when they are needed next.
    mutating func forget() { (client, server) = (nil, nil) }

    private static func makeClient(_ security: SIPSecurity) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let path = security.authoritiesPath {
            configuration.trustRoots = .certificates(try certificates(at: path))
        }
        if let own = security.certificate {
            configuration.certificateChain = try certificates(at: own.path).map { .certificate($0) }
            configuration.privateKey = .privateKey(try key(at: own.keyPath))
        }
        // Whose it is, is checked by the rules of SIP, behind the handshake.
        configuration.certificateVerification = security.verifiesServers ? .noHostnameVerification : .none
        return try makeContext(&configuration, security.certificate)
    }

    private static func makeServer(_ own: SIPSecurity.Certificate) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try certificates(at: own.path).map { .certificate($0) },
            privateKey: .privateKey(try key(at: own.keyPath))
        )
        return try makeContext(&configuration, own)
    }

    private static func makeContext(_ configuration: inout TLSConfiguration, _ own: SIPSecurity.Certificate?) throws
        -> NIOSSLContext
    {
        configuration.minimumTLSVersion = .tlsv12
        configuration.shutdownTimeout = .seconds(1)
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            let place = own.map { "\($0.path) and \($0.keyPath)" } ?? "The authorities of this machine"
            throw SIPSocketError(.security, "\(place) cannot be used: \(error). Give a certificate with its own key.")
        }
    }

    /// The certificates in a file.
    ///
    /// - Returns: One at least.
    /// - Throws: `SIPSocketError` when there are none
    package static func certificates(at path: String) throws -> [NIOSSLCertificate] {
        do {
            let found = try NIOSSLCertificate.fromPEMFile(path)
            if !found.isEmpty { return found }
        } catch {
            throw SIPSocketError(
                .security,
                "\(path) has no certificates that can be read (\(error)). Give a file in PEM."
            )
        }
        throw SIPSocketError(.security, "\(path) has no certificate. Give a file in PEM.")
    }

    private static func key(at path: String) throws -> NIOSSLPrivateKey {
        do {
            return try NIOSSLPrivateKey(file: path, format: .pem)
        } catch {
            throw SIPSocketError(
                .security,
                "\(path) has no key that can be read (\(error)). Give one in PEM, without a password."
            )
        }
    }
}
