import SharedPhone

/// Secrets that are kept as long as the test lasts.
actor KeptSecrets: SecretStore {
    static let locked = SecretError(.locked, "It is locked. Unlock it.")

    private var secrets: [String: [UInt8]] = [:]
    private var isLocked = false

    var names: [String] { secrets.keys.sorted() }

    func lock(_ isLocked: Bool) { self.isLocked = isLocked }

    func secret(of name: String) throws -> [UInt8]? {
        guard !isLocked else { throw Self.locked }
        return secrets[name]
    }

    func set(_ secret: [UInt8]?, of name: String) throws {
        guard !isLocked else { throw Self.locked }
        secrets[name] = secret
    }
}
