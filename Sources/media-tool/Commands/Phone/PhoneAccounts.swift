import CallCore
internal import FoundationEssentials
internal import Glibc

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
        var status = stat()
        let isOpen = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o077 != 0
        let bytes = try TextFile.read(path, limit: 1 << 20)
        guard let entries = try? JSONDecoder().decode([Entry].self, from: Data(bytes)) else {
            throw ToolFailure("\(file) lists no accounts. Write [{\"address\": \"sip:alice@example.org\"}].")
        }
        if isOpen, entries.contains(where: { $0.password != nil }) {
            throw ToolFailure("Others may read \(file), which has passwords. Say: chmod 600 \(file)")
        }
        return try entries.map { entry in
            do throws(PhoneError) {
                var account = try PhoneAccount(entry.address, userName: entry.user, password: entry.password)
                (account.registrar, account.displayName) = (entry.registrar, entry.name)
                account.proxies = entry.proxies ?? []
                if let expires = entry.expires { account.expires = min(max(expires, 60), 86_400) }
                return account
            } catch {
                throw ToolFailure("\(file): \(error.message)")
            }
        }
    }
}
