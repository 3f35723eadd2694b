internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Who is awaited at which path, and those that have come and have not said yet where to.
///
///     expect ──► path, promise ◄── take ◄── AdmissionHandler, one for each connection
///
/// Thread: any.
final class Admission: Sendable {
    private struct Fields {
        var awaited: [String: EventLoopPromise<ConnectionState>] = [:]
        /// Those that have come and have not asked yet, the oldest first.
        var undecided: [(number: Int, channel: any Channel)] = []
        var lastNumber = 0
        var refusedCount = 0
        var isClosed = false
    }

    /// What those who come speak, as the subprotocol of WebSocket.
    let subprotocol: String
    private let fields = Mutex(Fields())

    init(subprotocol: String) { self.subprotocol = subprotocol }

    // MARK: Who is awaited

    /// Awaits one at a path, until it has come or the promise fails.
    func expect(at path: String) throws(Absence) -> EventLoopPromise<ConnectionState> {
        let promise = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: ConnectionState.self)
        let isClosed = fields.withLock { fields in
            if !fields.isClosed { fields.awaited[path] = promise }
            return fields.isClosed
        }
        guard !isClosed else {
            promise.fail(Absence.closed)
            throw .closed
        }
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
        let (awaited, undecided) = fields.withLock { fields in
            fields.isClosed = true
            return (Array(fields.awaited.values), fields.undecided.map(\.channel))
        }
        for promise in awaited { promise.fail(Absence.closed) }
        for channel in undecided { channel.close(promise: nil) }
    }

    // MARK: Who has come

    /// How many were not taken.
    var refusedCount: Int { fields.withLock(\.refusedCount) }

    /// Notes one that has come, and gives it a number; of too many the oldest goes.
    ///
    /// - Returns: The number; nil for one that is refused, as nobody is awaited any more.
    func enter(_ channel: any Channel) -> Int? {
        let (number, oldest): (Int?, (any Channel)?) = fields.withLock { fields in
            guard !fields.isClosed else {
                fields.refusedCount += 1
                return (nil, nil)
            }
            let isFull = fields.undecided.count >= Self.undecidedLimit
            let oldest = isFull ? fields.undecided.removeFirst().channel : nil
            fields.lastNumber += 1
            fields.undecided.append((fields.lastNumber, channel))
            return (fields.lastNumber, oldest)
        }
        oldest?.close(promise: nil)
        return number
    }

    /// One that has entered was taken, or was not.
    func leave(_ number: Int, isTaken: Bool) {
        fields.withLock { fields in
            fields.undecided.removeAll { $0.number == number }
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
