internal import CLinux
public import Glibc

/// A process, told from a later one of the same number by the time at which it started.
///
/// A process number alone is given again to another process; together with the start time, and within one boot of the
/// machine, it names one process for ever.
///
/// Source: proc(5), /proc/PID/stat, fields 1 and 22; pidfd_open(2).
public struct ProcessIdentity: Hashable, Codable, Sendable {
    /// The process number.
    public let pid: pid_t
    /// When the process started.
    ///
    /// Units: clock ticks since boot.
    public let startTime: UInt64

    /// An identity read elsewhere: from the lock file, or from the store.
    package init(pid: pid_t, startTime: UInt64) {
        self.pid = pid
        self.startTime = startTime
    }

    /// The identity of a process that exists; nil when there is none of that number.
    package init?(pid: pid_t) {
        guard pid > 0, let startTime = Self.startTime(of: pid) else { return nil }
        self.init(pid: pid, startTime: startTime)
    }

    /// This process.
    public static let current = ProcessIdentity(pid: getpid()) ?? ProcessIdentity(pid: getpid(), startTime: 0)

    /// Whether the process still runs.
    ///
    /// One that has ended but has not been waited for is dead: it holds no lock and will show nothing. So is one whose number a
    /// thread has by now. Where the system cannot tell, as for want of descriptors, the process counts as alive, so that nobody
    /// takes over what it may still do.
    package var isAlive: Bool {
        guard pid > 0, kill(pid, 0) == 0 || errno == EPERM else { return false }
        let descriptor = linux_pidfd_open(pid)
        // The number of a thread is ENOENT, and EINVAL to earlier kernels; kill(2) takes it.
        guard descriptor >= 0 else { return ![-ESRCH, -ENOENT, -EINVAL].contains(descriptor) }
        defer { close(descriptor) }
        if let startTime = Self.startTime(of: pid), startTime != self.startTime { return false }
        return !Self.hasEnded(descriptor)
    }

    /// Sends a signal to this very process, never to a later one of its number.
    ///
    /// Returns: whether the process was there to receive it.
    @discardableResult
    package func signal(_ signal: CInt) -> Bool {
        guard pid > 0 else { return false }
        let descriptor = linux_pidfd_open(pid)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        // The descriptor was opened first: if the start time is right now, the descriptor is of that process.
        guard Self.startTime(of: pid) == startTime else { return false }
        return linux_pidfd_send_signal(descriptor, signal) == 0
    }

    /// A descriptor of a process is readable once all of its threads have ended.
    private static func hasEnded(_ descriptor: CInt) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&request, 1, 0) == 1
    }

    private static func startTime(of pid: pid_t) -> UInt64? {
        let descriptor = open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = read(descriptor, &bytes, bytes.count)
        return count > 0 ? startTime(parsing: bytes.prefix(count)) : nil
    }

    /// The 22nd field.
    ///
    /// The second is a name in parentheses that may itself hold spaces and parentheses, so the fields
    /// are counted from the last of them: the third comes next.
    static func startTime(parsing stat: some BidirectionalCollection<UInt8>) -> UInt64? {
        guard let end = stat.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: UInt8(ascii: " "))
        guard fields.count > 19 else { return nil }
        return UInt64(String(decoding: fields[19], as: UTF8.self))
    }
}

extension ProcessIdentity: CustomStringConvertible {
    /// The process number and the start time.
    public var description: String { "process \(pid) (started at tick \(startTime))" }
}
