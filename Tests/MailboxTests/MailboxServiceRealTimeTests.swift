import Foundation
import Glibc
import NIOCore
import SharedCore
import Synchronization
import TestSupport
import Testing

@testable import Mailbox

/// The service of a core over a mailbox, with real connections.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct MailboxServiceRealTimeTests {
    @Test func `all that is pending is delivered and acknowledged when the fetch returns`() async throws {
        let room = try MailboxPost(.invitation(RoomInvitation(address: "sip:r@b", invitedBy: "sip:a@b")))
        let server = try await MailboxServer.start(posts: try posts(0..<200) + [room, post("later", delay: 3600)])
        let store = Store()
        let service = await store.service(port: server.port)
        try await service.fetchPending()
        #expect(store.keys == (0..<200).map { "\($0)" } + ["sip:r@b"])
        let counts = await server.counts
        #expect(counts.acknowledged == 201 && counts.held == 1)
        await service.stop()
        await server.stop()
    }

    @Test func `connections that are dropped and messages that are repeated change nothing`() async throws {
        let script = try (0..<20).map { index in
            try MailboxPost(
                .message(IncomingMessage(callID: "\(index)", sender: "s", text: "t")),
                duplicates: index % 3,
                disconnectsAfter: index % 2 == 0
            )
        }
        let server = try await MailboxServer.start(posts: script)
        let store = Store()
        let service = await store.service(port: server.port)
        try await service.fetchPending()
        #expect(store.keys == (0..<20).map { "\($0)" })
        #expect(store.repeatCount > 0)
        #expect(await server.counts.acknowledged == 20)
        // Every drop was seen, and after each something had come: none was waited for long.
        #expect(store.disconnectCount == 10 && store.pauses.allSatisfy { $0 == .milliseconds(10) })
        await service.stop()
        await server.stop()
    }

    @Test func `what is not committed is not acknowledged`() async throws {
        let (receipts, receipt) = AsyncStream.makeStream(of: String.self)
        let server = try await MailboxServer.start(posts: try posts(0..<3)) { event in
            if case .acknowledged(let content) = event { receipt.yield(content.key) }
        }
        let store = Store(refusing: "1")
        let service = await store.service(port: server.port)
        await #expect(throws: Store.Fenced.self) { try await service.fetchPending() }
        await service.stop()
        // The receipt of the one before is on its way.
        for await key in receipts {
            #expect(key == "0")
            break
        }
        #expect(await server.held == ["1", "2"])
        await server.stop()
    }

    @Test func `what comes while the core runs is delivered, and acknowledged also when it is ended`() async throws {
        let (open, onEvent) = Self.openConnections()
        let server = try await MailboxServer.start(posts: try posts(0..<1), onEvent: onEvent)
        let store = Store()
        let service = await store.service(port: server.port)
        let running = Task { try await service.run() }
        try await store.waitFor(1)
        await server.post(try posts(1..<50))
        try await store.waitFor(50)
        // The commit of the last one has not returned yet.
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        await service.stop()
        try await open.wait { $0 == 0 }
        #expect(await server.counts.acknowledged == 50)
        await server.stop()
    }

    @Test func `a server that is away is tried again after 10 ms to 1 s, until it is there`() async throws {
        let first = try await MailboxServer.start()
        let port = first.port
        await first.stop()
        let store = Store()
        let (attempts, attempt) = AsyncStream.makeStream(of: Duration.self)
        let service = await store.service(port: port) { attempt.yield($0) }
        let fetching = Task { try await service.fetchPending() }
        var delays: [Duration] = []
        for await delay in attempts {
            delays.append(delay)
            if delays.count == 9 { break }
        }
        #expect(delays == [10, 20, 40, 80, 160, 320, 640, 1000, 1000].map { .milliseconds($0) })
        let second = try await MailboxServer.start(port: port, posts: try posts(0..<1))
        try await fetching.value
        #expect(store.keys == ["0"])
        await service.stop()
        await second.stop()
    }

    @Test(arguments: [0, 1])
    func `a server that answers and drops is asked less and less often, unless connections last`(
        seconds: Int
    ) async throws {
        let (attempts, attempt) = AsyncStream.makeStream(of: Duration.self)
        let time = Mutex(ContinuousClock.now)
        let service = await Store().service(
            port: try startDroppingServer(connections: 5),
            pause: { attempt.yield($0) },
            now: {
                time.withLock { time in
                    time += .seconds(seconds)
                    return time
                }
            }
        )
        let running = Task { try await service.run() }
        var delays: [Duration] = []
        for await delay in attempts {
            delays.append(delay)
            if delays.count == 5 { break }
        }
        #expect(delays == (seconds == 0 ? [10, 20, 40, 80, 160] : [10, 10, 10, 10, 10]).map { .milliseconds($0) })
        running.cancel()
        _ = await running.result
        await service.stop()
    }

    /// A server that answers a fetch of each connection with nothing and then closes it; its port.
    private func startDroppingServer(connections: Int) throws -> Int {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        // A `sockaddr_in`, which is another module's here: family, port 0, address.
        var address = [UInt8](repeating: 0, count: 4) + [127, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
        var length = socklen_t(address.count)
        let port = address.withUnsafeMutableBytes { bytes -> UInt16? in
            bytes.storeBytes(of: sa_family_t(AF_INET), as: sa_family_t.self)
            guard let address = bytes.bindMemory(to: sockaddr.self).baseAddress,
                bind(listener, address, length) == 0, listen(listener, 8) == 0,
                getsockname(listener, address, &length) == 0
            else { return nil }
            return bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self).bigEndian
        }
        Thread.detachNewThread {
            for _ in 0..<connections {
                let connection = accept(listener, nil, nil)
                var heard = ""
                var buffer = [UInt8](repeating: 0, count: 1024)
                while !heard.contains("fetch"), case let count = read(connection, &buffer, buffer.count), count > 0 {
                    heard += String(decoding: buffer[..<count], as: UTF8.self)
                }
                _ = write(connection, "{\"pending\":0}\n", 14)
                close(connection)
            }
            close(listener)
        }
        return Int(try #require(port))
    }

    @Test func `what the system forbids is no reason to try again`() {
        let forbidden = IOError(errnoCode: EACCES, reason: "setsockopt")
        #expect(MailboxError(connectingTo: "host:1", forbidden).code == .cannotConnect)
        #expect(!MailboxError(connectingTo: "host:1", forbidden).isTransient)
        for code in [ECONNREFUSED, ETIMEDOUT, EMFILE] {
            let passing = IOError(errnoCode: code, reason: "connect")
            #expect(MailboxError(connectingTo: "host:1", passing).isTransient)
        }
        #expect(MailboxError(connectingTo: "host:1", ChannelError.connectTimeout(.seconds(5))).isTransient)
    }

    @Test func `a stop ends what runs, and nothing is delivered after it`() async throws {
        let (open, onEvent) = Self.openConnections()
        let server = try await MailboxServer.start(onEvent: onEvent)
        let store = Store()
        let service = await store.service(port: server.port)
        let running = Task { try await service.run() }
        try await open.wait { $0 == 1 }
        await service.stop()
        await #expect(throws: CancellationError.self) { try await running.value }
        await server.post(try posts(0..<1))
        await #expect(throws: CancellationError.self) { try await service.fetchPending() }
        try await open.wait { $0 == 0 }
        #expect(await server.held == ["0"])
        #expect(store.keys == [])
        await server.stop()
    }

    @Test func `a cancelled fetch from a server that is away ends at once`() async throws {
        let server = try await MailboxServer.start()
        let port = server.port
        await server.stop()
        let (attempts, attempt) = AsyncStream.makeStream(of: Void.self)
        let service = await Store().service(port: port) { _ in
            attempt.yield()
            // Until it is cancelled.
            for await _ in AsyncStream<Never>.makeStream().stream {}
            try Task.checkCancellation()
        }
        let fetching = Task { try await service.fetchPending() }
        for await _ in attempts { break }
        fetching.cancel()
        await #expect(throws: CancellationError.self) { try await fetching.value }
        await service.stop()
    }

    @Test func `an action that is performed again is performed once`() async throws {
        let server = try await MailboxServer.start()
        let service = await Store().service(port: server.port)
        let reply = MessageAction(id: "a", callID: "1", kind: .reply("yes"))
        let seen = MessageAction(id: "b", callID: "1", kind: .markAsSeen)
        for action in [reply, seen, reply] { try await service.perform(action) }
        #expect(await server.actions == [reply, seen])
        await service.stop()
        await server.stop()
    }

    @Test func `an action too long for a line is an error, not a retry`() async throws {
        let server = try await MailboxServer.start()
        let service = await Store().service(port: server.port)
        let text = String(repeating: "x", count: 70_000)
        let error = await #expect(throws: MailboxError.self) {
            try await service.perform(MessageAction(id: "a", callID: "1", kind: .reply(text)))
        }
        #expect(error?.code == .protocolViolation)
        await service.stop()
        await server.stop()
    }

    @Test func `a port that is taken is an error with its remedy`() async throws {
        let first = try await MailboxServer.start()
        let error = await #expect(throws: MailboxError.self) { try await MailboxServer.start(port: first.port) }
        #expect(error?.code == .cannotListen && error?.message.contains("Choose another port") == true)
        await first.stop()
    }

    private func posts(_ range: Range<Int>) throws -> [MailboxPost] { try range.map { try post("\($0)") } }

    private func post(_ callID: String, delay: Int = 0) throws -> MailboxPost {
        try MailboxPost(.message(IncomingMessage(callID: callID, sender: "s", text: "t")), delay: .seconds(delay))
    }

    /// The number of a server's connections, and what tells of them.
    private static func openConnections() -> (count: Watched<Int>, onEvent: @Sendable (MailboxEvent) -> Void) {
        let count = Watched(0)
        return (
            count,
            { event in
                switch event {
                case .connected: count.update { $0 += 1 }
                case .disconnected: count.update { $0 -= 1 }
                case .sent, .acknowledged, .performed: break
                }
            }
        )
    }
}

/// What a core's store would be: keeps each key once, and counts.
private final class Store: Sendable {
    struct Fenced: Error {}

    private struct State {
        var keys: [String] = []
        var repeatCount = 0
        var disconnectCount = 0
        var pauses: [Duration] = []
    }

    private let state = Watched(State())
    private let refused: String?

    init(refusing refused: String? = nil) {
        self.refused = refused
    }

    var keys: [String] { state.value.keys }
    var repeatCount: Int { state.value.repeatCount }
    var disconnectCount: Int { state.value.disconnectCount }
    var pauses: [Duration] { state.value.pauses }

    /// A service that was started, and whose pauses take no time.
    func service(
        port: Int,
        pause: @escaping @Sendable (Duration) async throws -> Void = { _ in },
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) async -> MailboxService {
        let service = MailboxService(
            host: "127.0.0.1",
            port: port,
            onDisconnect: { _ in self.state.update { $0.disconnectCount += 1 } },
            now: now,
            pause: { duration in
                self.state.update { $0.pauses.append(duration) }
                try await pause(duration)
            }
        )
        let context = CoreContext(
            epoch: Epoch(rawValue: 1),
            deliver: { try await self.take($0.callID) },
            deliverInvitation: { try await self.take($0.address) },
            recordCall: { _ in }
        )
        await service.start(context)
        return service
    }

    /// Waits until it has so many keys.
    func waitFor(_ count: Int) async throws {
        try await state.wait { $0.keys.count >= count }
    }

    private func take(_ key: String) async throws -> Bool {
        guard key != refused else { throw Fenced() }
        let isNew = state.update { state in
            guard !state.keys.contains(key) else {
                state.repeatCount += 1
                return false
            }
            state.keys.append(key)
            return true
        }
        // A cancelled caller must not end a commit that has begun.
        await Task.yield()
        try Task.checkCancellation()
        return isNew
    }
}
