internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Who is awaited at which path, and how many have come that have not said yet where to.
///
///     expect ──► path, promise ◄── take ◄── GateHandler, one for each connection
///
/// Thread: any.
final class Admission: Sendable {
    private struct Fields {
        var awaited: [String: EventLoopPromise<ConnectionState>] = [:]
        var undecidedCount = 0
        var refusedCount = 0
        var isClosed = false
    }

    /// What those who come speak, as the subprotocol of WebSocket.
    let subprotocol: String
    private let fields = Mutex(Fields())

    init(subprotocol: String) { self.subprotocol = subprotocol }

    // MARK: Who is awaited

    /// Awaits one at a path, until it has come or the promise fails.
    func expect(at path: String) -> EventLoopPromise<ConnectionState> {
        let promise = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: ConnectionState.self)
        let isClosed = fields.withLock { fields in
            if !fields.isClosed { fields.awaited[path] = promise }
            return fields.isClosed
        }
        if isClosed { promise.fail(Absence.closed) }
        promise.futureResult.whenFailure { [self] _ in fields.withLock { $0.awaited[path] = nil } }
        return promise
    }

    func isAwaited(at path: String) -> Bool { fields.withLock { $0.awaited[path] != nil } }

    /// The promise of who is awaited at a path, for one who has come.
    func take(at path: String) -> EventLoopPromise<ConnectionState>? {
        fields.withLock { $0.awaited.removeValue(forKey: path) }
    }

    /// Nobody comes any more.
    func close() {
        let awaited = fields.withLock { fields in
            fields.isClosed = true
            return Array(fields.awaited.values)
        }
        for promise in awaited { promise.fail(Absence.closed) }
    }

    // MARK: Who has come

    /// How many were not taken.
    var refusedCount: Int { fields.withLock(\.refusedCount) }

    /// Counts one that has come; whether there is room for it.
    func enter() -> Bool {
        fields.withLock { fields in
            let hasRoom = !fields.isClosed && fields.undecidedCount < Self.undecidedLimit
            if hasRoom { fields.undecidedCount += 1 } else { fields.refusedCount += 1 }
            return hasRoom
        }
    }

    /// One that has entered was taken, or was not.
    func decide(isTaken: Bool) {
        fields.withLock { fields in
            fields.undecidedCount -= 1
            if !isTaken { fields.refusedCount += 1 }
        }
    }

    private static let undecidedLimit = 128
}

/// Why an agent that was awaited has not come.
enum Absence: Error {
    case late(TimeAmount)
    case unwanted
    case gone
    case closed

    var text: String {
        switch self {
        case .late(let patience):
            "No agent has come within \(patience.shown). Check that it was told where to dial, or wait longer."
        case .unwanted: "The agent was not waited for."
        case .gone: "The agent has come, and gone before it was answered. Have it dial again, where it is told then."
        case .closed: "No agent can come: the place where they dial in is closed."
        }
    }
}
