internal import CallBasics

/// The stores that the accounts of a group have their secrets in: the usual one, and those that accounts name.
struct SecretStores: Sendable {
    let usual: any SecretStore
    var others: [String: any SecretStore] = [:]

    /// Where an account has its secrets.
    ///
    /// - Throws: `SecretError` when it names a store that is none of these
    func store(of account: GroupAccount) throws(SecretError) -> any SecretStore {
        guard let name = account.secretStore else { return usual }
        guard let store = others[name] else {
            throw SecretError(
                .unavailable,
                "\(account.address) has its secrets in the store \(name), which this program does not know. Set them anew."
            )
        }
        return store
    }

    /// The account with its secrets.
    ///
    /// - Throws: `SecretError`; what the store throws
    func complete(_ account: GroupAccount) async throws -> GroupAccount {
        var account = account
        try account.add(secret: await store(of: account).secret(of: account.address))
        return account
    }
}
