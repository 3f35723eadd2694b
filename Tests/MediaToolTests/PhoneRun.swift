import Foundation
import Glibc
import Testing

/// A run of `media-tool phone --json` that takes lines.
final class PhoneRun {
    let run: ToolRun
    private let lines: FileHandle

    init(_ folder: Scratch, _ arguments: String...) throws {
        let path = folder.file("lines-\(UUID().uuidString)")
        guard mkfifo(path, 0o600) == 0 else { throw POSIXError(.EIO) }
        let command = ["phone", "--local", "127.0.0.1:0", "--json"] + arguments
        run = try ToolRun(
            ["-c", #"lines="$1"; shift; exec "$@" <"$lines""#, "sh", path, ToolRun.path] + command,
            program: "/bin/sh"
        )
        lines = try #require(FileHandle(forWritingAtPath: path))
        try #require(run.printed(#""event":"listening""#), "\(run.errors)")
    }

    func say(_ line: String) throws { try lines.write(contentsOf: Data((line + "\n").utf8)) }

    func prints(_ text: String) -> Bool { run.printed(text) }

    func prints(_ isPrinted: (String) -> Bool) -> Bool { run.wait { isPrinted(run.output) } }

    /// The end of its input.
    func close() { try? lines.close() }

    /// Its exit code.
    func ends() -> Int32 { run.wait() }
}
