import CallCore
internal import FoundationEssentials

/// The accounts of `media-tool phone`, from a file.
///
/// Shape: `[{"address": "sip:alice@example.org", "user": "alice", "password": "...", "registrar": "sip:192.0.2.1",
/// "proxies": ["sip:192.0.2.1;lr"], "name": "Alice", "expires": 3600}]`; only the address has to be there.
enum PhoneAccounts {
    private struct Entry: Decodable {
        var address: String
        var user: String?
        var password: String?
        var registrar: String?
        var proxies: [String]?
        var name: String?
        var expires: UInt32?
    }

    /// - Throws: `ToolFailure` when it cannot be read, says something else, or others may read its passwords
    static func read(_ file: String) throws -> [PhoneAccount] {
        let path = InputPath.path(of: file)
        let bytes = try TextFile.read(path, limit: 1 << 20)
        guard let entries = try? JSONDecoder().decode([Entry].self, from: Data(bytes)) else {
            throw ToolFailure("\(file) lists no accounts. Write [{\"address\": \"sip:alice@example.org\"}].")
        }
        if entries.contains(where: { $0.password != nil }), SecretFile.isOpen(path) { throw SecretFile.failure(file) }
        if let wrong = entries.first(where: { !(60...86_400).contains($0.expires ?? 3600) }) {
            throw ToolFailure("\(file): \(wrong.address) cannot be registered for so long. Give expires 60 to 86400.")
        }
        return try entries.map { entry in
            do throws(PhoneError) {
                var account = try PhoneAccount(entry.address, userName: entry.user, password: entry.password)
                (account.registrar, account.displayName) = (entry.registrar, entry.name)
                account.proxies = entry.proxies ?? []
                if let expires = entry.expires { account.expires = expires }
                return account
            } catch {
                throw ToolFailure("\(file): \(error.message)")
            }
        }
    }
}
