public import LocalMessaging
internal import SharedCore

/// The accounts of a group: what is known to all in its store, what is secret apart from that.
///
/// They are written by whoever owns the store: with a core running that does it, and uses them at once.
/// Thread: any.
public struct GroupAccounts: Sendable {
    private let group: GroupContainer
    private let secrets: any SecretStore
    private let store: SharedStore

    /// The accounts of a group.
    ///
    /// - Throws: `StoreError`, `GroupError` when the group cannot be used
    public init(group: GroupContainer) throws {
        try self.init(group: group, secrets: SecretFiles(group: group))
    }

    /// The accounts of a group whose secrets are somewhere else.
    ///
    /// - Throws: `StoreError`
    public init(group: GroupContainer, secrets: any SecretStore) throws {
        (self.group, self.secrets, store) = (group, secrets, try SharedStore(group: group))
    }

    /// All of them, ordered by address.
    ///
    /// - Throws: `StoreError`; what the store of secrets throws
    public func all() async throws -> [GroupAccount] { try await Self.read(store, secrets) }

    /// Adds an account, or changes the one of the same address.
    ///
    /// - Throws: `PhoneError` when a part of it cannot be used; `StoreError`, `LockError`; `MessagingError` when the core that
    ///   runs cannot do it; what the store of secrets throws
    public func set(_ account: GroupAccount) async throws {
        _ = try account.phoneAccount()
        // First the secret: a core that hears of the account has it.
        try await secrets.set(account.secretBytes(), of: account.address)
        try await store.setAccount(account.stored, in: group)
    }

    /// Removes an account.
    ///
    /// - Throws: as `set`
    public func remove(_ address: String) async throws {
        try await store.removeAccount(address: address, in: group)
        try await secrets.set(nil, of: address)
    }

    static func read(_ store: SharedStore, _ secrets: any SecretStore) async throws -> [GroupAccount] {
        var accounts: [GroupAccount] = []
        for stored in try await store.accounts() {
            accounts.append(try GroupAccount(stored, secret: await secrets.secret(of: stored.address)))
        }
        return accounts
    }
}
