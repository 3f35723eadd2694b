import LocalMessagingTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import LocalMessaging
@testable import LocalMessagingTesting

/// When clients connect again, and what they find then, in virtual time.
struct ReconnectionTests {
    let network = InProcessNetwork()

    var transport: InProcessTransport {
        InProcessTransport(network: network, side: InProcessSide(on: network.eventLoop))
    }

    func connect(
        over transport: any MessageTransport,
        reconnection: Reconnection = .backingOff,
        changed: (@Sendable (MessageClient.Change) -> Void)? = nil
    ) async throws -> MessageClient {
        try await MessageClient.connect(
            to: "core",
            over: transport,
            handlers: .notes(into: Record()),
            configuration: MessagingConfiguration(),
            waitingForServer: nil,
            reconnection: reconnection,
            changed: changed
        )
    }

    @Test func `pauses double from the first to the longest`() {
        let pauses = Reconnection.backingOff
        #expect(
            (0..<9).map { pauses.delay(before: $0) }
                == [10, 20, 40, 80, 160, 320, 640, 1000, 1000].map { .milliseconds($0) }
        )
        #expect(pauses.delay(before: .max) == .seconds(1))
        let none = Reconnection(firstDelay: .zero, maximumDelay: .seconds(1))
        #expect((0..<3).map { none.delay(before: $0) } == [1, 2, 4].map { .milliseconds($0) })
        #expect(Reconnection(firstDelay: .zero, maximumDelay: .zero).delay(before: 9) == .milliseconds(1))
    }

    @Test func `a server that accepts and then drops its client is not asked for ever without a pause`() async throws {
        let eventLoop = network.eventLoop
        let accepted = Record<(at: NIODeadline, peer: RawPeer)>()
        let listener = try await RawPeer.serve("core", over: transport) { accepted.add((eventLoop.now, $0)) }
        let connecting = Task { try await connect(over: transport) }
        for number in 1...6 {
            // The first two need no time.
            if number > 2 { await eventLoop.advanceTime(until: { accepted.values.count >= number }) }
            let peer = await accepted.values(number)[number - 1].peer
            try await peer.welcome()
            await peer.close()
        }
        let client = try await connecting.value
        await eventLoop.advanceTime(until: { accepted.values.count >= 7 })
        let pauses = zip(accepted.values.dropFirst(), accepted.values).map { $0.at - $1.at }
        #expect(pauses[0] == .zero, "the first is tried at once")
        for (pause, least) in zip(pauses.dropFirst(), [10, 20, 40, 80, 160] as [Int64]) {
            #expect(pause >= .milliseconds(least))
        }

        // One that has lasted is as good as the first.
        let last = accepted.values[6].peer
        try await last.welcome()
        while client.server == nil { await Task.yield() }
        await eventLoop.advanceTime(by: .seconds(1))
        let end = eventLoop.now
        await last.close()
        #expect(await accepted.values(8)[7].at == end)
        await client.close()
        await listener.close()
    }

    func startServer(_ clients: ClientRecord = ClientRecord()) async throws -> MessageServer {
        try await MessageServer.start(
            name: "core",
            over: transport,
            handlers: .sums,
            configuration: MessagingConfiguration(),
            shouldAccept: nil,
            clientChanged: clients.note
        )
    }

    @Test func `what keeps a client from connecting again is told as the reason of its end`() async throws {
        let server = try await startServer()
        let fragile = FragileTransport(base: transport)
        let client = try await connect(over: fragile)
        fragile.isBroken.add(())
        await server.stop()
        #expect(await client.invalidated() == .system("\(FragileTransport.Failure())"))
    }
}

/// A transport that cannot connect any more once it is broken.
private struct FragileTransport: MessageTransport {
    struct Failure: Error {}

    let base: InProcessTransport
    let isBroken = Record<Void>()

    var eventLoop: any EventLoop { base.eventLoop }

    func listen(
        as name: String,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws -> any MessageListener {
        try await base.listen(as: name, initialize: initialize)
    }

    func connect(
        to name: String,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws -> any Channel {
        guard isBroken.values.isEmpty else { throw Failure() }
        return try await base.connect(to: name, initialize: initialize)
    }

    func identity(of channel: any Channel) -> EventLoopFuture<PeerIdentity> { base.identity(of: channel) }

    func connectAttachments(to name: String, token: [UInt8]) -> AttachmentSocket.Outcome<AttachmentSocket> {
        base.connectAttachments(to: name, token: token)
    }
}

extension NIOAsyncTestingEventLoop {
    /// Moves the time on, a millisecond at a time, until `isDone`.
    func advanceTime(until isDone: () -> Bool) async {
        while !isDone() {
            await advanceTime(by: .milliseconds(1))
            await Task.yield()
        }
    }
}
