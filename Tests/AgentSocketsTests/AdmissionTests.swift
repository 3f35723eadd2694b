import NIOCore
import NIOEmbedded
import Testing

@testable import AgentSockets

/// Those who dial in and have not said yet where to, without sockets.
@Suite struct AdmissionTests {
    private static func connection() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/agent")).wait()
        return channel
    }

    @Test func `of too many that say nothing the oldest goes, and no other`() throws {
        let admission = Admission(subprotocol: "media")
        let silent = try (0..<130).map { _ in try Self.connection() }
        defer { for channel in silent { _ = try? channel.finish(acceptAlreadyClosed: true) } }
        #expect(silent.prefix(128).map { admission.enter($0) } == Array(1...128))
        #expect(silent.count { $0.isActive } == 130)
        // One that has said where to is none of them.
        admission.leave(2, isTaken: true)
        #expect(admission.enter(silent[128]) == 129 && silent[0].isActive)
        #expect(admission.enter(silent[129]) == 130)
        #expect(silent.map(\.isActive) == [false] + [Bool](repeating: true, count: 129))
        #expect(admission.refusedCount == 0)
    }

    @Test func `nobody enters a place that is closed, which is counted, and who is there goes`() throws {
        let admission = Admission(subprotocol: "media")
        let (first, second) = (try Self.connection(), try Self.connection())
        defer { for channel in [first, second] { _ = try? channel.finish(acceptAlreadyClosed: true) } }
        #expect(admission.enter(first) == 1)
        admission.close()
        #expect(!first.isActive)
        #expect(admission.refusedCount == 0)
        #expect(admission.enter(second) == nil)
        #expect(admission.refusedCount == 1)
    }
}
