internal import CallBasics
import DesktopBus
internal import Synchronization

/// A service of notifications on a bus, from the connection to it until one of the two ends.
final class DesktopSession: Sendable {
    let connection: BusConnection
    let capabilities: Set<String>
    /// The unique name of the service and the bus that gave it, as another bus gives the same: its numbers mean nothing to the
    /// service that follows it.
    let owner: String
    private let isReplaced = Atomic(false)
    private let listening = Mutex<Task<Void, Never>?>(nil)

    /// Asks the service on a bus what it can do, by `deadline`; `take` gets its signals, with `owner`.
    ///
    /// - Throws: `NotificationError`, also when nothing shows notifications; the connection ends with the last who has it.
    init(
        _ connection: BusConnection,
        until deadline: ContinuousClock.Instant,
        take: @escaping @Sendable (BusSignal, _ owner: String) -> Void
    ) async throws {
        // Signals first: what is done with a notification at once is not missed.
        let bus = BusCall.busName
        let service = DesktopPresenter.service
        for rule in [
            "type='signal',interface='\(service)',path='\(DesktopPresenter.path)'",
            "type='signal',sender='\(bus)',member='\(Self.ownerChanged)',arg0='\(service)'",
        ] {
            try await connection.reply(to: .bus("AddMatch", [.string(rule)]), until: deadline)
        }
        let capabilities = try await connection.reply(to: DesktopPresenter.call("GetCapabilities"), until: deadline)
        let unique = try await connection.reply(to: .bus("GetNameOwner", [.string(service)]), until: deadline)
        let id = try await connection.reply(to: .bus("GetId"), until: deadline)
        guard let names = capabilities.first?.strings, let name = unique.first?.string, let id = id.first?.string else {
            throw NotificationError(
                .protocolViolation,
                "What shows notifications did not tell what it can do. Check it."
            )
        }
        // They become a part of file names.
        guard name.hasPrefix(":"), !name.contains("/"), !id.contains("/"), name.utf8.count + id.utf8.count <= 128 else {
            throw NotificationError(
                .protocolViolation,
                "The bus gave \(name) as a unique name, and \(id) as its own. Check the bus address."
            )
        }
        let owner = "\(name)@\(id)"
        self.connection = connection
        self.owner = owner
        self.capabilities = Set(names)
        let task = Task { [weak self, signals = connection.signals] in
            for await signal in signals {
                if signal.sender == name {
                    take(signal, owner)
                } else if signal.sender == bus, signal.member == Self.ownerChanged,
                    signal.body.first?.string == service, signal.body.last?.string != name
                {
                    self?.isReplaced.store(true, ordering: .relaxed)
                }
            }
        }
        listening.withLock { $0 = task }
    }

    deinit {
        listening.withLock { $0 }?.cancel()
        connection.close()
    }

    /// Whether the bus or the service is gone.
    var isOver: Bool { isReplaced.load(ordering: .relaxed) || connection.hasEnded }

    private static var ownerChanged: String { "NameOwnerChanged" }

    /// Has something shown, and gives its number.
    ///
    /// - Throws: `NotificationError`
    func notify(_ arguments: [BusValue], until deadline: ContinuousClock.Instant) async throws -> UInt32 {
        let answer = try await connection.reply(to: DesktopPresenter.call("Notify", arguments), until: deadline)
        guard let number = answer.first?.uint32, number != 0 else {
            throw NotificationError(.protocolViolation, "What shows notifications gave no number. Check it.")
        }
        return number
    }

    /// Has it closed.
    ///
    /// - Throws: `NotificationError`
    func close(_ number: UInt32, until deadline: ContinuousClock.Instant) async throws {
        do {
            try await connection.reply(
                to: DesktopPresenter.call("CloseNotification", [.uint32(number)]),
                until: deadline
            )
        } catch let error as NotificationError where error.code == .refused {
            // It was closed meanwhile: some desktops call that an error.
        }
    }

    /// A text as the desktop wants it: where it takes markup, letters that would be some are written as entities.
    func body(_ text: String) -> String {
        guard capabilities.contains("body-markup") else { return text }
        let entities: [Character: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;"]
        return text.map { entities[$0] ?? String($0) }.joined()
    }
}

/// The session that is used now; when it is over the next one takes its place.
actor DesktopSessions {
    private let open: @Sendable () async throws -> DesktopSession
    private var session: DesktopSession?
    private var opening: Task<DesktopSession, any Error>?

    /// Sessions on the bus that `environment` names, which has `limit` to let us in, and its service as much; `take` gets signals.
    init(
        environment: [String: String],
        limit: Duration,
        take: @escaping @Sendable (BusSignal, _ owner: String) -> Void
    ) {
        open = {
            let addresses = BusAddress.session(environment: environment)
            let connection: BusConnection
            do { connection = try await BusConnection.connect(to: addresses, within: limit) } catch let error
                as BusError
            {
                throw NotificationError(error)
            }
            return try await DesktopSession(connection, until: .now + limit, take: take)
        }
    }

    /// The session, opened when there is none, or when that is the one which has failed.
    ///
    /// - Throws: `NotificationError`.
    func current(insteadOf failed: DesktopSession? = nil) async throws -> DesktopSession {
        if let session, session !== failed, !session.isOver { return session }
        if let opening { return try await opening.value }
        let task = Task { try await open() }
        opening = task
        defer { opening = nil }
        let opened = try await task.value
        session = opened
        return opened
    }

    /// Does something in the session; once more in the next one when the bus ends meanwhile.
    ///
    /// - Throws: `NotificationError`, and what `body` throws.
    nonisolated func use(_ body: (DesktopSession) async throws -> Void) async throws {
        var used: DesktopSession?
        do {
            let session = try await current()
            used = session
            try await body(session)
        } catch let error as NotificationError where error.code == .disconnected {
            // That session may not have noticed yet that it is over.
            try await body(current(insteadOf: used))
        }
    }
}

extension BusConnection {
    /// Calls a method of what shows notifications, or of its bus.
    ///
    /// - Throws: `NotificationError`; `CancellationError`
    @discardableResult
    fileprivate func reply(to call: BusCall, until deadline: ContinuousClock.Instant) async throws -> [BusValue] {
        do { return try await self.call(call, until: deadline) } catch let error as BusError {
            throw NotificationError(error)
        }
    }
}
