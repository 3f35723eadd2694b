internal import CallBasics
internal import DesktopBus
internal import SharedPhone
internal import Synchronization

/// A session with the Secret Service, which ends with its connection.
///
///     OpenSession ─► SearchItems ─► Unlock, Prompt ─► GetSecret
///
/// What comes from the bus is believed only where it has the type and the size that it must have. What the service says of an
/// error is not passed on: it has seen the secret.
final class SecretSession: Sendable {
    static let longest = 64 << 10

    /// When it was asked for.
    let begin: ContinuousClock.Instant
    private let connection: BusConnection
    /// The unique name of the service.
    private let owner: String
    private let path: String
    private let deadline: Mutex<ContinuousClock.Instant>

    /// Opens a session for as long as `body` takes; the bus has `limit` to let us in, the service as much for all that it is asked.
    ///
    /// - Throws: `SecretError`, `CancellationError`; what `body` throws
    static func with<Result>(
        _ addresses: [String],
        since begin: ContinuousClock.Instant,
        _ limit: Duration,
        _ body: (SecretSession) async throws -> Result
    ) async throws -> Result {
        do {
            let connection = try await BusConnection.connect(to: addresses, within: limit)
            defer { connection.close() }
            return try await body(try await SecretSession(connection, since: begin, until: .now + limit))
        } catch let error as BusError {
            throw SecretError(error)
        }
    }

    private init(
        _ connection: BusConnection,
        since begin: ContinuousClock.Instant,
        until deadline: ContinuousClock.Instant
    ) async throws {
        let call = BusCall.service("OpenSession", [.string("plain"), .variant(.string(""))])
        // A service that is not there yet, the bus starts with this.
        let opened = try await connection.call(call, until: deadline)
        let unique = try await connection.call(.bus("GetNameOwner", [.string(BusCall.secrets)]), until: deadline)
        guard let path = opened.last?.path, path != Self.none, let owner = unique.first?.string, owner.hasPrefix(":")
        else {
            throw Self.failure("OpenSession")
        }
        (self.connection, self.begin, self.owner, self.path) = (connection, begin, owner, path)
        self.deadline = Mutex(deadline)
    }

    /// Gives the service that much time again, after a person took some.
    func renew(_ limit: Duration) { deadline.withLock { $0 = .now + limit } }

    private func call(_ call: BusCall) async throws -> [BusValue] {
        try await connection.call(call, until: deadline.withLock(\.self))
    }

    // MARK: Items

    /// The items that have these attributes.
    func items(with attributes: [String: String]) async throws -> FoundItems {
        let answer = try await call(.service("SearchItems", [.texts(attributes)]))
        guard answer.count == 2, let unlocked = answer[0].paths, let locked = answer[1].paths else {
            throw Self.failure("SearchItems")
        }
        return FoundItems(unlocked: unlocked, locked: locked)
    }

    func secret(of item: String) async throws -> [UInt8] {
        let answer = try await call(.item(item, "GetSecret", [.path(path)]))
        guard let parts = answer.first?.structure, parts.count == 4, parts[0].path == path, parts[1].bytes == [],
            let secret = parts[2].bytes
        else { throw Self.failure("GetSecret") }
        guard secret.count <= Self.longest else {
            throw SecretError(
                .invalid,
                "What the desktop keeps has \(secret.count) bytes and is no secret of a group. Remove it there."
            )
        }
        return secret
    }

    /// The keyring for what is new.
    func keyring() async throws -> String {
        guard let path = try await call(.service("ReadAlias", [.string("default")])).first?.path else {
            throw Self.failure("ReadAlias")
        }
        guard path != Self.none else {
            throw SecretError(
                .unavailable,
                "The desktop has no keyring yet that it takes for the usual one. Make one with its password manager."
            )
        }
        return path
    }

    /// Makes an item, or changes the one with the same attributes; gives its path, or the prompt that has to be answered before.
    func create(
        _ secret: [UInt8],
        in keyring: String,
        label: String,
        _ attributes: [String: String]
    ) async throws -> (item: String?, prompt: String?) {
        let properties: [String: BusValue] = [
            "org.freedesktop.Secret.Item.Label": .string(label),
            "org.freedesktop.Secret.Item.Attributes": .texts(attributes),
        ]
        let type = String(validating: secret, as: UTF8.self) == nil ? "application/octet-stream" : "text/plain"
        let value = BusValue.structure([.path(path), .bytes([]), .bytes(secret), .string(type)])
        let answer = try await call(.keyring(keyring, "CreateItem", [.dictionary(properties), value, .bool(true)]))
        guard answer.count == 2, let item = answer[0].path, let prompt = answer[1].path else {
            throw Self.failure("CreateItem")
        }
        return (item == Self.none ? nil : item, prompt == Self.none ? nil : prompt)
    }

    /// Deletes an item; gives the prompt that has to be answered before.
    func delete(_ item: String) async throws -> String? {
        guard let prompt = try await call(.item(item, "Delete")).first?.path else { throw Self.failure("Delete") }
        return prompt == Self.none ? nil : prompt
    }

    /// Unlocks items or keyrings; gives the prompt that has to be answered before.
    func unlock(_ objects: [String]) async throws -> String? {
        let answer = try await call(.service("Unlock", [.paths(objects)]))
        guard answer.count == 2, answer[0].paths != nil, let prompt = answer[1].path else {
            throw Self.failure("Unlock")
        }
        return prompt == Self.none ? nil : prompt
    }

    // MARK: Prompts

    /// Has a person asked; nil when the person said no.
    ///
    /// A prompt that is waited for no more goes away.
    func perform(_ prompt: String, within limit: Duration) async throws -> BusValue? {
        let deadline = ContinuousClock.now + limit
        let bus = BusCall.busName
        for rule in [
            "type='signal',interface='\(BusCall.promptInterface)',path='\(prompt)'",
            "type='signal',sender='\(bus)',member='NameOwnerChanged',arg0='\(BusCall.secrets)'",
        ] {
            _ = try await call(.bus("AddMatch", [.string(rule)]))
        }
        _ = try await call(.prompt(prompt, "Prompt", [.string("")]))
        do {
            return try await withThrowingTaskGroup(of: BusValue?.self) { group in
                group.addTask { try await self.completion(of: prompt) }
                group.addTask {
                    try await Task.sleep(until: deadline, clock: .continuous)
                    throw SecretError(
                        .locked,
                        "The desktop's keyring stays locked: nobody gave its password in \(limit). Unlock it at the desktop."
                    )
                }
                defer { group.cancelAll() }
                return try await group.next() ?? nil
            }
        } catch let error as SecretError where error.code == .unavailable {
            // There is nobody to take it away.
            throw error
        } catch {
            await dismiss(prompt)
            throw error
        }
    }

    private func completion(of prompt: String) async throws -> BusValue? {
        for await signal in connection.signals {
            if signal.sender == BusCall.busName, signal.member == "NameOwnerChanged",
                signal.body.first?.string == BusCall.secrets
            {
                break
            }
            guard signal.sender == owner, signal.path == prompt, signal.interface == BusCall.promptInterface,
                signal.member == "Completed"
            else { continue }
            guard signal.body.count == 2, let isDismissed = signal.body[0].bool, let result = signal.body[1].variant
            else {
                throw Self.failure("Prompt")
            }
            return isDismissed ? nil : result
        }
        try Task.checkCancellation()
        throw SecretError(.unavailable, "What keeps the desktop's secrets ended while it asked. Start it again.")
    }

    /// Takes a prompt away that is wanted no more; one that is gone already is no matter.
    ///
    /// It is said also by a task that is cancelled.
    func dismiss(_ prompt: String) async {
        let connection = connection
        await Task { _ = try? await connection.call(.prompt(prompt, "Dismiss"), until: .now + .seconds(1)) }.value
    }

    /// The path that stands for no object.
    private static let none = "/"

    static func failure(_ member: String) -> SecretError {
        SecretError(
            .unavailable,
            "What keeps the desktop's secrets gave an answer to \(member) that makes no sense. Check \(BusCall.secrets)."
        )
    }
}

/// Where items are.
struct FoundItems {
    let unlocked: [String]
    let locked: [String]
    var all: [String] { unlocked + locked }
}

extension BusCall {
    fileprivate static let secrets = "org.freedesktop.secrets"
    fileprivate static let promptInterface = "org.freedesktop.Secret.Prompt"

    fileprivate static func service(_ member: String, _ body: [BusValue]) -> BusCall {
        secret("/org/freedesktop/secrets", "org.freedesktop.Secret.Service", member, body)
    }

    fileprivate static func keyring(_ path: String, _ member: String, _ body: [BusValue]) -> BusCall {
        secret(path, "org.freedesktop.Secret.Collection", member, body)
    }

    fileprivate static func item(_ path: String, _ member: String, _ body: [BusValue] = []) -> BusCall {
        secret(path, "org.freedesktop.Secret.Item", member, body)
    }

    fileprivate static func prompt(_ path: String, _ member: String, _ body: [BusValue] = []) -> BusCall {
        secret(path, promptInterface, member, body)
    }

    private static func secret(_ path: String, _ interface: String, _ member: String, _ body: [BusValue]) -> BusCall {
        BusCall(destination: secrets, path: path, interface: interface, member: member, body: body)
    }
}

extension SecretError {
    /// Why the Secret Service cannot be used.
    fileprivate init(_ error: BusError) {
        switch error.code {
        case .noBus, .timedOut, .disconnected, .protocolViolation:
            self.init(.unavailable, "The desktop's secrets cannot be reached. \(error.message)")
        case .refused("org.freedesktop.DBus.Error.ServiceUnknown"),
            .refused("org.freedesktop.DBus.Error.NameHasNoOwner"):
            self.init(
                .unavailable,
                "Nothing keeps secrets on this desktop (\(BusCall.secrets)). Start what does, such as gnome-keyring or KeePassXC, "
                    + "or keep them in files."
            )
        case .refused("org.freedesktop.DBus.Error.NoReply"):
            self.init(.unavailable, "What keeps the desktop's secrets ended before it answered. Start it again.")
        case .refused("org.freedesktop.Secret.Error.IsLocked"):
            self.init(.locked, "The desktop's keyring is locked. Unlock it at the desktop.")
        case .refused(let name):
            self.init(.system, "What keeps the desktop's secrets refused: \(name). Check \(BusCall.secrets).")
        }
    }
}
