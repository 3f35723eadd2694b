import CLinux
import Glibc

/// Who is at the other end, as the kernel says (unix(7), SO_PEERCRED), never as the peer says.
public struct PeerIdentity: Sendable, CustomStringConvertible {
    /// The process that connected, or that listens.
    public let process: Int32
    /// Its effective user.
    public let user: UInt32
    /// Its effective group.
    public let group: UInt32
    /// The file that it runs; nil when it has ended, or is not ours to look at.
    public let executable: String?
    /// Stays with that process even when its number is given to another.
    private let handle: OpenFile?

    /// The identity behind credentials of a socket, and the peer's pidfd (SO_PEERPIDFD) when the kernel gave one.
    init(process: pid_t, user: uid_t, group: gid_t, processDescriptor: OpenFile?) {
        self.process = process
        self.user = user
        self.group = group
        handle = processDescriptor ?? Self.handle(of: process)
        let link = Self.executable(of: process)
        // Read while the process lived, the link was its own.
        executable = handle.map { Self.hasEnded($0) } == false ? link : nil
    }

    /// This process.
    public static var current: PeerIdentity {
        PeerIdentity(process: getpid(), user: geteuid(), group: getegid(), processDescriptor: nil)
    }

    /// Whether the process has ended; true also when it cannot be watched.
    package var hasEnded: Bool { handle.map(Self.hasEnded) ?? true }

    /// Sends a signal to that very process (pidfd_send_signal(2)).
    ///
    /// - Throws: `ProcessError` when it has ended, or may not be signalled.
    package func signal(_ number: CInt) throws(ProcessError) {
        guard let handle else { throw ProcessError(process: process, errno: ESRCH) }
        let code = linux_pidfd_send_signal(handle.descriptor, number)
        guard code == 0 else { throw ProcessError(process: process, errno: -code) }
    }

    /// Such as "process 812 (/usr/bin/softphone) of user 1000".
    public var description: String { "process \(process) (\(executable ?? "unknown")) of user \(user)" }

    private static func handle(of process: pid_t) -> OpenFile? {
        let descriptor = linux_pidfd_open(process)
        return descriptor >= 0 ? OpenFile(owning: descriptor) : nil
    }

    private static func hasEnded(_ handle: OpenFile) -> Bool {
        var entry = pollfd(fd: handle.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) != 0
    }

    private static func executable(of process: pid_t) -> String? {
        withUnsafeTemporaryAllocation(byteCount: Int(PATH_MAX), alignment: 1) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = readlink("/proc/\(process)/exe", start.assumingMemoryBound(to: CChar.self), buffer.count)
            guard count > 0 else { return nil }
            return String(decoding: UnsafeRawBufferPointer(rebasing: buffer[..<count]), as: UTF8.self)
        }
    }
}

/// Why a process was not signalled.
package struct ProcessError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What failed.
    package let message: String

    init(process: pid_t, errno code: CInt) {
        message = "Process \(process) could not be signalled: \(String(cString: strerror(code)))."
    }

    /// The message.
    package var description: String { message }
}
