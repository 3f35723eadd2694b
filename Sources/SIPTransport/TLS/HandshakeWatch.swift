internal import CallBasics
internal import NIOCore
internal import NIOSSL
internal import NIOTLS
internal import SIP

/// Waits for the end of the handshake with a server, and looks at whom its certificate is for.
final class HandshakeWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let security: SIPSecurity
    private let name: String
    private let remote: CallBasics.SocketAddress
    private var promise: EventLoopPromise<Void>?

    init(_ security: SIPSecurity, name: String, of remote: CallBasics.SocketAddress, _ promise: EventLoopPromise<Void>)
    {
        (self.security, self.name, self.remote, self.promise) = (security, name, remote, promise)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            do throws(SIPSocketError) {
                try check(try? context.pipeline.syncOperations.nioSSL_peerCertificate())
                settle(.success(()))
            } catch {
                settle(.failure(error))
                context.close(promise: nil)
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func check(_ certificate: NIOSSLCertificate??) throws(SIPSocketError) {
        guard security.verifiesServers else { return }
        guard let certificate = certificate ?? nil else {
            throw SIPSocketError(.untrusted, "\(remote) showed no certificate.")
        }
        let names = CertificateNames(certificate)
        guard names.include(name, acceptingWildcards: security.acceptsWildcards) else {
            throw SIPSocketError(
                .wrongName,
                "The certificate of \(remote) is for \(names.text), not for \(name) (RFC 5922)."
            )
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        settle(.failure(SIPSocketError(handshake: error, with: remote)))
        context.fireErrorCaught(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        settle(.failure(SIPSocketError.handshakeEnded(by: remote)))
        context.fireChannelInactive()
    }

    func handlerRemoved(context _: ChannelHandlerContext) { settle(.failure(ChannelError.ioOnClosedChannel)) }

    private func settle(_ result: Result<Void, any Error>) {
        promise?.completeWith(result)
        promise = nil
    }
}
