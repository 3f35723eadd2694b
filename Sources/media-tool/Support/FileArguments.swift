import ArgumentParser
internal import Glibc

/// The files that a command line names, compared before any of them is opened: creating one empties it.
struct FileArguments {
    /// A file by what it really is: its place on its disk, or, before it is there, its folder's and its name.
    private struct Identity: Hashable {
        let device: UInt64
        let inode: UInt64
        let name: String

        /// The identity of the file at `path`; nil for what any number may write to (a terminal, /dev/null), and for what cannot
        /// be.
        init?(_ path: String) {
            // A link to nothing yet is the file that it will lead to.
            var path = path
            for _ in 0..<40 {
                var status = stat()
                if stat(path, &status) == 0 {
                    self.init(status)
                    return
                }
                guard let target = Self.target(ofLink: path) else { break }
                path = target
            }
            let (folder, last) = Self.split(path)
            var status = stat()
            guard !last.isEmpty, stat(folder, &status) == 0 else { return nil }
            self.init(status, last)
        }

        /// The identity of a file that is there.
        init?(_ status: stat) {
            let kind = status.st_mode & S_IFMT
            guard kind == S_IFREG || kind == S_IFIFO || kind == S_IFBLK else { return nil }
            self.init(status, "")
        }

        private init(_ status: stat, _ name: String) {
            (device, inode, self.name) = (UInt64(status.st_dev), UInt64(status.st_ino), name)
        }

        /// Where the link at `path` leads, as seen from here; nil when it is none.
        private static func target(ofLink path: String) -> String? {
            var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
            let count = readlink(path, &bytes, bytes.count)
            guard count > 0 else { return nil }
            let target = String(decoding: bytes[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
            return target.hasPrefix("/") ? target : split(path).folder + target
        }

        static func split(_ path: String) -> (folder: String, last: String) {
            guard let slash = path.lastIndex(of: "/") else { return ("./", path) }
            return (String(path[...slash]), String(path[path.index(after: slash)...]))
        }
    }

    /// Refuses a folder that is none.
    ///
    /// - Throws: `ValidationError`
    static func checkFolder(_ option: String, _ path: String?) throws {
        guard let path else { return }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw ValidationError("The value '\(path)' of '\(option)' is no directory. Make it, or name another.")
        }
    }

    /// Refuses a file that cannot be written, before there is something to write; one that is there stays as it is.
    ///
    /// - Throws: `ToolFailure`
    static func checkWritable(_ path: String?) throws {
        guard let path else { return }
        var status = stat()
        let code: Int32
        if stat(path, &status) != 0 {
            code = access(Identity.split(path).folder, W_OK | X_OK) == 0 ? 0 : errno
        } else if status.st_mode & S_IFMT == S_IFDIR {
            code = EISDIR
        } else {
            code = access(path, W_OK) == 0 ? 0 : errno
        }
        guard code != 0 else { return }
        let reason = String(cString: strerror(code))
        throw ToolFailure("Cannot write \(path): \(reason). Check that its folder exists and may be written.")
    }

    private var inputs: [Identity: String] = [:]
    private var outputs: [Identity: String] = [:]

    /// The files of a command that writes its report to standard output, which may be a file, too.
    init() {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG, let identity = Identity(status)
        else { return }
        outputs[identity] = "standard output"
    }

    /// Notes a file that is read.
    ///
    /// - Throws: `ValidationError` when it is one of those that are written.
    mutating func read(_ option: String, _ path: String?) throws {
        guard let path, let identity = Identity(path) else { return }
        if let output = outputs[identity] {
            throw ValidationError("'\(option) \(path)' is what '\(output)' writes to. Name another file.")
        }
        inputs[identity] = "\(option) \(path)"
    }

    /// Notes a file that is written.
    ///
    /// - Throws: `ValidationError` when it is one of those that are read, or written already.
    mutating func write(_ option: String, _ path: String?) throws {
        guard let path, let identity = Identity(path) else { return }
        if let input = inputs[identity] {
            throw ValidationError("'\(option) \(path)' would overwrite what '\(input)' reads. Name another file.")
        }
        if let output = outputs[identity] {
            throw ValidationError("'\(option) \(path)' and '\(output)' are one file. Name another one.")
        }
        outputs[identity] = "\(option) \(path)"
    }
}
