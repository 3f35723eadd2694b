import Foundation
import Testing

/// The examples, run as processes.
@Suite(.serialized) struct ExampleTests {
    @Test func `the first call carries keys and leaves a WAV file`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "first-call-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let run = try Example.run("first-call", in: folder)
        #expect(run.status == 0, "\(run.text)")
        #expect(run.text.contains("its keys were 159#"))
        let heard = try Data(contentsOf: folder.appending(path: "heard.wav"))
        #expect(heard.starts(with: Data("RIFF".utf8)))
        // Two seconds at 48 kHz, less what the way takes.
        #expect(heard.count > 100_000)
    }

    @Test func `key feedback measures every key`() throws {
        let run = try Example.run("dtmf-feedback", "15#", "null")
        #expect(run.status == 0, "\(run.text)")
        // Where a process may not have a real-time thread, a line says so.
        let lines = run.text.split(separator: "\n").filter { $0.hasPrefix("key ") }
        try #require(lines.count == 3, "\(run.text)")
        for (line, key) in zip(lines, "15#") {
            #expect(line.hasPrefix("key \(key): first sample at the card after "))
            let delay = try #require(line.split(separator: " ").dropLast().last.flatMap { Double($0) })
            // A tick of 5 ms, and what a machine adds that runs all tests at once; the figure itself is a benchmark's.
            #expect(delay > -1 && delay < 100, "\(line)")
        }
    }

    @Test func `key feedback refuses what is no key`() throws {
        let run = try Example.run("dtmf-feedback", "1x", "null")
        #expect(run.status == 64)
        #expect(run.text.contains("x is no key."))
    }

    @Test func `the harness finds every claim true`() throws {
        let run = try Example.run("loopback-call")
        #expect(run.status == 0, "\(run.text)")
        #expect(run.text.split(separator: "\n").count { $0.hasPrefix("ok ") } == 9, "\(run.text)")
        #expect(!run.text.contains("FAILED"))
    }

    @Test func `calls go through codecs of plugins in Swift and in C`() throws {
        let run = try Example.run("codec-plugin")
        #expect(run.status == 0, "\(run.text)")
        #expect(run.text.contains("l8: registered L8/16000"))
        #expect(run.text.contains("libmsexample: registered DVI4/16000"))
        for codec in ["L8", "DVI4"] {
            #expect(run.text.contains(try Regex("\(codec): [0-9]+ packets, 0 lost")), "\(run.text)")
        }
    }

    @Test func `processes of a group talk to each other`() throws {
        let run = try Example.run("local-messages")
        #expect(run.status == 0, "\(run.text)")
        #expect(run.text.contains("server: a white wall, 1048576 bytes with the sum 1048576"), "\(run.text)")
        #expect(run.text.contains("server: its notes: taken at noon"))
        #expect(run.text.contains("server: sent by this program"))
        #expect(run.text.contains("client: 6 words"))
        #expect(run.text.contains("client: heard of time: it is 20"))
    }

    @Test func `of three pushes one starts a core, and the application takes over from the fourth`() throws {
        let run = try Example.run("shared-core")
        #expect(run.status == 0, "\(run.text)")
        for text in ["1: Lunch?", "2: At noon?", "3: Bring Berta"] { #expect(run.text.contains("push \(text), from ")) }
        #expect(run.text.contains("after 3 pushes: core starts 1\n"), "\(run.text)")
        #expect(run.text.contains("the application runs: state main\npush 4: I am there, from main\n"), "\(run.text)")
        #expect(run.text.contains("reply performed by the main: true, at the server: 1\n"), "\(run.text)")
        #expect(run.text.hasSuffix("state free, pending 0, shown 4\n"), "\(run.text)")
    }

    @Test(arguments: [
        "first-call", "dtmf-feedback", "loopback-call", "codec-plugin", "local-messages", "shared-core",
    ])
    func `an example is at most 100 lines`(name: String) throws {
        let source = try Example.text("Examples/\(name)/main.swift")
        #expect(source.split(separator: "\n", omittingEmptySubsequences: false).count <= 101)
    }

    @Test func `the README shows the first call as it is`() throws {
        let readme = try Example.text("README.md")
        let example = try Example.text("Examples/first-call/main.swift")
        #expect(readme.contains("```swift\n\(example)```\n"))
    }

    @Test func `every file in the README's table of standards exists`() throws {
        let rows = try Example.text("README.md").split(separator: "\n").filter { $0.hasSuffix("Tests.swift |") }
        #expect(rows.count > 10)
        for row in rows {
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            for path in ["Sources/MediaEngine/\(cells[1])", "Tests/MediaEngineTests/\(cells[2])"] {
                #expect(FileManager.default.fileExists(atPath: Example.root.appending(path: path).path), "\(path)")
            }
        }
    }

    @Test func `every test that the guarantees of the shared core name exists`() throws {
        let guarantees = try Example.text("Sources/SharedCore/SharedCore.docc/Guarantees.md").split(separator: "\n")
            .filter { $0.hasPrefix("- `") }.map { line in
                (name: String(line.dropFirst(3).prefix { $0 != "`" }), isFigure: line.contains(" in Benchmarks"))
            }
        let folders = ["Tests/SharedCoreTests", "Tests/MediaToolTests", "Tests/MailboxTests"]
        let tests = try folders.flatMap { try Example.sources(in: $0).values }.joined()
        let figures = try Example.sources(in: "Benchmarks/Sources/benchmarks").values.joined()
        #expect(guarantees.count > 50)
        for (name, isFigure) in guarantees {
            #expect(isFigure ? figures.contains("\"\(name)") : tests.contains("func `\(name)`"), "\(name)")
        }
    }

    @Test func `every test that the guarantees of local messaging name exists`() throws {
        let rows = try Example.text("Sources/LocalMessaging/LocalMessaging.docc/Guide.md").split(separator: "\n")
            .compactMap { $0.wholeMatch(of: /\|.*\| (\w+Tests): (.*) \|/)?.output }
        #expect(rows.count > 10)
        let tests = try Example.sources(in: "Tests/LocalMessagingTests")
        for (_, file, names) in rows {
            let text = try #require(tests["\(file).swift"], "\(file)")
            for name in names.components(separatedBy: "; ") { #expect(text.contains("func `\(name)`"), "\(name)") }
        }
    }
}

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
        let process = Process()
        let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.executableURL = (Self.products ?? program.deletingLastPathComponent()).appending(path: name)
        process.arguments = arguments
        process.currentDirectoryURL = folder
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile() + errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Run(status: process.terminationStatus, text: String(decoding: text, as: UTF8.self))
    }

    /// The folder of the test bundle, whichever program has loaded it.
    private static var products: URL? {
        CommandLine.arguments.lazy.first { $0.hasSuffix(".xctest") }
            .map { URL(filePath: $0).deletingLastPathComponent() }
    }
}
