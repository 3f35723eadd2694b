internal import CallBasics
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// A request of a browser, whole.
struct PageRequest: Sendable {
    var method: String
    var path: String
    var host: String?
    var origin: String?
    var contentType: String?
    /// Where the page is from that asks, or leads here, as browsers tell (Sec-Fetch-Site).
    var site: String?
    var body: String
}

/// What is answered to it.
struct PageResponse: Sendable {
    var status: Int
    var contentType = "text/plain; charset=utf-8"
    /// Further headers.
    var headers: [(String, String)] = []
    var body = ""

    /// A refusal, with the reason as its text.
    init(_ status: Int, _ reason: String) { (self.status, body) = (status, reason + "\n") }

    init(status: Int = 200, contentType: String = "text/plain; charset=utf-8", _ body: String) {
        (self.status, self.contentType, self.body) = (status, contentType, body)
    }

    /// A refusal of a method, where others can be had.
    init(refusing method: String, allowing others: String) {
        self.init(405, "There is no \(method) of this.")
        headers = [("Allow", others)]
    }

    /// What can be had, and what may be posted.
    init(allowing methods: String, accepting type: String) {
        self.init("")
        headers = [("Allow", methods), ("Accept-Post", type)]
    }
}

/// Serves HTTP to browsers at one address: short requests, few at a time.
enum PageServer {
    private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPPart<HTTPResponseHead, ByteBuffer>>

    /// Has `answer` say what is answered, until the task is cancelled.
    ///
    /// - Parameters:
    ///   - address: Where it listens; port 0 for any that is free.
    ///   - listening: Takes the address that it listens at.
    ///   - answer: Several at a time.
    /// - Throws: `ToolFailure` when the address is not to be had
    static func serve(
        at address: CallBasics.SocketAddress,
        listening: @Sendable (CallBasics.SocketAddress) -> Void,
        _ answer: @escaping @Sendable (PageRequest) async -> PageResponse
    ) async throws {
        // What is accepted and never served may be let go of: a connection in its final form may not.
        let server: NIOAsyncChannel<any Channel, Never>
        do {
            server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.autoRead, value: false)
                .bind(host: address.host, port: Int(address.port)) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.configureHTTPServerPipeline(withErrorHandling: true)
                        try pipeline.addHandler(Edge())
                        return channel
                    }
                }
        } catch {
            throw ToolFailure("\(address) cannot be listened at: \(error). Give another --local.")
        }
        listening(address.with(port: UInt16(server.channel.localAddress?.port ?? Int(address.port))))
        let open = ConnectionCount()
        try await server.executeThenClose { channels in
            try await withThrowingDiscardingTaskGroup { group in
                for try await channel in channels {
                    let isOneTooMany = open.add(1) > connectionLimit
                    group.addTask {
                        defer { open.add(-1) }
                        // Who goes in the midst of a request is no news.
                        try? await isOneTooMany ? channel.close() : serve(channel, answer)
                    }
                }
            }
        }
    }

    private static func serve(
        _ channel: any Channel,
        _ answer: @Sendable (PageRequest) async -> PageResponse
    ) async throws {
        let connection = try await channel.eventLoop.submit {
            let connection = try Connection(wrappingChannelSynchronously: channel)
            try channel.syncOptions?.setOption(.autoRead, value: true)
            return connection
        }.get()
        try await connection.executeThenClose { parts, out in
            var head: HTTPRequestHead?
            var body: [UInt8] = []
            for try await part in parts {
                switch part {
                case .head(let next): (head, body) = (next, [])
                case .body(let bytes):
                    guard let next = head else { return }
                    guard body.count + bytes.readableBytes <= bodyLimit else {
                        let refusal = PageResponse(413, "That is too long.")
                        return try await out.write(contentsOf: refusal.parts(next, isKept: false))
                    }
                    body += bytes.readableBytesView
                case .end:
                    guard let next = head else { return }
                    head = nil
                    let response = await answer(PageRequest(next, body))
                    try await out.write(contentsOf: response.parts(next, isKept: next.isKeepAlive))
                    guard next.isKeepAlive else { return }
                }
            }
        }
    }

    /// As long as a session description may be.
    private static let bodyLimit = 65_536
    private static let connectionLimit = 64
    /// How long a request may take to come, and a connection wait for one.
    private static let requestTime = TimeAmount.seconds(10)
    private static let idleTime = TimeAmount.seconds(60)

    private final class ConnectionCount: Sendable {
        private let count = Atomic(0)

        /// Answers how many there are then.
        @discardableResult func add(_ more: Int) -> Int { count.wrappingAdd(more, ordering: .relaxed).newValue }
    }

    /// Ends connections on which nothing happens, or a request does not come to its end, and gives answers the shape that the
    /// encoder takes.
    private final class Edge: ChannelDuplexHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias InboundOut = HTTPServerRequestPart
        typealias OutboundIn = HTTPPart<HTTPResponseHead, ByteBuffer>
        typealias OutboundOut = HTTPServerResponsePart

        private var deadline: Scheduled<Void>?

        func channelActive(context: ChannelHandlerContext) {
            expect(context.channel, in: requestTime)
            context.fireChannelActive()
        }

        func channelInactive(context: ChannelHandlerContext) {
            deadline?.cancel()
            context.fireChannelInactive()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head: expect(context.channel, in: requestTime)
            case .body: break
            case .end: deadline?.cancel()
            }
            context.fireChannelRead(data)
        }

        private func expect(_ channel: any Channel, in time: TimeAmount) {
            deadline?.cancel()
            deadline = channel.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
        }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            let part: HTTPServerResponsePart
            switch unwrapOutboundIn(data) {
            case .head(let head): part = .head(head)
            case .body(let bytes): part = .body(.byteBuffer(bytes))
            case .end(let trailers):
                expect(context.channel, in: idleTime)
                part = .end(trailers)
            }
            context.write(wrapOutboundOut(part), promise: promise)
        }
    }
}

extension PageRequest {
    fileprivate init(_ head: HTTPRequestHead, _ body: [UInt8]) {
        func one(_ name: String) -> String? { head.headers[name].first }
        self.init(
            method: head.method.rawValue,
            path: head.uri,
            host: one("Host"),
            origin: one("Origin"),
            contentType: one("Content-Type"),
            site: one("Sec-Fetch-Site"),
            body: String(decoding: body, as: UTF8.self)
        )
    }
}

extension PageResponse {
    fileprivate func parts(_ request: HTTPRequestHead, isKept: Bool) -> [HTTPPart<HTTPResponseHead, ByteBuffer>] {
        var headers = HTTPHeaders([
            ("Content-Type", contentType), ("Content-Length", String(body.utf8.count)), ("Cache-Control", "no-store"),
            ("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'"),
            ("X-Content-Type-Options", "nosniff"), ("Connection", isKept ? "keep-alive" : "close"),
        ])
        for (name, value) in self.headers { headers.add(name: name, value: value) }
        let head = HTTPResponseHead(
            version: request.version,
            status: HTTPResponseStatus(statusCode: status),
            headers: headers
        )
        return [.head(head), .body(ByteBuffer(string: request.method == .HEAD ? "" : body)), .end(nil)]
    }
}
