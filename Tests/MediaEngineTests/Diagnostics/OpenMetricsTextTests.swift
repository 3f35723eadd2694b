@testable import MediaEngine
import Testing

@Suite struct OpenMetricsTextTests {
    @Test func `families have their metadata, suffixes and escaped labels`() throws {
        var text = OpenMetricsText()
        text.add("calls", .counter, help: "Calls\nso far, \"all\" of \\.", [([("leg", "a\"\\\nb")], 3)])
        text.add("delay", .gauge, unit: "seconds", help: "Delay.", [([], 0.06), ([("leg", "x")], nil)])
        text.add("engine", .info, help: "Engine.", [([("mode", "virtual")], 1)])
        text.add("unknown", .gauge, help: "Left out.", [([], nil)])
        text.add("silence", .gauge, help: "Floor.", [([], -.infinity)])
        #expect(
            text.ended == #"""
                # TYPE calls counter
                # HELP calls Calls\nso far, \"all\" of \\.
                calls_total{leg="a\"\\\nb"} 3
                # TYPE delay_seconds gauge
                # UNIT delay_seconds seconds
                # HELP delay_seconds Delay.
                delay_seconds 0.06
                # TYPE engine info
                # HELP engine Engine.
                engine_info{mode="virtual"} 1
                # TYPE silence gauge
                # HELP silence Floor.
                silence -Inf
                # EOF

                """#
        )
        try OpenMetricsGrammar.check(text.ended)
    }

    @Test(arguments: [
        "a 1\n# EOF\n", "# TYPE a counter\na 1\n# EOF\n", "# TYPE a gauge\na 1\n", "# TYPE a gauge\na one\n# EOF\n",
        "# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n", "# TYPE a gauge\na{b=c} 1\n# EOF\n",
        "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na 2\n# EOF\n",
        "# TYPE a gauge\na 1\na 1\n# EOF\n", "# TYPE a gauge\na 1\n# EOF\n\n",
    ]) func `the check of the grammar finds what is wrong`(text: String) {
        #expect(throws: OpenMetricsGrammar.Violation.self) { try OpenMetricsGrammar.check(text) }
    }
}

/// Checks a text line by line against OpenMetrics 1.0 (draft-richih-opsawg-openmetrics-00, sections 3.2, 5.1 and 5.2).
enum OpenMetricsGrammar {
    struct Violation: Error {
        let line: String
    }

    static func check(_ text: String) throws {
        guard text.hasSuffix("\n# EOF\n") else { throw Violation(line: "no # EOF at the end") }
        var families: Set<String> = []
        var samples: Set<String> = []
        var (family, kind) = ("", "")
        for line in text.dropLast("# EOF\n".count).split(separator: "\n", omittingEmptySubsequences: true) {
            let line = String(line)
            if let match = line.wholeMatch(of: /# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|info)/) {
                (family, kind) = (String(match.1), String(match.2))
                guard families.insert(family).inserted else { throw Violation(line: line) }
            } else if let match = line.wholeMatch(of: /# UNIT (\S+) ([a-z]+)/) {
                guard match.1 == family, family.hasSuffix("_\(match.2)") else { throw Violation(line: line) }
            } else if let match = line.wholeMatch(of: /# HELP (\S+) .+/) {
                guard match.1 == family else { throw Violation(line: line) }
            } else {
                let match = try sample(line)
                let suffix = kind == "counter" ? "_total" : kind == "info" ? "_info" : ""
                guard match.name == family + suffix, samples.insert(match.name + match.labels).inserted else {
                    throw Violation(line: line)
                }
                if kind == "info", match.value != "1" { throw Violation(line: line) }
                if kind == "counter", match.value.hasPrefix("-") { throw Violation(line: line) }
            }
        }
    }

    private static func sample(_ line: String) throws -> (name: String, labels: String, value: String) {
        var rest = line[...]
        guard let name = rest.prefixMatch(of: /[a-zA-Z_:][a-zA-Z0-9_:]*/)?.output else { throw Violation(line: line) }
        rest = rest[name.endIndex...]
        var labels = rest.prefix(0)
        if rest.hasPrefix("{") {
            guard let list = rest.prefixMatch(of: /\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\[n"\\])*",?)+\}/)?.output
            else {
                throw Violation(line: line)
            }
            labels = list
            rest = rest[list.endIndex...]
        }
        guard let value = rest.wholeMatch(of: /\x20(-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|[+-]Inf|NaN)/)?.1 else {
            throw Violation(line: line)
        }
        return (String(name), String(labels), String(value))
    }
}
