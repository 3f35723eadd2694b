internal import CallBasics
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A request of a browser, whole.
struct PageRequest: Sendable {
    var method: String
    var path: String
    var host: String?
    var origin: String?
    var contentType: String?
    var body: String
}

/// What is answered to it.
struct PageResponse: Sendable {
    var status: Int
    var contentType = "text/plain; charset=utf-8"
    var location: String?
    var body = ""

    /// A refusal, with the reason as its text.
    init(_ status: Int, _ reason: String) { (self.status, body) = (status, reason + "\n") }

    init(status: Int = 200, contentType: String, location: String? = nil, _ body: String) {
        (self.status, self.contentType, self.location, self.body) = (status, contentType, location, body)
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
        let server: NIOAsyncChannel<Connection, Never>
        do {
            server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .bind(host: address.host, port: Int(address.port)) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.configureHTTPServerPipeline(withErrorHandling: true)
                        try pipeline.addHandlers(IdleStateHandler(allTimeout: .seconds(60)), Edge())
                        return try Connection(wrappingChannelSynchronously: channel)
                    }
                }
        } catch {
            throw ToolFailure("\(address) cannot be listened at: \(error). Give another --local.")
        }
        listening(address.with(port: UInt16(server.channel.localAddress?.port ?? Int(address.port))))
        try await server.executeThenClose { connections in
            try await withThrowingDiscardingTaskGroup { group in
                for try await connection in connections {
                    // Who goes in the midst of a request is no news.
                    group.addTask { try? await serve(connection, answer) }
                }
            }
        }
    }

    private static func serve(
        _ connection: Connection,
        _ answer: @Sendable (PageRequest) async -> PageResponse
    ) async throws {
        try await connection.executeThenClose { parts, out in
            var head: HTTPRequestHead?
            var body: [UInt8] = []
            for try await part in parts {
                switch part {
                case .head(let next): (head, body) = (next, [])
                case .body(let bytes):
                    body += bytes.readableBytesView.prefix(bodyLimit + 1 - body.count)
                case .end:
                    guard let next = head else { return }
                    head = nil
                    let isTooLong = body.count > bodyLimit
                    let response =
                        isTooLong ? PageResponse(413, "That is too long.") : await answer(PageRequest(next, body))
                    let isKept = next.isKeepAlive && !isTooLong
                    try await out.write(contentsOf: response.parts(next, isKept: isKept))
                    guard isKept else { return }
                }
            }
        }
    }

    /// As long as a session description may be.
    private static let bodyLimit = 65_536

    /// Ends connections on which nothing happens, and gives answers the shape that the encoder takes.
    private final class Edge: ChannelDuplexHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias InboundOut = HTTPServerRequestPart
        typealias OutboundIn = HTTPPart<HTTPResponseHead, ByteBuffer>
        typealias OutboundOut = HTTPServerResponsePart

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event is IdleStateHandler.IdleStateEvent { return context.close(promise: nil) }
            context.fireUserInboundEventTriggered(event)
        }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            let part: HTTPServerResponsePart
            switch unwrapOutboundIn(data) {
            case .head(let head): part = .head(head)
            case .body(let bytes): part = .body(.byteBuffer(bytes))
            case .end(let trailers): part = .end(trailers)
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
        if let location { headers.add(name: "Location", value: location) }
        let head = HTTPResponseHead(
            version: request.version,
            status: HTTPResponseStatus(statusCode: status),
            headers: headers
        )
        return [.head(head), .body(ByteBuffer(string: request.method == .HEAD ? "" : body)), .end(nil)]
    }
}
