internal import CallBasics
internal import FoundationEssentials
internal import Glibc
public import LocalMessaging

/// Why a secret cannot be read or kept; the message names the remedy.
public typealias SecretError = Failure<SecretFault>

/// What is wrong with a secret, or its place.
public enum SecretFault: Hashable, Sendable {
    /// Others may read it.
    case open
    /// The name is too long, or the secret is; or what is kept is no secret.
    case invalid
    /// It is locked, and nobody has unlocked it.
    case locked
    /// Its place is not there, or makes no sense.
    case unavailable
    /// The system refused.
    case system
}

/// Secrets in files of a group that only their owner may read.
///
///     secrets/7369703a...        0600; the name in hexadecimal digits
///
/// A file is replaced as a whole, and is on the disk when that returns. One that others may read is not used.
/// Thread: any; it blocks for some milliseconds.
public struct SecretFiles: SecretStore {
    private static let longest = 64 << 10
    /// How long a file may be written at most.
    private static let draftSeconds = 60
    private let folder: String

    /// The secrets of a group.
    ///
    /// - Throws: `GroupError` when it has no place for them
    public init(group: GroupContainer) throws(GroupError) {
        folder = try group.subdirectory("secrets")
        removeDrafts()
    }

    /// Removes what processes have left that ended while they wrote.
    private func removeDrafts() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] where name.hasPrefix(".draft-")
        {
            let path = "\(folder)/\(name)"
            var status = stat()
            guard lstat(path, &status) == 0, time(nil) - status.st_mtim.tv_sec > Self.draftSeconds else { continue }
            unlink(path)
        }
    }

    /// The secret of a name; nil where there is none.
    ///
    /// - Throws: `SecretError`
    public func secret(of name: String) async throws -> [UInt8]? {
        let path = try path(of: name)
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw Self.failure("Opening", path)
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw Self.failure("Looking at", path) }
        guard status.st_mode & 0o077 == 0, status.st_uid == geteuid() else {
            throw SecretError(.open, "Others may read \(path), so it is not used. Say: chmod 600 '\(path)'")
        }
        guard status.st_size <= Self.longest else {
            throw SecretError(.invalid, "\(path) has \(status.st_size) bytes and is no secret. Remove it.")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let length = bytes[count...].withUnsafeMutableBytes { read(file, $0.baseAddress, $0.count) }
            if length < 0, errno == EINTR { continue }
            guard length >= 0 else { throw Self.failure("Reading", path) }
            guard length > 0 else { break }
            count += length
        }
        return Array(bytes.prefix(count))
    }

    /// Keeps the secret of a name; nil forgets it.
    ///
    /// - Throws: `SecretError`; then it is what it was, or, where only the folder could not be brought to the disk, already the new one
    public func set(_ secret: [UInt8]?, of name: String) async throws {
        let path = try path(of: name)
        guard let secret else {
            guard unlink(path) == 0 || errno == ENOENT else { throw Self.failure("Removing", path) }
            return
        }
        guard secret.count <= Self.longest else {
            throw SecretError(.invalid, "A secret has \(Self.longest) bytes at most, not \(secret.count).")
        }
        let draft = "\(folder)/.draft-\(getpid())-\(UInt64.random(in: .min ... .max))"
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw Self.failure("Making", draft) }
        do {
            defer { close(file) }
            try Self.write(secret, to: file, draft)
            guard fsync(file) == 0 else { throw Self.failure("Writing", draft) }
            guard rename(draft, path) == 0 else { throw Self.failure("Making", path) }
        } catch {
            unlink(draft)
            throw error
        }
        let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw Self.failure("Opening", folder) }
        defer { close(directory) }
        guard fsync(directory) == 0 else { throw Self.failure("Writing", folder) }
    }

    private static func write(_ bytes: [UInt8], to file: CInt, _ path: String) throws(SecretError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("Writing", path) }
            rest = rest.dropFirst(count)
        }
    }

    private func path(of name: String) throws(SecretError) -> String {
        let digits = name.utf8.map { byte in
            let text = String(byte, radix: 16)
            return text.utf8.count == 1 ? "0\(text)" : text
        }
        guard !digits.isEmpty, digits.count * 2 <= Int(NAME_MAX) else {
            throw SecretError(.invalid, "A name of \(digits.count) bytes fits no file; \(NAME_MAX / 2) are the most.")
        }
        return "\(folder)/\(digits.joined())"
    }

    private static func failure(_ what: String, _ path: String) -> SecretError {
        SecretError(.system, "\(what) \(path) failed: \(String(cString: strerror(errno))).")
    }
}
