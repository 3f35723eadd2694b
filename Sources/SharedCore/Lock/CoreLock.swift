internal import CallBasics
internal import CLinux
internal import Glibc
public import LocalMessaging
internal import Synchronization

/// The lock of a group: three bytes of one file, each held by one core at a time.
///
///     core.lock   byte 0  WRITER  the core that runs; its holder alone writes what only an owner may write
///                 byte 1  MAIN    a main core runs or wants to; no executor starts while it is held
///                 byte 2  CALLS   a core for calls runs or wants to; no executor starts while it is held
///
/// These are open-file-description locks: the kernel gives them up when the last descriptor of the open file is closed, so the
/// death of a process releases them at once and no time stamp has to be trusted. Two objects exclude each other
/// in one process as they do in two.
///
/// A process that is stopped (SIGSTOP) keeps its lock; only its death, or its own release, ends it.
///
/// Thread: control; every method may be called from any thread. None blocks but `wait`, which suspends.
/// Source: fcntl(2), "Open file description locks".
public final class CoreLock: Sendable {
    /// A byte of the lock file.
    public enum Byte: Int, Hashable, Sendable, CaseIterable {
        /// Held by the core that runs.
        case writer = 0
        /// Held by a main core that runs or wants to.
        case main = 1
        /// Held by a core for calls that runs or wants to.
        case calls = 2
    }

    private enum Use { case waiting, held }

    private static let name = "core.lock"

    /// The lock file.
    package let path: String
    private let descriptor: CInt
    private let uses = Mutex<[Byte: Use]>([:])

    /// Opens the lock file of a group, and creates it when it is missing.
    ///
    /// Nothing is locked yet.
    ///
    /// Throws: `readOnly` when it may not be written, `foreign` when the name is taken by something else.
    public init(group: GroupContainer) throws(LockError) {
        let path = group.path + "/" + Self.name
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let descriptor = openat(group.descriptor, Self.name, flags, 0o600)
        guard descriptor >= 0 else { throw LockError("Opening", path: path, errno: errno) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else {
            close(descriptor)
            throw LockError(
                .foreign,
                "\(path) is not a plain file of this user. Move it away, or choose another group."
            )
        }
        self.path = path
        self.descriptor = descriptor
    }

    /// Whether something has the name of the group's lock file; none is made.
    package static func exists(in group: GroupContainer) -> Bool {
        faccessat(group.descriptor, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT
    }

    deinit {
        close(descriptor)
    }

    /// Takes a byte if nobody has it: false when another core, or this one, holds it.
    package func tryLock(_ byte: Byte) throws(LockError) -> Bool {
        let result = uses.withLock { uses -> CInt in
            guard uses[byte] == nil else { return -EAGAIN }
            let result = linux_lock_byte(descriptor, off_t(byte.rawValue))
            if result == 0 { uses[byte] = .held }
            return result
        }
        if result == -EAGAIN { return false }
        guard result == 0 else { throw LockError("Locking", path: path, errno: -result) }
        try checkTaken(byte)
        return true
    }

    /// Waits until the byte is this core's.
    ///
    /// A thread of its own sleeps in the kernel, which hands the lock over as soon as its holder lets go or dies. When the
    /// task is cancelled that thread ends, and gives back a lock that came at the same moment: a wait that has thrown
    /// neither holds the byte nor will. One whose lock came before the cancellation returns with it.
    ///
    /// Throws: `CancellationError`; `LockError` with `inUse` when this object already holds the byte or waits for it.
    public func wait(for byte: Byte) async throws {
        let isFree = uses.withLock { uses in
            guard uses[byte] == nil else { return false }
            uses[byte] = .waiting
            return true
        }
        guard isFree else {
            throw LockError(.inUse, "This core already holds the byte \(byte) of \(path), or waits for it.")
        }
        let result = await waited(for: byte)
        uses.withLock { $0[byte] = (try? result.get()) == nil ? nil : .held }
        try result.get()
        try checkTaken(byte)
    }

    private func waited(for byte: Byte) async -> LockWait.Outcome {
        let wait = LockWait(for: byte, of: self, descriptor: descriptor)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { wait.start(resuming: $0) }
        } onCancel: {
            wait.cancel()
        }
    }

    /// Lets go of a byte; nothing happens when this core does not hold it.
    ///
    /// Letting go of WRITER first erases the owner's record.
    package func unlock(_ byte: Byte) {
        uses.withLock { uses in
            guard uses[byte] == .held else { return }
            if byte == .writer { erase() }
            FaultPoint.reached(.beforeUnlock)
            // Unlocking a byte that is held cannot fail: nothing is allocated and nothing is written.
            _ = linux_unlock_byte(descriptor, off_t(byte.rawValue))
            uses[byte] = nil
        }
        FaultPoint.reached(.afterUnlock)
    }

    /// Whether this core holds the byte.
    package func holds(_ byte: Byte) -> Bool {
        uses.withLock { $0[byte] == .held }
    }

    /// Whether another core holds the byte at this moment, in this process or another.
    package func isHeldElsewhere(_ byte: Byte) throws(LockError) -> Bool {
        let result = linux_is_byte_locked(descriptor, off_t(byte.rawValue))
        guard result >= 0 else { throw LockError("Asking for the locks of", path: path, errno: -result) }
        return result == 1
    }

    /// Whether a core that has priority over executors runs elsewhere, or wants to.
    package func isReservedElsewhere() throws(LockError) -> Bool {
        if try isHeldElsewhere(.main) { return true }
        return try isHeldElsewhere(.calls)
    }

    /// A lock on a file that nobody else can open by its name excludes nobody.
    private func checkTaken(_ byte: Byte) throws(LockError) {
        switch byte {
        case .writer: FaultPoint.reached(.afterWriterLock)
        case .main: FaultPoint.reached(.afterMainLock)
        case .calls: FaultPoint.reached(.afterCallsLock)
        }
        var opened = stat()
        var named = stat()
        if fstat(descriptor, &opened) == 0, lstat(path, &named) == 0,
            opened.st_ino == named.st_ino, opened.st_dev == named.st_dev
        {
            return
        }
        unlock(byte)
        throw LockError(.replaced, "\(path) was removed or replaced after it had been opened. Open the group again.")
    }
}

// MARK: - The owner's record

extension CoreLock {
    /// Tells everybody who owns the core.
    ///
    /// Throws: `inUse` when this core does not hold WRITER; `system` when the disk is full.
    package func write(_ record: OwnerRecord) throws(LockError) {
        guard holds(.writer) else {
            throw LockError(
                .inUse,
                "Only the holder of WRITER names itself the owner in \(path). Take that byte first."
            )
        }
        guard let bytes = try? record.serialize() else {
            throw LockError(.system, "The owner's record for \(path) cannot be encoded.")
        }
        guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count else {
            throw LockError("Writing", path: path, errno: errno)
        }
    }

    /// Who owns the core, as far as can be read: nil when nobody holds WRITER, or its holder has not yet said who it is.
    public func owner() throws(LockError) -> OwnerRecord? {
        if !holds(.writer), try !isHeldElsewhere(.writer) { return nil }
        // It may be half written at this moment.
        guard let record = OwnerRecord(parsing: content()) ?? OwnerRecord(parsing: content()), record.process.isAlive
        else { return nil }
        return record
    }

    private func content() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: OwnerRecord.byteCount) { buffer, count in
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
    }

    private func erase() {
        let spaces = [UInt8](repeating: UInt8(ascii: " "), count: OwnerRecord.byteCount)
        // What a failed erasure leaves behind names a process that no longer holds WRITER, which `owner` finds out.
        _ = pwrite(descriptor, spaces, spaces.count, 0)
    }
}
