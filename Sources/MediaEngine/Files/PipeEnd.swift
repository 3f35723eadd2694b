import CallBasics
import Glibc
import Synchronization

/// The writing end of a pipe or a terminal, whose reader may be slow, may have stopped, or may have gone.
///
/// While sound goes on, a full pipe is waited for as long as it takes. Once the file is to be closed, it is given up when
/// nothing has been read for 2 s, and after 5 s in any case.
/// Thread: `hurry` any; the rest whoever writes.
final class PipeEnd: Sendable {
    private let closingTime = Atomic(Int64.max)

    /// How often a writer looks whether it is to hurry, in milliseconds.
    private static var interval: Int32 { 100 }
    /// How long nothing may be read, and how long closing may take in all.
    private static var patience: Int64 { 2_000_000_000 }
    private static var longestClosing: Int64 { 5_000_000_000 }

    /// The end of a pipe that is open as `descriptor`; nil for what never waits for a reader.
    ///
    /// Writes that find no room fail from now on, with EAGAIN.
    init?(_ descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        guard status.st_mode & S_IFMT == S_IFIFO || isatty(descriptor) == 1 else { return nil }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    /// Waits no longer than need be from now on: the file is to be closed.
    func hurry() {
        _ = closingTime.compareExchange(expected: .max, desired: Self.now, ordering: .acquiringAndReleasing)
    }

    /// Waits until `descriptor` takes bytes; answers false when its reader seems to have stopped, and the file is to be closed.
    private func waitForRoom(_ descriptor: Int32) -> Bool {
        let start = Self.now
        while true {
            let (now, closing) = (Self.now, closingTime.load(ordering: .acquiring))
            if closing < .max, now - max(start, closing) >= Self.patience || now - closing >= Self.longestClosing {
                return false
            }
            var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            if poll(&state, 1, Self.interval) > 0 { return true }
        }
    }

    /// As `write` of the system, but a reader that has gone is EPIPE and no signal, which would end the process.
    private func put(_ bytes: UnsafeRawBufferPointer, into descriptor: Int32) -> Int {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        var (pending, former) = (sigset_t(), sigset_t())
        sigpending(&pending)
        pthread_sigmask(SIG_BLOCK, &signals, &former)
        let count = Glibc.write(descriptor, bytes.baseAddress, bytes.count)
        let reason = errno
        if count < 0, reason == EPIPE, sigismember(&pending, SIGPIPE) == 0 {
            var none = timespec()
            while sigtimedwait(&signals, nil, &none) < 0, errno == EINTR {}
        }
        pthread_sigmask(SIG_SETMASK, &former, nil)
        errno = reason
        return count
    }

    private static var now: Int64 { MonotonicClock.current.nanoseconds }

    // MARK: Writing

    /// Why bytes did not get where they should.
    enum Failure: Error {
        /// The reader of a full pipe has stopped, and the file is to be closed.
        case givenUp
        /// What the system says.
        case system(errno: Int32)

        /// What happened to the file of that name, and what to do.
        func message(_ name: String) -> String {
            switch self {
            case .givenUp: "Nobody reads \(name), which is full. Let its reader go on, or write to a file."
            case .system(EPIPE): "The reader of \(name) has gone. Start it again, or write to a file."
            case .system(let code):
                "Writing \(name) failed: \(String(cString: strerror(code))). Free space on its disk, or write elsewhere."
            }
        }
    }

    /// Writes all of `bytes`; `pipe` is what `descriptor` is open on, unless that never waits for a reader.
    static func write(
        _ bytes: UnsafeRawBufferPointer,
        to descriptor: Int32,
        _ pipe: PipeEnd?
    ) throws(Failure) {
        var rest = bytes
        while !rest.isEmpty {
            let count = pipe?.put(rest, into: descriptor) ?? Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count >= 0 {
                rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
                continue
            }
            let code = errno
            if code == EINTR { continue }
            guard code == EAGAIN, let pipe else { throw .system(errno: code) }
            guard pipe.waitForRoom(descriptor) else { throw .givenUp }
        }
    }
}
