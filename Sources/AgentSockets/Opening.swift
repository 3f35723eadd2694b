internal import CallBasics
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import NIOWebSocket

/// An attempt to reach an agent: the network, TLS, and the handshake of WebSocket, within the patience there is.
struct Opening: Sendable {
    /// What is asked for by WebSocket, beside the path.
    struct Request: Sendable {
        var headers: [(name: String, value: String)] = []
        var subprotocol: String?
        /// A PEM file for wss; nil for those whom this machine trusts.
        var authoritiesPath: String?
    }

    private let address: AgentAddress
    private let request: Request
    private let patience: TimeAmount
    private let pace: ConnectionPace

    init(_ address: AgentAddress, _ request: Request, _ patience: Duration, _ pace: ConnectionPace) {
        (self.address, self.request, self.pace) = (address, request, pace)
        self.patience = max(.milliseconds(1), TimeAmount(patience))
    }

    /// Goes through with it.
    ///
    /// - Returns: What the connection is, in which frames may be sent.
    /// - Throws: `AgentError.Code.unreachable`; also when the task is cancelled
    func run() async throws(AgentError) -> ConnectionState {
        do {
            // Where those who are trusted are read from a disk.
            let security = try await NIOThreadPool.singleton.runIfActive { try context() }
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            let promise = loop.makePromise(of: ConnectionState.self)
            let timer = loop.scheduleTask(in: patience) { promise.fail(Refusal.silence) }
            defer { timer.cancel() }
            loop.execute { dial(on: loop, security, promise) }
            return try await withTaskCancellationHandler {
                try await promise.futureResult.get()
            } onCancel: {
                promise.fail(CancellationError())
            }
        } catch {
            throw AgentError(.unreachable, "The agent at \(address.place) \(reason(error))")
        }
    }

    // MARK: The network

    /// Connects, and begins what comes then.
    ///
    /// Nothing is read before somebody is there who takes it.
    private func dial(on loop: any EventLoop, _ security: NIOSSLContext?, _ promise: EventLoopPromise<ConnectionState>)
    {
        let bootstrap = ClientBootstrap(group: loop)
            .connectTimeout(patience)
            .channelOption(.autoRead, value: false)
            .channelOption(.socketOption(.so_sndbuf), value: ConnectionState.sendBufferSize)
            .channelOption(.socketOption(.so_rcvbuf), value: ConnectionState.receiveBufferSize)
        let connecting: EventLoopFuture<any Channel>
        switch address.way {
        case .unix(let path): connecting = bootstrap.connect(unixDomainSocketPath: path)
        case .tcp(let host, let port), .webSocket(let host, let port, _, _):
            connecting = bootstrap.channelOption(.tcpOption(.tcp_nodelay), value: 1).connect(
                host: host,
                port: Int(port)
            )
        }
        connecting.whenComplete { result in
            switch result {
            case .failure(let error): promise.fail(error)
            case .success(let channel):
                // Also when it has failed meanwhile.
                promise.futureResult.whenFailure { _ in channel.close(promise: nil) }
                do {
                    try begin(on: channel, security, promise)
                    try channel.syncOptions?.setOption(.autoRead, value: true)
                } catch {
                    promise.fail(error)
                }
            }
        }
    }

    private func begin(
        on channel: any Channel,
        _ security: NIOSSLContext?,
        _ promise: EventLoopPromise<ConnectionState>
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        guard case .webSocket(let host, let port, let path, let isSecured) = address.way else {
            let state = ConnectionState(channel)
            try pipeline.addHandler(MessageToByteHandler(AudioSocketMessageEncoder()))
            try pipeline.addHandler(ByteToMessageHandler(AudioSocketMessageDecoder()))
            try pipeline.addHandler(FrameHandler(state, farewell: pace.farewell, isPlainStream: true))
            return promise.succeed(state)
        }
        let name = Self.isAddress(host) ? nil : host.hasSuffix(".") ? String(host.dropLast()) : host
        if let security {
            try pipeline.addHandler(NIOSSLClientHandler(context: security, serverHostname: name))
        }
        var headers = HTTPHeaders([("Host", AgentAddress.authority(host, port, or: isSecured ? 443 : 80))])
        for (name, value) in request.headers { headers.add(name: name, value: value) }
        if let subprotocol = request.subprotocol { headers.add(name: "Sec-WebSocket-Protocol", value: subprotocol) }
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: path, headers: headers)
        let handshake = HandshakeHandler(head, isSecured ? .proof(of: name) : .none) { promise.fail($0) }
        let own = NIOLoopBound(handshake, eventLoop: channel.eventLoop)
        let upgrader = NIOWebSocketClientUpgrader(
            maxFrameSize: ConnectionState.messageLimit,
            automaticErrorHandling: false
        ) { channel, response in
            channel.eventLoop.makeCompletedFuture {
                // What has come behind the answer is a frame, and not for it.
                channel.pipeline.syncOperations.removeHandler(own.value, promise: nil)
                do { promise.succeed(try upgrade(channel, response)) } catch { promise.fail(error) }
            }
        }
        try pipeline.addHTTPClientHandlers(
            leftOverBytesStrategy: .forwardBytes,
            withClientUpgrade: ([upgrader], { _ in })
        )
        try pipeline.addHandler(handshake)
    }

    /// The agent has answered that it speaks WebSocket.
    private func upgrade(_ channel: any Channel, _ response: HTTPResponseHead) throws -> ConnectionState {
        let subprotocols = response.headers["Sec-WebSocket-Protocol"]
        guard subprotocols.allSatisfy({ $0 == request.subprotocol }), subprotocols.count < 2,
            response.headers["Sec-WebSocket-Extensions"].isEmpty
        else { throw Refusal.otherTerms }
        return try .webSocket(on: channel, pace, isServer: false)
    }

    // MARK: TLS

    private func context() throws -> NIOSSLContext? {
        guard case .webSocket(_, _, _, isSecured: true) = address.way else { return nil }
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let path = request.authoritiesPath {
            do {
                configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(path))
            } catch {
                throw Refusal.noAuthorities(path)
            }
        }
        configuration.minimumTLSVersion = .tlsv12
        configuration.certificateVerification = .fullVerification
        configuration.applicationProtocols = ["http/1.1"]
        // Beside the time for WebSocket's own farewell.
        configuration.shutdownTimeout = .milliseconds(200)
        return try NIOSSLContext(configuration: configuration)
    }

    private static func isAddress(_ host: String) -> Bool { CallBasics.SocketAddress(host: host, port: 0) != nil }

    // MARK: What has gone wrong

    /// The end of a sentence, with what to do.
    private func reason(_ error: any Error) -> String {
        switch error {
        case let refusal as Refusal: return refusal.text(after: patience)
        case is CancellationError: return "was not waited for."
        case ChannelError.connectTimeout: return Refusal.silence.text(after: patience)
        case let error as NIOConnectionError where error.connectionErrors.isEmpty:
            return "cannot be reached: its name is not known. Check the address and the name server."
        case let error as NIOConnectionError:
            return error.connectionErrors.first.map { reason($0.error) } ?? "cannot be reached."
        case is SocketAddressError:
            return "cannot be reached: its name is not known. Check the address and the name server."
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            return Refusal.otherName.text(after: patience)
        case let error as NIOSSLError where "\(error)".contains("CERTIFICATE_VERIFY_FAILED"):
            return "shows a certificate that nobody who is trusted proves. Give a file of those who do."
        case is NIOSSLError, is BoringSSLError:
            return
                "does not agree on TLS: \(FrameHandler.text(of: error)). Check whether it is ws:// rather than wss://."
        case HTTPParserError.invalidHeaderToken:
            return "was not asked: a header field has characters that none may have. Give it others."
        case is HTTPParserError, is NIOHTTPClientUpgradeError:
            return "does not answer as a WebSocket does. Check the port and the path."
        default: return "cannot be reached: \(FrameHandler.text(of: error)). Start it, or check the address."
        }
    }
}
