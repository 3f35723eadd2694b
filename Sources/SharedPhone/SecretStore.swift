/// Where the secrets of a group are, such as the passwords of its accounts: never in its store, and in no output.
public protocol SecretStore: Sendable {
    /// The secret of a name; nil where there is none.
    func secret(of name: String) async throws -> [UInt8]?

    /// Keeps the secret of a name, in place of what it was; nil forgets it.
    func set(_ secret: [UInt8]?, of name: String) async throws
}
