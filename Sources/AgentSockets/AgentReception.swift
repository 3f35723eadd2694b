internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// A place where agents dial in themselves, as Asterisk's WebSocket channel has it.
///
///     let reception = try await AgentReception.open(at: "127.0.0.1", port: 8088)
///     let line = try await reception.line { path in try await bot.dial(reception.address + path) }
///
/// Each call has a path of its own, `/media/` and a UUID, which is its agent's proof: it is drawn anew, taken once, and forgotten when
/// nobody is awaited there any more. Whoever asks for another one is answered 404. It ends with whoever has it; lines that stand go on.
/// Thread: any.
/// Source: Asterisk, WebSocket channel driver, "Incoming Connections".
public final class AgentReception: Sendable {
    /// What is spoken with those who come.
    public struct Options: Sendable {
        /// What they speak, `asterisk` or `asterisk-plain`: with the other formats agents are dialled.
        public var format = AgentFormat.asterisk
        /// The rate of the sound both ways, one that the format has; nil for its usual one.
        public var sampleRate: Int?
        /// Files in PEM, by which they come by wss; nil for ws.
        public var certificate: Certificate?
        /// As `AgentLine.Options.isPausedBySpeech`.
        public var isPausedBySpeech: Bool?

        /// Those of Asterisk.
        public init() {}
    }

    /// What proves this side, by TLS.
    public struct Certificate: Sendable, Hashable {
        /// The file of the certificate, and of those between it and an authority.
        public var path: String
        /// The file of its private key.
        public var keyPath: String

        /// A certificate and its key.
        public init(path: String, keyPath: String) { (self.path, self.keyPath) = (path, keyPath) }
    }

    /// Where it is, without a path: `ws://127.0.0.1:8088`; at all addresses, as 0.0.0.0, not one that can be dialled.
    public let address: String

    private let options: Options
    private let sampleRate: Int
    private let admission: Admission
    private let listener: any Channel

    private init(_ listener: any Channel, _ host: String, _ options: Options, _ sampleRate: Int, _ admission: Admission)
    {
        (self.listener, self.options, self.sampleRate, self.admission) = (listener, options, sampleRate, admission)
        let shown = host.contains(":") ? "[\(host)]" : host
        address = "\(options.certificate == nil ? "ws" : "wss")://\(shown):\(listener.localAddress?.port ?? 0)"
    }

    deinit { shut() }

    /// Begins to listen.
    ///
    /// - Parameters:
    ///   - host: An own address, as 127.0.0.1.
    ///   - port: The port; 0 for any that is free.
    ///   - options: What is spoken.
    /// - Returns: A place where agents may be awaited.
    /// - Throws: `AgentError` when the address is not to be had, the files are no certificate and key, or no agent of the format dials
    public static func open(
        at host: String,
        port: UInt16,
        _ options: Options = Options()
    ) async throws(AgentError) -> AgentReception {
        let format = options.format
        guard format.dialsIn, let subprotocol = format.subprotocol else {
            throw AgentError(.invalidOptions, "Agents of the format \(format.rawValue) are dialled. Take asterisk.")
        }
        let rate = try format.rate(options.sampleRate)
        let admission = Admission(subprotocol: subprotocol)
        do {
            let security = try await NIOThreadPool.singleton.runIfActive {
                try options.certificate.map { try Self.context($0) }
            }
            let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .childChannelOption(.socketOption(.so_sndbuf), value: ConnectionState.sendBufferSize)
                .childChannelOption(.socketOption(.so_rcvbuf), value: ConnectionState.receiveBufferSize)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try AdmissionHandler.receive(channel, security, admission, ConnectionPace())
                    }
                }
                .bind(host: host, port: Int(port))
                .get()
            return AgentReception(listener, host, options, rate, admission)
        } catch let error as AgentError {
            throw error
        } catch {
            throw AgentError(
                .unreachable,
                "Agents cannot dial \(AgentAddress.authority(host, port, or: nil)): \(FrameHandler.text(of: error)). "
                    + "Give an own address, and a port that is free."
            )
        }
    }

    private static func context(_ certificate: Certificate) throws -> NIOSSLContext {
        let (path, keyPath) = (certificate.path, certificate.keyPath)
        for file in [path, keyPath] where access(file, R_OK) != 0 {
            let reason = String(cString: strerror(errno))
            throw AgentError(.invalidOptions, "\(file) cannot be read: \(reason). Give a file in PEM.")
        }
        guard let chain = try? NIOSSLCertificate.fromPEMFile(path), !chain.isEmpty else {
            throw AgentError(.invalidOptions, "\(path) has no certificate in PEM. Give another file.")
        }
        guard let key = try? NIOSSLPrivateKey(file: keyPath, format: .pem) else {
            throw AgentError(
                .invalidOptions,
                "\(keyPath) has no key in PEM, or one with a password. Give another file."
            )
        }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(key)
        )
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        configuration.shutdownTimeout = .milliseconds(200)
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw AgentError(.invalidOptions, "The key of \(keyPath) is not that of \(path). Give a pair.")
        }
    }

    /// Awaits an agent.
    ///
    /// - Parameters:
    ///   - call: What it is told; nil for a call that is not answered yet, of which `AgentLine.begin` tells later.
    ///   - limit: How long it has to come, once it has been told.
    ///   - tell: Tells it, in some way of the application's, to dial this path at `address`.
    /// - Returns: The line to it, for one call.
    /// - Throws: `AgentError.Code.unreachable` when none has come, and what `tell` throws
    public func line(
        _ call: AgentCall? = nil,
        within limit: Duration = .seconds(5),
        telling tell: (_ path: String) async throws -> Void
    ) async throws -> AgentLine {
        var generator = SystemRandomNumberGenerator()
        let name = AsteriskCodec.connectionName(&generator)
        let path = "/media/\(name)"
        let promise: EventLoopPromise<ConnectionState>
        do { promise = try admission.expect(at: path) } catch { throw AgentError(.unreachable, error.text) }
        let refusedBefore = refusedCount
        do {
            try await tell(path)
        } catch {
            promise.fail(Absence.unwanted)
            // It may be here already.
            if let state = try? await promise.futureResult.get() { await AgentConnection(state).close() }
            throw error
        }
        let connection: AgentConnection
        do {
            connection = try await Self.connection(promise, within: max(.milliseconds(1), TimeAmount(limit)))
        } catch {
            let count = refusedCount - refusedBefore
            let others = count == 0 ? "" : " Refused meanwhile: \(count). Look at the path and the subprotocol."
            throw AgentError(.unreachable, error.text + others)
        }
        let codec = options.format.codec(sampleRate: sampleRate, connection: name, &generator)
        let line = AgentLine(connection, codec, options.isPausedBySpeech)
        if let call { line.begin(call) }
        return line
    }

    private static func connection(
        _ promise: EventLoopPromise<ConnectionState>,
        within patience: TimeAmount
    ) async throws(Absence) -> AgentConnection {
        let arrival = promise.futureResult
        let timer = arrival.eventLoop.scheduleTask(in: patience) { promise.fail(Absence.late(patience)) }
        defer { timer.cancel() }
        do {
            return try await withTaskCancellationHandler {
                AgentConnection(try await arrival.get())
            } onCancel: {
                promise.fail(Absence.unwanted)
            }
        } catch {
            throw error as? Absence ?? .unwanted
        }
    }

    /// How many have come and were not taken: they asked for no WebSocket, or where nobody is awaited, or too slowly, or too many at once.
    public var refusedCount: Int { admission.refusedCount }

    /// Listens no more; who is awaited does not come any more.
    public func close() async {
        shut()
        // It never fails.
        try? await listener.closeFuture.get()
    }

    private func shut() {
        listener.close(promise: nil)
        admission.close()
    }
}
