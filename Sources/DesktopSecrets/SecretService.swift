internal import CallBasics
internal import DesktopBus
internal import Glibc
public import LocalMessaging
public import SharedPhone

/// Secrets of a group in the desktop's own store, by its Secret Service (`org.freedesktop.secrets`), as gnome-keyring, KeePassXC
/// and KWallet have it.
///
/// A secret is an item of the keyring that the desktop takes for the usual one (alias `default`), found again by its attributes
/// `xdg:schema`, `group` (the directory of the group) and `name`, wherever a person has moved it. A keyring that is locked asks
/// the person for its password, for a minute at most, and once for all that waits meanwhile.
///
/// Secrets cross the bus as they are (algorithm `plain`): its socket lets this user in alone, and whoever has the rights of this
/// user could ask the service itself.
///
/// Nothing is kept open: each use connects, and its waits are bounded. Secrets are used one after the other.
/// Thread: any; nothing blocks.
/// Source: Secret Service API 0.2
public actor SecretService: SecretStore {
    private let addresses: [String]
    private let attributes: [String: String]
    private let limits: Limits
    private let mayAsk: Bool
    /// What is done now, or last.
    private var last: Task<Void, Never>?
    /// When a person last said no.
    private var refusedAt: ContinuousClock.Instant?

    /// How long things may take.
    struct Limits {
        /// To be let in by the bus, and all that a secret needs but people.
        var service = Duration.seconds(5)
        /// A person who is asked for a password.
        var person = Duration.seconds(60)
    }

    /// The secrets of a group, in the session that `environment` names.
    ///
    /// - Parameters:
    ///   - group: Whose secrets they are.
    ///   - environment: The variables of the process.
    ///   - mayAsk: Whether a person may be asked to unlock them; else what is locked is an error at once, as suits a process that a
    ///     push has woken.
    public init(group: GroupContainer, environment: [String: String], mayAsk: Bool = true) {
        self.init(group: group, environment: environment, mayAsk: mayAsk, Limits())
    }

    init(group: GroupContainer, environment: [String: String], mayAsk: Bool = true, _ limits: Limits) {
        addresses = BusAddress.session(environment: environment)
        attributes = ["xdg:schema": "media-engine.Secret", "group": Self.canonical(group.path)]
        (self.limits, self.mayAsk) = (limits, mayAsk)
    }

    /// The same for every way to write the path.
    private static func canonical(_ path: String) -> String {
        guard let found = realpath(path, nil) else { return path }
        defer { free(found) }
        return String(cString: found)
    }

    /// The secret of a name; nil where there is none.
    ///
    /// - Throws: `SecretError`, as when there is no such service, or its keyring stays locked; `CancellationError`
    public func secret(of name: String) async throws -> [UInt8]? {
        let attributes = attributes(of: name)
        return try await use { session in
            let found = try await session.items(with: attributes)
            guard let item = found.all.first else { return nil }
            if found.unlocked.isEmpty { try await self.unlock([item], in: session) }
            return try await session.secret(of: item)
        }
    }

    /// Keeps the secret of a name; nil forgets it.
    ///
    /// - Throws: as `secret(of:)`
    public func set(_ secret: [UInt8]?, of name: String) async throws {
        if let secret, secret.count > SecretSession.longest {
            throw SecretError(
                .invalid,
                "A secret has \(SecretSession.longest) bytes at most, not \(secret.count)."
            )
        }
        let attributes = attributes(of: name)
        try await use { session in
            let former = try await session.items(with: attributes)
            var outdated = Set(former.all)
            if let secret {
                let keyring = try await session.keyring()
                try await self.unlock([keyring], in: session)
                let (item, prompt) = try await session.create(secret, in: keyring, label: name, attributes)
                var made = item
                if let prompt { made = try await self.ask(by: prompt, in: session).path }
                guard let made else { throw SecretSession.failure("CreateItem") }
                outdated.remove(made)
            }
            // One that was moved to another keyring would be read in the place of this one.
            let locked = former.locked.filter(outdated.contains)
            if !locked.isEmpty { try await self.unlock(locked, in: session) }
            for item in outdated {
                if let prompt = try await session.delete(item) { _ = try await self.ask(by: prompt, in: session) }
            }
        }
    }

    private func attributes(of name: String) -> [String: String] { attributes.merging(["name": name]) { $1 } }

    // MARK: People

    private func unlock(_ objects: [String], in session: SecretSession) async throws {
        guard let prompt = try await session.unlock(objects) else { return }
        _ = try await ask(by: prompt, in: session)
    }

    /// Has a person asked, and gives what comes of it.
    private func ask(by prompt: String, in session: SecretSession) async throws -> BusValue {
        guard mayAsk else {
            await session.dismiss(prompt)
            throw SecretError(
                .locked,
                "The desktop's keyring is locked, and nobody is asked from here. Unlock it at the desktop."
            )
        }
        // Who said no to one does not want to hear of those that have waited meanwhile.
        if let refusedAt, refusedAt > session.begin {
            await session.dismiss(prompt)
            throw Self.refusal
        }
        guard let answer = try await session.perform(prompt, within: limits.person) else {
            refusedAt = .now
            throw Self.refusal
        }
        session.renew(limits.service)
        return answer
    }

    private static let refusal = SecretError(
        .locked,
        "The desktop's keyring stays locked: its password was not given. Try again, and give it, or unlock it at the desktop."
    )

    // MARK: One after the other

    /// Does something with the service, when all that was asked for before is done.
    private func use<Result: Sendable>(
        _ body: @escaping @Sendable (SecretSession) async throws -> Result
    ) async throws -> Result {
        let (before, begin) = (last, ContinuousClock.now)
        let task = Task { [addresses, limits] in
            await before?.value
            try Task.checkCancellation()
            return try await SecretSession.with(addresses, since: begin, limits.service, body)
        }
        last = Task { _ = await task.result }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }
}
