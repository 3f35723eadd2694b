internal import CallBasics
import CLinux
import Glibc

/// The lock beside a server's socket, held as long as the server lives and released by the kernel when it dies.
///
/// A socket file says nothing of its server: it stays when the process is killed. The lock does, so a stale socket is
/// replaced and a live one is never taken away. The file's content names the holder to people.
struct ServerLock: Sendable {
    private let file: OpenFile

    /// Takes the lock of the server called `name`.
    ///
    /// - Throws: `ServerFault.taken` when a live server has it.
    init(of name: String, in group: GroupContainer) throws(ServerError) {
        let descriptor = openat(
            group.descriptor,
            Self.fileName(of: name),
            O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
            0o600
        )
        guard descriptor >= 0 else {
            throw ServerError(
                .system,
                "The lock of \(name) in \(group.path) cannot be opened: \(String(cString: strerror(errno)))."
            )
        }
        file = OpenFile(owning: descriptor)
        let code = linux_lock_byte(descriptor, 0)
        guard code == 0 else {
            guard code == -EAGAIN else {
                throw ServerError(
                    .system,
                    "Locking \(name) in \(group.path) failed: \(String(cString: strerror(-code)))."
                )
            }
            let holder = Self.holder(descriptor).map { " by process \($0)" } ?? ""
            throw ServerError(
                .taken,
                "\(name) in \(group.path) is served\(holder) already. Connect to it, or choose another name."
            )
        }
        let text = Array("\(getpid())\n".utf8)
        ftruncate(descriptor, 0)
        pwrite(descriptor, text, text.count, 0)
    }

    /// Whether a live server has the name, and the process that it says it is.
    static func state(of name: String, in group: GroupContainer) -> (isLive: Bool, process: pid_t?) {
        let descriptor = openat(group.descriptor, fileName(of: name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return (false, nil) }
        defer { close(descriptor) }
        let isLive = linux_is_byte_locked(descriptor, 0) == 1
        return (isLive, isLive ? holder(descriptor) : nil)
    }

    /// Gives the name free; so does the death of the process.
    func release() {
        _ = linux_unlock_byte(file.descriptor, 0)
    }

    private static func holder(_ descriptor: CInt) -> pid_t? {
        withUnsafeTemporaryAllocation(byteCount: 16, alignment: 1) { bytes in
            let count = pread(descriptor, bytes.baseAddress, bytes.count, 0)
            guard count > 0 else { return nil }
            return pid_t(String(decoding: bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
        }
    }

    private static func fileName(of name: String) -> String { ".\(name).lock" }
}
