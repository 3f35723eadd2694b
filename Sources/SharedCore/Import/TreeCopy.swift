internal import CallBasics
internal import CLinux
internal import Glibc

/// Copies the files below a directory into one of the group.
///
/// Every name is opened relative to the open directory that holds it, and links are never followed, so nothing leads out of the
/// two trees even when somebody changes them meanwhile. A file is written in the group's staging directory first:
///
///     .import/PID.START.NUMBER   written, flushed   →   data/photos/1.jpg   only if nothing has that name
final class TreeCopy {
    private let group: OpenDirectory
    private let staging: OpenDirectory
    private var draftCount = 0
    private var report = GroupImport.Report()
    /// Directories of the group whose names are on the disk, those of an earlier run that was killed among them.
    private(set) var flushed: [String] = []

    init(group path: String) throws(StoreError) {
        guard let group = OpenDirectory(path) else { throw .import("Opening", path, errno) }
        self.group = group
        staging = try group.subdirectory(".import", creating: ".import")
        removeLeftovers()
    }

    func copy(_ part: GroupImport.Part, from path: String) throws(StoreError) -> GroupImport.Report {
        guard let source = OpenDirectory(path) else {
            switch errno {
            case ENOENT: skip(part.rawValue, .missing)
            case ELOOP, ENOTDIR: skip(part.rawValue, Self.isLink(path) ? .symbolicLink : .specialFile)
            case EACCES, EPERM: skip(part.rawValue, .notPermitted)
            default: throw .import("Opening", path, errno)
            }
            return report
        }
        try copyEntries(of: source, path: part.rawValue, depth: 0) { () throws(StoreError) in
            try self.group.subdirectory(part.rawValue, creating: part.rawValue)
        }
        try flush(group, ".")
        return report
    }

    /// Copies what a directory holds.
    ///
    /// Its counterpart is only opened, and created, for the first thing that goes there.
    private func copyEntries(
        of source: OpenDirectory,
        path: String,
        depth: Int,
        into openDestination: () throws(StoreError) -> OpenDirectory
    ) throws(StoreError) {
        if source.isSame(as: group) {
            skip(path, .isGroup)
            return
        }
        guard depth < Self.mostDepth else {
            skip(path, .tooDeep)
            return
        }
        let destination = try openDestination()
        for name in try source.names() {
            let path = path + "/" + String(decoding: name.lazy.map(UInt8.init(bitPattern:)).dropLast(), as: UTF8.self)
            var status = stat()
            // Gone since it was listed: as if it had never been there.
            guard fstatat(source.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFDIR:
                guard let directory = OpenDirectory(name, in: source) else {
                    try skipUnopened(path, errno)
                    continue
                }
                var existing = stat()
                if fstatat(destination.descriptor, name, &existing, AT_SYMLINK_NOFOLLOW) == 0,
                    existing.st_mode & S_IFMT != S_IFDIR
                {
                    skip(path, .exists)
                    continue
                }
                try copyEntries(of: directory, path: path, depth: depth + 1) { () throws(StoreError) in
                    try destination.subdirectory(name, path: path)
                }
            case S_IFREG:
                try copyFile(name, in: source, to: destination, path: path)
            case S_IFLNK:
                skip(path, .symbolicLink)
            default:
                skip(path, .specialFile)
            }
        }
        try flush(destination, path)
    }

    /// Has the names in a directory outlive a loss of power; what is skipped because it exists was perhaps not flushed yet.
    private func flush(_ directory: OpenDirectory, _ path: String) throws(StoreError) {
        guard fsync(directory.descriptor) == 0 else { throw .import("Flushing the directory", path, errno) }
        flushed.append(path)
    }

    private func copyFile(
        _ name: [CChar],
        in source: OpenDirectory,
        to destination: OpenDirectory,
        path: String
    ) throws(StoreError) {
        var status = stat()
        if fstatat(destination.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
            skip(path, .exists)
            return
        }
        let input = openat(source.descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard input >= 0 else { return try skipUnopened(path, errno) }
        defer { close(input) }
        guard fstat(input, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            skip(path, .specialFile)
            return
        }
        let process = ProcessIdentity.current
        draftCount += 1
        let draft = "\(process.pid).\(process.startTime).\(UInt32.random(in: 0...(.max))).\(draftCount)"
        let output = openat(
            staging.descriptor,
            draft,
            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            status.st_mode & 0o700
        )
        guard output >= 0 else { throw .import("Creating a copy of", path, errno) }
        defer { unlinkat(staging.descriptor, draft, 0) }
        do throws(StoreError) {
            try copyBytes(from: input, to: output, path: path)
            let times = [status.st_atim, status.st_mtim]
            guard futimens(output, times) == 0, fsync(output) == 0 else { throw .import("Writing", path, errno) }
        } catch {
            close(output)
            throw error
        }
        guard close(output) == 0 else { throw .import("Writing", path, errno) }
        FaultPoint.reached(.beforeImportRename)
        let result = linux_rename_new(staging.descriptor, draft, destination.descriptor, name)
        if result == -EEXIST {
            skip(path, .exists)
            return
        }
        guard result == 0 else { throw .import("Naming", path, -result) }
        FaultPoint.reached(.afterImportRename)
        report.copied.append(path)
    }

    private func copyBytes(from input: CInt, to output: CInt, path: String) throws(StoreError) {
        var buffer = [UInt8](repeating: 0, count: Self.bufferByteCount)
        while true {
            let count = read(input, &buffer, buffer.count)
            if count == 0 { return }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .import("Reading", path, errno) }
            var written = 0
            while written < count {
                let result = buffer.withUnsafeBytes {
                    write(output, $0.baseAddress?.advanced(by: written), count - written)
                }
                if result < 0, errno == EINTR { continue }
                guard result > 0 else { throw .import("Writing", path, errno) }
                written += result
            }
        }
    }

    /// Drafts of processes that died while they wrote one.
    private func removeLeftovers() {
        for name in (try? staging.names()) ?? [] {
            let parts = String(decoding: name.lazy.map(UInt8.init(bitPattern:)).dropLast(), as: UTF8.self).split(
                separator: "."
            )
            guard parts.count == 4, let pid = pid_t(parts[0]), let start = UInt64(parts[1]),
                !ProcessIdentity(pid: pid, startTime: start).isAlive
            else { continue }
            unlinkat(staging.descriptor, name, 0)
        }
    }

    private func skip(_ path: String, _ reason: GroupImport.Reason) {
        report.skipped.append(GroupImport.Skip(path: path, reason: reason))
    }

    /// What could not be opened: somebody replaced it by a link after it was listed, or this user may not read it.
    private func skipUnopened(_ path: String, _ code: CInt) throws(StoreError) {
        switch code {
        case EACCES, EPERM: skip(path, .notPermitted)
        case ELOOP, ENOTDIR: skip(path, .symbolicLink)
        case ENOENT: break
        default: throw .import("Opening", path, code)
        }
    }

    private static func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    private static var mostDepth: Int { 32 }
    private static var bufferByteCount: Int { 256 * 1024 }
}

/// A directory, opened without following a link, and closed with the object.
private final class OpenDirectory {
    let descriptor: CInt
    private let identity: (dev_t, ino_t)

    init?(_ name: [CChar], in parent: OpenDirectory? = nil) {
        let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        let descriptor = openat(parent?.descriptor ?? AT_FDCWD, name, flags)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        identity = (status.st_dev, status.st_ino)
    }

    convenience init?(_ path: String) {
        self.init(path.utf8CString.map(\.self))
    }

    deinit {
        close(descriptor)
    }

    func isSame(as other: OpenDirectory) -> Bool { identity == other.identity }

    /// Opens a directory in this one, and creates it when it is missing.
    func subdirectory(_ name: [CChar], path: String) throws(StoreError) -> OpenDirectory {
        if mkdirat(descriptor, name, 0o700) != 0, errno != EEXIST { throw .import("Creating", path, errno) }
        guard let directory = OpenDirectory(name, in: self) else { throw .import("Opening", path, errno) }
        return directory
    }

    func subdirectory(_ name: String, creating path: String) throws(StoreError) -> OpenDirectory {
        try subdirectory(name.utf8CString.map(\.self), path: path)
    }

    /// The names in it as the bytes that they are, each with its final NUL.
    func names() throws(StoreError) -> [[CChar]] {
        let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0 else { throw .import("Reading", "a directory", errno) }
        guard let listing = fdopendir(copy) else {
            close(copy)
            throw .import("Reading", "a directory", errno)
        }
        defer { closedir(listing) }
        var names: [[CChar]] = []
        while let entry = readdir(listing) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                bytes.prefix { $0 != 0 }.map(CChar.init(bitPattern:)) + [0]
            }
            if name != [46, 0], name != [46, 46, 0] { names.append(name) }
        }
        return names
    }
}

extension StoreError {
    fileprivate static func `import`(_ what: String, _ path: String, _ code: CInt) -> StoreError {
        let reason = "\(what) \(path): \(String(cString: strerror(code)))"
        return switch code {
        case ENOSPC, EDQUOT:
            StoreError(
                .full,
                "The import stopped: \(reason). Free space on the group's disk and start again; it goes on from there."
            )
        case EROFS, EACCES, EPERM:
            StoreError(
                .readOnly,
                "The import stopped: \(reason). The group directory must be one that this user may write to."
            )
        default:
            StoreError(.system, "The import stopped: \(reason). Start again; it goes on from there.")
        }
    }
}
