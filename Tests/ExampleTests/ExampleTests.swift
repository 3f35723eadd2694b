import Foundation
import Testing

/// What the documentation says of files and tests that are there.
@Suite struct ExampleTests {
    @Test(arguments: [
        "first-call", "dtmf-feedback", "loopback-call", "codec-plugin", "voice-bot", "local-messages", "shared-core",
        "sip-call", "sip-answering-machine", "softphone", "door-phone",
    ])
    func `an example is at most 100 lines, a whole phone 120`(name: String) throws {
        let source = try Example.text("Examples/\(name)/main.swift")
        let limit = name == "softphone" ? 120 : 100
        #expect(source.split(separator: "\n", omittingEmptySubsequences: false).count <= limit + 1)
    }

    @Test(arguments: ["first-call", "sip-call"])
    func `the README shows a call as it is`(name: String) throws {
        let readme = try Example.text("README.md")
        let example = try Example.text("Examples/\(name)/main.swift")
        #expect(readme.contains("```swift\n\(example)```\n"))
    }

    @Test func `every file in the table of standards exists`() throws {
        let table = try Example.text("Sources/MediaEngine/MediaEngine.docc/Standards.md")
        let rows = table.split(separator: "\n").filter { $0.hasSuffix("Tests.swift |") }
        #expect(rows.count > 20)
        for row in rows {
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            for path in ["Sources/\(cells[1])", "Tests/\(cells[2])"] {
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

    @Test func `every test that the guarantees of SIP name exists`() throws {
        let guarantees = try Example.text("Sources/SIP/SIP.docc/Guarantees.md").split(separator: "\n")
            .filter { $0.hasPrefix("- `") }.map { $0.dropFirst(3).prefix { $0 != "`" } }
        let tests = try ["Tests/SIPTests", "Tests/SIPTransportTests"].flatMap { try Example.sources(in: $0).values }
            .joined()
        #expect(guarantees.count > 50)
        for name in guarantees { #expect(tests.contains("func `\(name)`") || tests.contains("\"\(name)\""), "\(name)") }
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
