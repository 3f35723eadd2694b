import Foundation
import Testing

@testable import media_tool

/// How answers to messages that are hard to read are scored.
@Suite struct TortureScoreTests {
    private static func message(_ method: String, _ headers: String...) -> [UInt8] {
        let all =
            ["\(method) sip:a@b SIP/2.0", "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1", "From: <sip:b@c>;tag=1"]
            + ["To: <sip:a@b>", "Call-ID: c1", "CSeq: 1 \(method)"] + headers + ["", "v=0\r\n"]
        return Array(all.joined(separator: "\r\n").utf8)
    }

    private func score(_ subject: TortureScore.Subject, _ cases: [(String, [UInt8])], mutations: Int = 0) throws
        -> TortureScore
    {
        let table = "name\tsection\texpect\n" + cases.map { "f\t1.2\t\($0.0)\tmore" }.joined(separator: "\n")
        var score = TortureScore(subject, seed: 1)
        for (expectation, one) in zip(try TortureScore.expectations(table), cases) {
            score.add(expectation, one.1, mutations: mutations)
        }
        return score
    }

    @Test func `the stack is asked for methods and types, the parser is not`() throws {
        let cases = [
            ("accept", Self.message("OPTIONS")), ("400", Self.message("OPTIONS", "To: <sip:x@y>")),
            ("501", Self.message("STRANGE")), ("415", Self.message("INVITE", "Content-Type: application/x")),
            ("400-or-lenient", Self.message("OPTIONS")),
        ]
        let stack = try score(.stack, cases)
        #expect(stack.isMet && stack.rows.map(\.answer) == [0, 400, 501, 415, 0])
        let parser = try score(.parser, cases)
        #expect(parser.isMet && parser.rows.map(\.answer) == [0, 400, 0, 0, 0])
        #expect(stack.json.text.contains("\"exact\":{\"asked\":3,\"ok\":3},\"lenient\":1,\"noAnswer\":0"))
    }

    @Test(arguments: ["rfc4475", "rfc5118"])
    func `the messages of the RFCs get what these ask for`(name: String) throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let folder = tests.appendingPathComponent("SIPTests/Fixtures/\(name)")
        let table = try String(contentsOf: folder.appendingPathComponent("expect.tsv"), encoding: .utf8)
        for subject in [TortureScore.Subject.parser, .stack] {
            var score = TortureScore(subject, seed: 1)
            for expectation in try TortureScore.expectations(table) {
                let bytes = try Data(contentsOf: folder.appendingPathComponent(expectation.file))
                score.add(expectation, [UInt8](bytes), mutations: 0)
            }
            #expect(score.isMet && score.rows.count == (name == "rfc4475" ? 20 : 5), "\(score.text)")
        }
    }

    @Test func `an answer that does not fit is a failure, by name`() throws {
        let score = try score(.stack, [("400", Self.message("OPTIONS")), ("accept", Self.message("STRANGE"))])
        #expect(!score.isMet && score.rows.map(\.isMet) == [false, false])
        let silent = try self.score(.stack, [("drop", Self.message("OPTIONS")), ("drop", Self.message("ACK"))])
        #expect(silent.rows.map(\.isMet) == [false, true])
        #expect(score.json.text.contains("\"ok\":0,") && score.text.contains("FAILED") && score.text.contains("taken"))
    }

    @Test func `changed messages are counted and harm nothing`() throws {
        let score = try score(.stack, [("accept", Self.message("OPTIONS"))], mutations: 500)
        #expect(score.mutationCount == 500 && score.slowest > .zero && score.rows.count == 1)
    }

    @Test(arguments: ["a\t1", "\t1\t400", "../a\t1\t400", "a\t1\tperhaps", "a\t1\t200", "a\t1\t400-or-"])
    func `a table that cannot be is refused by its line`(line: String) {
        let error = #expect(throws: ToolFailure.self) { try TortureScore.expectations("head\nb\t1\t400\n\(line)") }
        #expect(error?.description.contains("Line 3") == true)
    }
}
