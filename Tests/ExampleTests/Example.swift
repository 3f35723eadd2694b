import Foundation
import TestSupport

/// Runs examples, which are built beside the tests.
enum Example {
    struct Run {
        let status: Int32
        /// Standard output, and standard error after it.
        let text: String
    }

    /// The package.
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The text of a file of the package.
    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The texts of the Swift files in a folder of the package and those below it, by file name.
    static func sources(in folder: String) throws -> [String: String] {
        let files = try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)
        return try files.filter { $0.hasSuffix(".swift") }.reduce(into: [:]) { texts, file in
            texts[URL(filePath: file).lastPathComponent] = try text("\(folder)/\(file)")
        }
    }

    /// Runs the example `name` to its end.
    static func run(
        _ name: String,
        _ arguments: String...,
        in folder: URL = FileManager.default.temporaryDirectory
    ) throws -> Run {
        let run = try ProgramRun(path(of: name), arguments, directory: folder)
        let status = run.wait()
        return Run(status: status, text: run.output + run.errors)
    }

    /// Starts the example `name` with variables beside those of this process.
    static func start(_ name: String, _ arguments: [String], environment: [String: String]) throws -> ProgramRun {
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        return try ProgramRun(path(of: name), arguments, environment: variables)
    }

    static func path(of name: String) -> String {
        let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        return (products ?? program.deletingLastPathComponent()).appending(path: name).path
    }

    /// The folder of the test bundle, whichever program has loaded it.
    private static var products: URL? {
        CommandLine.arguments.lazy.first { $0.hasSuffix(".xctest") }
            .map { URL(filePath: $0).deletingLastPathComponent() }
    }
}
