import Foundation
import Glibc
import LocalMessaging
import Synchronization
import Testing

extension Tag {
    /// Needs the wall clock, threads, sockets or processes: the suite runs alone.
    @Tag static var realtime: Self
}

struct Sum: LocalRequest {
    static let messageType = MessageType(name: "test.sum")
    typealias Reply = Int
    let terms: [Int]
}

/// A directory that goes away with the value.
final class Scratch: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "messaging-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// What handlers heard, in its order; a test waits for as many as it expects.
final class Record<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    func add(_ value: Value) {
        let ready = state.withLock { state in
            state.values.append(value)
            let count = state.values.count
            defer { state.waiters.removeAll { $0.count <= count } }
            return state.waiters.filter { $0.count <= count }
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    var values: [Value] { state.withLock { $0.values } }

    /// The values, once there are `count` or more.
    func values(_ count: Int) async -> [Value] {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if state.values.count >= count { return true }
                state.waiters.append((count, continuation))
                return false
            }
            if isReady { continuation.resume() }
        }
        return values
    }
}

/// Clients of a server that came and went.
struct ClientRecord: Sendable {
    let joined = Record<MessageConnection>()
    let left = Record<Invalidation>()

    func note(_ connection: MessageConnection, _ change: MessageServer.ClientChange) {
        switch change {
        case .joined: joined.add(connection)
        case .left(let reason): left.add(reason)
        }
    }
}

/// Opened once, for all who wait and will wait.
final class Gate: Sendable {
    private let opened = Record<Void>()

    func open() { opened.add(()) }
    func passed() async { _ = await opened.values(1) }
}

extension MessageHandlers {
    /// Adds up what `Sum` asks.
    static var sums: MessageHandlers {
        var handlers = MessageHandlers()
        handlers.reply(to: Sum.self) { request, _ in request.terms.reduce(0, +) }
        return handlers
    }

    /// Takes notes down.
    static func notes(into record: Record<String>) -> MessageHandlers {
        var handlers = MessageHandlers()
        handlers.on(Note.self) { note, _ in record.add(note.text) }
        return handlers
    }
}

/// Descriptors of this process that are open.
func openDescriptorCount() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
}
