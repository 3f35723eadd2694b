import NIOCore
import TestSupport
import Testing

@testable import LocalMessaging

@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct SocketTransportRealTimeTests {
    @Test func `clients that come before the listener is open are accepted by it, and not before`() async throws {
        let scratch = try Scratch()
        let transport = SocketTransport(group: try GroupContainer(directory: scratch.path))
        let accepted = Record<Void>()
        let listener = try await transport.listen(as: "core") { channel in
            accepted.add(())
            return channel.eventLoop.makeSucceededVoidFuture()
        }
        let client = try await transport.connect(to: "core") { $0.eventLoop.makeSucceededVoidFuture() }
        // The thread that accepts has looked at its sockets meanwhile.
        for _ in 0..<10 { try await transport.eventLoop.submit {}.get() }
        #expect(accepted.values.isEmpty)
        try await listener.open()
        _ = await accepted.values(1)
        try await client.close()
        await listener.close()
    }
}
