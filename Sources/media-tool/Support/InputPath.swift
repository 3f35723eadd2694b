internal import Glibc

/// Where a file that a command reads is found.
enum InputPath {
    /// What help says of it.
    static let help = "- is standard input."

    /// The path to open for `argument`: "-" is standard input, as in other tools; a file of that name is "./-".
    static func path(of argument: String) -> String { argument == "-" ? "/dev/stdin" : argument }

    /// What `argument`, or the path that it stands for, is called in a sentence.
    static func name(of argument: String) -> String {
        argument == path(of: "-") || argument == "-" ? "standard input" : argument
    }

    /// Whether what is at `path`, a pipe or a socket, can be read only once, from front to back.
    static func isPipe(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
    }
}
