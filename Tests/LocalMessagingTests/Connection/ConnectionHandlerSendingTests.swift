import LocalMessagingTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import LocalMessaging
@testable import LocalMessagingTesting

struct ConnectionHandlerSendingTests {
    private let network = InProcessNetwork()

    @Test func `a peer that takes a large frame slowly does take it, and is not dropped`() async throws {
        let clients = ClientRecord()
        let transport = InProcessTransport(network: network, side: InProcessSide(on: network.eventLoop))
        let server = try await MessageServer.start(
            name: "core",
            over: transport,
            handlers: MessageHandlers(),
            configuration: MessagingConfiguration(),
            shouldAccept: nil,
            clientChanged: clients.note
        )
        let peer = try await RawPeer.connect(to: "core", over: transport)
        try await peer.introduce(accepting: [Note.messageType])
        peer.holdReading()
        try await clients.joined.values(1)[0].send(Note(text: String(repeating: "x", count: 900_000)))
        var rounds = 0
        while peer.frames.values.count < 2, clients.left.values.isEmpty {
            // Less than the limit of 2 s, and several times that for the whole frame.
            await network.eventLoop.advanceTime(by: .milliseconds(1500))
            try await peer.readOnce()
            rounds += 1
        }
        #expect(clients.left.values.isEmpty)
        #expect(peer.frames.values.last?.length ?? 0 > 900_000)
        #expect(rounds > 3)
        await peer.close()
        await server.stop()
    }
}
