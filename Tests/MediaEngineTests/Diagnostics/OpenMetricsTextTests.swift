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

    @Test func `what node_exporter reads has no info, and families are named as their samples`() throws {
        var text = OpenMetricsText(.prometheus)
        text.add("calls", .counter, help: "Calls\nso far, \"all\" of \\.", [([("leg", "a\"\\\nb")], 3)])
        text.add("delay", .gauge, unit: "seconds", help: "Delay.", [([], 0.06)])
        text.add("engine", .info, help: "Engine.", [([("mode", "virtual")], 1)])
        text.add("unknown", .gauge, help: "Left out.", [([], nil)])
        #expect(
            text.ended == #"""
                # HELP calls_total Calls\nso far, "all" of \\.
                # TYPE calls_total counter
                calls_total{leg="a\"\\\nb"} 3
                # HELP delay_seconds Delay.
                # TYPE delay_seconds gauge
                delay_seconds 0.06
                # HELP engine_info Engine.
                # TYPE engine_info gauge
                engine_info{mode="virtual"} 1

                """#
        )
        try PrometheusGrammar.check(text.ended)
    }

    @Test func `the call says between whom it is`() async throws {
        let pair = try await CallPair(saying: .silence)
        try pair.advance(1000)
        let legs = [pair.caller.report(), pair.callee.report()]
        let ticks = CallReport.Ticks(pair.engine.tickStatistics)
        let report = CallReport(codec: "PCMU", mode: .virtual, seconds: 1, legs: legs, ticks: ticks)
        #expect(legs[0].endpoints.localAddress == pair.caller.localAddress.description)
        #expect(legs[0].endpoints.remoteAddress == legs[1].endpoints.localAddress)
        #expect(legs[0].endpoints.remoteSSRC == legs[1].endpoints.localSSRC)
        let ssrc = String(try #require(legs[0].endpoints.localSSRC), radix: 16)
        let kind = "leg=\"A\",codec=\"PCMU\",mode=\"virtual\""
        let start = "media_call_info{\(kind),local_address=\"\(pair.caller.localAddress)\","
        for text in [report.prometheusText, report.openMetrics] {
            #expect(text.contains("\n" + start) && text.contains("local_ssrc=\"0x") && text.contains(ssrc))
        }
        try OpenMetricsGrammar.check(report.openMetrics)
        try PrometheusGrammar.check(report.prometheusText)
    }

    @Test(arguments: [
        "a 1\n", "# TYPE a info\na 1\n", "# HELP a A.\n# TYPE a counter\na 1\n", "# TYPE a gauge\na 1\n",
        "# HELP a A.\n# TYPE a gauge\na 1", "# HELP a \\\".\n# TYPE a gauge\na 1\n",
        "# HELP a A.\n# TYPE a gauge\na{b=c} 1\n", "# HELP a A.\n# TYPE a gauge\na 1\na 1\n",
        "# HELP a A.\n# TYPE a gauge\na_info 1\n", "# HELP a A.\n# TYPE a gauge\na 1\n# EOF\n",
        "# HELP a A.\n# TYPE a gauge\na 1\n# HELP a A.\n# TYPE a gauge\na{b=\"c\"} 1\n",
    ]) func `the check of Prometheus' own grammar finds what is wrong`(text: String) {
        #expect(throws: PrometheusGrammar.Violation.self) { try PrometheusGrammar.check(text) }
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

    static func sample(_ line: String) throws -> (name: String, labels: String, value: String) {
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

/// Checks a text line by line as `promtool check metrics` does: Prometheus, "Exposition formats", "Text-based format", and the
/// rules of its linter for help and for names of counters.
enum PrometheusGrammar {
    struct Violation: Error {
        let line: String
    }

    static func check(_ text: String) throws {
        guard text.hasSuffix("\n"), !text.hasSuffix("\n\n") else { throw Violation(line: "the end") }
        var families: Set<String> = []
        var samples: Set<String> = []
        var (helped, family) = ("", "")
        for line in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if let match = line.wholeMatch(of: /# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (?:[^\\]|\\[n\\])+/) {
                helped = String(match.1)
                guard families.insert(helped).inserted else { throw Violation(line: line) }
            } else if let match = line.wholeMatch(of: /# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|untyped)/) {
                family = String(match.1)
                let isCounter = match.2 == "counter"
                guard family == helped, isCounter == family.hasSuffix("_total") else { throw Violation(line: line) }
            } else {
                let sample: (name: String, labels: String, value: String)
                do {
                    sample = try OpenMetricsGrammar.sample(line)
                } catch {
                    throw Violation(line: line)
                }
                guard sample.name == family, samples.insert(sample.name + sample.labels).inserted else {
                    throw Violation(line: line)
                }
                if family.hasSuffix("_total"), sample.value.hasPrefix("-") { throw Violation(line: line) }
            }
        }
    }
}
