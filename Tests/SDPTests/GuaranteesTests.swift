import Foundation
import Testing

/// The page of guarantees names tests; each of them is here.
@Suite struct GuaranteesTests {
    @Test func `every test that the documentation names exists`() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = tests.appendingPathComponent("../../Sources/SDP/SDP.docc/Guarantees.md")
        let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
        let named = lines.filter { $0.hasPrefix("- `") }.compactMap { $0.split(separator: "`").dropFirst().first }
        #expect(named.count > 20)
        let sources = FileManager.default.enumerator(atPath: tests.path)?.compactMap { $0 as? String } ?? []
        let texts = try sources.filter { $0.hasSuffix("Tests.swift") }
            .map { try String(contentsOf: tests.appendingPathComponent($0), encoding: .utf8) }
        for name in named {
            #expect(texts.contains { $0.contains("func `\(name)`(") }, "\(name)")
        }
    }
}
