internal import CallBasics
internal import CLinux
internal import GRDB
internal import Glibc
internal import LocalMessaging

/// The database file of a group: where it is, how it comes into being, and whether a file is one.
///
/// It appears under its name complete, written and flushed under another before. So an empty file of that name is never a store in
/// the making: it was cut.
struct DatabaseFile: Sendable {
    let directory: String
    var path: String { directory + "/" + Self.name }
    private static let name = "shared.sqlite"

    private static func directory(in group: GroupContainer) -> String { group.path + "/database" }

    /// Whether something of a store is there, whole or not: only where nothing is, opening would make one.
    static func exists(in group: GroupContainer) -> Bool {
        let path = directory(in: group) + "/" + name
        return ["", "-wal"].contains { suffix in access(path + suffix, F_OK) == 0 || errno != ENOENT }
    }

    /// The file of a group, in a subdirectory that is created when it is missing.
    init(group: GroupContainer) throws(StoreError) {
        directory = Self.directory(in: group)
        if mkdir(directory, 0o700) != 0, errno != EEXIST { throw error("Creating", directory, errno) }
        var status = stat()
        guard lstat(directory, &status) == 0 else { throw error("Opening", directory, errno) }
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            throw StoreError(
                .system,
                "\(directory) is not a directory of this user. Move it away, or choose another group."
            )
        }
        let fileSystem = linux_file_system_type(directory)
        guard fileSystem >= 0 else { throw error("Opening", directory, CInt(-fileSystem)) }
        if let name = Self.networkFileSystem(fileSystem) {
            throw StoreError(
                .networkFileSystem,
                "\(directory) is on \(name), a network file system, where SQLite's log in shared memory does not work. "
                    + "Choose a group directory on a local disk."
            )
        }
    }

    /// Creates an empty store of the present version when there is no file.
    func createIfMissing() throws(StoreError) {
        removeLeftovers()
        guard try byteCount(of: path) == nil else { return }
        if let logByteCount = try byteCount(of: path + "-wal"), logByteCount > 0 {
            throw .damaged(path, "the file is gone, its log is still there")
        }
        let process = ProcessIdentity.current
        let draft = "\(path).\(process.pid).\(process.startTime).\(UInt32.random(in: 0...(.max)))"
        do {
            // SQLite leaves no log behind when the last connection closes.
            let queue = try DatabaseQueue(path: draft)
            try queue.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA application_id = \(Schema.applicationID)")
                _ = try String.fetchOne(db, sql: "PRAGMA journal_mode = WAL")
                try db.execute(sql: "PRAGMA synchronous = FULL")
            }
            try Schema.migrator.migrate(queue)
            // Closing does it, too, and does not say when there is no room for it; the log is left behind.
            _ = try queue.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try queue.close()
        } catch {
            unlinkDraft(draft)
            throw StoreError(error, path: path)
        }
        defer { unlinkDraft(draft) }
        // Another process may have been faster: then its file is the store.
        FaultPoint.reached(.beforeCreate)
        let result = linux_rename_new(AT_FDCWD, draft, AT_FDCWD, path)
        guard result == 0 || result == -EEXIST else { throw error("Creating", path, -result) }
        FaultPoint.reached(.afterCreate)
        try flush(directory)
    }

    /// Refuses what is no store of this project, or one of a later version.
    ///
    /// Called before anything is written to it.
    func check(_ db: Database) throws {
        let byteCount = try byteCount(of: path) ?? 0
        guard byteCount >= Self.leastByteCount else { throw StoreError.damaged(path, "it has only \(byteCount) bytes") }
        let applicationID = try Int.fetchOne(db, sql: "PRAGMA application_id")
        guard applicationID == Schema.applicationID else {
            throw StoreError(
                .foreign(version: 0),
                "\(path) is a database of another program. Move it away, or choose another group."
            )
        }
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        guard version <= Schema.version else {
            throw StoreError(
                .foreign(version: version),
                "\(path) has version \(version), this program knows versions up to \(Schema.version). Use the later program."
            )
        }
        try checkPages(db)
    }

    /// Refuses a file that was cut: SQLite would read zeros where a page or its end is missing.
    ///
    /// What the file lacks must be in the log, which holds the pages that were written since they were last copied to the file.
    private func checkPages(_ db: Database) throws {
        let pageByteCount = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 4096
        let pageCount = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
        var byteCount = try byteCount(of: path) ?? 0
        while byteCount < pageCount * pageByteCount {
            let missing = (byteCount / pageByteCount + 1)...pageCount
            if WriteAheadLog.pages(path + "-wal").isSuperset(of: missing) { return }
            // They may have been copied to the file just now.
            let present = try self.byteCount(of: path) ?? 0
            guard present > byteCount else {
                throw StoreError.damaged(path, "it ends after \(byteCount) of \(pageCount * pageByteCount) bytes")
            }
            byteCount = present
        }
    }

    /// Drafts of processes that died while they wrote one.
    private func removeLeftovers() {
        guard let listing = opendir(directory) else { return }
        defer { closedir(listing) }
        while let entry = readdir(listing) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            let parts = name.split(separator: ".")
            guard parts.count == 5, name.hasPrefix("shared.sqlite."), let pid = pid_t(parts[2]),
                let start = UInt64(parts[3]),
                !ProcessIdentity(pid: pid, startTime: start).isAlive
            else { continue }
            unlink(directory + "/" + name)
        }
    }

    private func unlinkDraft(_ draft: String) {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(draft + suffix) }
    }

    private func flush(_ directory: String) throws(StoreError) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw error("Opening", directory, errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw error("Flushing", directory, errno) }
    }

    /// The size of a file, nil when there is none.
    ///
    /// Never by opening it: closing it again would drop SQLite's own locks.
    private func byteCount(of path: String) throws(StoreError) -> Int? {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw error("Opening", path, errno)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StoreError(
                .foreign(version: 0),
                "\(path) is not a plain file. Move it away, or choose another group."
            )
        }
        return Int(status.st_size)
    }

    private func error(_ what: String, _ path: String, _ code: CInt) -> StoreError {
        let reason = String(cString: strerror(code))
        switch code {
        case EROFS, EACCES, EPERM: return .readOnly(self.path, "\(what) \(path): \(reason)")
        case ENOSPC, EDQUOT: return .full(self.path, "\(what) \(path): \(reason)")
        default: return StoreError(.system, "\(what) \(path) failed: \(reason).")
        }
    }

    /// The smallest page of SQLite: no database is smaller.
    private static var leastByteCount: Int { 512 }

    /// The name of a network file system, by its number.
    ///
    /// Source: statfs(2), linux/magic.h.
    static func networkFileSystem(_ type: Int) -> String? {
        switch type {
        case 0x6969: "NFS"
        case 0xFF53_4D42: "CIFS"
        case 0xFE53_4D42: "SMB2"
        case 0x517B: "SMB"
        case 0x00C3_6400: "Ceph"
        case 0x5346_414F, 0x6B41_4653: "AFS"
        case 0x7375_7245: "Coda"
        case 0x0102_1997: "9P"
        case 0x0BD0_0BD0: "Lustre"
        case 0x0116_1970: "GFS2"
        case 0x7461_636F: "OCFS2"
        default: nil
        }
    }
}
