internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

/// Why there is no connection, where no library says it.
enum Refusal: Error {
    case silence
    case status(UInt)
    case ended
    case otherTerms
    case otherName
    case noAuthorities(String)

    /// The end of a sentence about the agent, and what to do.
    func text(after patience: TimeAmount) -> String {
        switch self {
        case .silence: "does not answer within \(patience.shown). Check that it runs, or wait longer."
        case .status(let code):
            "answers \(code) \(HTTPResponseStatus(statusCode: Int(code)).reasonPhrase) and opens no WebSocket. "
                + "Check the path, and what it wants to know of who calls."
        case .ended: "ends the connection before it has answered. Check the port, and whether it speaks TLS there."
        case .otherTerms: "wants a subprotocol or an extension that nobody asked for. Ask for its subprotocol."
        case .otherName: "shows a certificate for another name. Dial it by the name in its certificate."
        case .noAuthorities(let path): "was not asked: \(path) is no file of certificates in PEM. Give one."
        }
    }
}

/// Asks for WebSocket once the connection stands, and tells when the answer is no.
///
/// It is taken out when the answer is yes.
/// Thread: the event loop.
final class HandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    /// What TLS has to show before anything is asked.
    enum Proof {
        case none
        /// A certificate for a name; nil is one for the address that was dialled, which the library sees to.
        case proof(of: String?)
    }

    private let head: HTTPRequestHead
    private let proof: Proof
    private let refuse: (any Error) -> Void
    private var isSent = false

    init(_ head: HTTPRequestHead, _ proof: Proof, refuse: @escaping (any Error) -> Void) {
        (self.head, self.proof, self.refuse) = (head, proof, refuse)
    }

    func handlerAdded(context: ChannelHandlerContext) { if case .none = proof { send(context) } }

    /// The one event that TLS tells before it ends is that its handshake is over.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .proof(let name) = proof, !isSent,
            let certificate = try? context.channel.pipeline.syncOperations.nioSSL_peerCertificate()
        {
            // The library also takes a certificate for the address, which whoever answers for the name may have.
            guard name.map({ Self.names(of: certificate, include: $0) }) ?? true else {
                return refuse(Refusal.otherName)
            }
            send(context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func send(_ context: ChannelHandlerContext) {
        isSent = true
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context _: ChannelHandlerContext, data: NIOAny) {
        if case .head(let response) = unwrapInboundIn(data) { refuse(Refusal.status(response.status.code)) }
    }

    func errorCaught(context _: ChannelHandlerContext, error: any Error) { refuse(error) }

    func channelInactive(context: ChannelHandlerContext) {
        refuse(Refusal.ended)
        context.fireChannelInactive()
    }

    /// Whether a certificate has a name of DNS that is `host`, or has a wildcard for its first label.
    ///
    /// Source: RFC 6125, section 6.4
    private static func names(of certificate: NIOSSLCertificate, include host: String) -> Bool {
        let host = host.lowercased()
        return certificate._subjectAlternativeNames().contains { name in
            guard name.nameType == .dnsName else { return false }
            let text = String(decoding: Array(name.contents), as: UTF8.self).lowercased()
            if text == host { return true }
            guard text.hasPrefix("*."), let dot = host.firstIndex(of: "."), dot > host.startIndex else { return false }
            return text.dropFirst(2).contains(".") && text.dropFirst() == host[dot...]
        }
    }
}
