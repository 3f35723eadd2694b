public import LocalMessaging
internal import SharedCore

/// The accounts of a group: what is known to all in its store, what is secret apart from that.
///
/// They are written by whoever owns the store: with a core running that does it, and uses them at once.
/// Thread: any.
public struct GroupAccounts: Sendable {
    private let group: GroupContainer
    private let secrets: SecretStores
    private let store: SharedStore

    /// The accounts of a group, with their secrets in files of it.
    ///
    /// - Throws: `StoreError`, `GroupError` when the group cannot be used
    public init(group: GroupContainer) throws {
        try self.init(group: group, secrets: SecretFiles(group: group))
    }

    /// The accounts of a group whose secrets are somewhere else.
    ///
    /// - Parameters:
    ///   - group: The group.
    ///   - secrets: Where the secrets are of accounts that name no other place.
    ///   - otherSecrets: The other places, by the names that accounts have for them (`GroupAccount.secretStore`).
    /// - Throws: `StoreError`
    public init(
        group: GroupContainer,
        secrets: any SecretStore,
        otherSecrets: [String: any SecretStore] = [:]
    ) throws {
        self.secrets = SecretStores(usual: secrets, others: otherSecrets)
        (self.group, store) = (group, try SharedStore(group: group))
    }

    /// All of them, ordered by address.
    ///
    /// - Throws: `StoreError`; `SecretError`, and what the store of secrets throws
    public func all() async throws -> [GroupAccount] {
        var accounts: [GroupAccount] = []
        for account in try await withoutSecrets() { accounts.append(try await secrets.complete(account)) }
        return accounts
    }

    /// All of them without what is secret, ordered by address: no store of secrets is asked.
    ///
    /// - Throws: `StoreError`
    public func withoutSecrets() async throws -> [GroupAccount] { try await store.accounts().map { GroupAccount($0) } }

    /// The account of an address; nil when there is none.
    ///
    /// - Throws: as `all`
    public func account(_ address: String) async throws -> GroupAccount? {
        guard let account = try await known(address) else { return nil }
        return try await secrets.complete(account)
    }

    /// Adds an account, or changes the one of the same address.
    ///
    /// - Throws: `PhoneError` when a part of it cannot be used; `StoreError`, `LockError`; `MessagingError` when the core that
    ///   runs cannot do it; `SecretError`, and what the store of secrets throws
    public func set(_ account: GroupAccount) async throws {
        _ = try account.phoneAccount()
        let former = try await known(account.address)
        // First the secret: a core that hears of the account has it.
        try await secrets.store(of: account).set(account.secretBytes(), of: account.address)
        try await store.setAccount(account.stored, in: group)
        if let former, former.secretStore != account.secretStore {
            try await secrets.store(of: former).set(nil, of: account.address)
        }
    }

    /// Removes an account.
    ///
    /// - Throws: as `set`; where its secret cannot be forgotten the account stays
    public func remove(_ address: String) async throws {
        // First the secret: what no account names nobody would find to forget.
        let account = try await known(address) ?? GroupAccount(address)
        try await secrets.store(of: account).set(nil, of: address)
        try await store.removeAccount(address: address, in: group)
    }

    private func known(_ address: String) async throws -> GroupAccount? {
        try await withoutSecrets().first { $0.address == address }
    }
}
