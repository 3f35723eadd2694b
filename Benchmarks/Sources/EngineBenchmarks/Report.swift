import Glibc

/// One line of the table.
package struct Figure: Sendable {
    package enum Limit: Sendable {
        case atMost(Double)
        case atLeast(Double)
        /// At most so many, on every machine.
        case count(Int)
        /// Told for comparison, without a limit.
        case none
    }

    let name: String
    let value: Double?
    let unit: String
    let limit: Limit
    let note: String

    package init(_ name: String, _ value: Double, _ unit: String = "", _ limit: Limit = .none, note: String = "") {
        self.name = name
        self.value = value
        self.unit = unit
        self.limit = limit
        self.note = note
    }

    /// A figure that could not be measured, which counts as missed.
    package init(_ name: String, _ reason: String) {
        self.name = name
        value = nil
        unit = ""
        limit = .atMost(0)
        note = reason
    }

    /// A figure that cannot be had on this machine, which is no fault.
    package init(_ name: String, skipped reason: String) {
        self.name = name
        value = nil
        unit = ""
        limit = .none
        note = "skipped: \(reason)"
    }

    /// With a limit that is so many times as wide.
    func slackened(_ factor: Double) -> Figure {
        guard let value else { return self }
        let limit: Limit =
            switch limit {
            case .atMost(let bound): .atMost(bound * factor)
            case .atLeast(let bound): .atLeast(bound / factor)
            case .count, .none: limit
            }
        return Figure(name, value, unit, limit, note: note)
    }

    var isKept: Bool {
        switch limit {
        case .none: true
        case .atMost(let bound): (value ?? .infinity) <= bound
        case .atLeast(let bound): (value ?? 0) >= bound
        case .count(let bound): (value ?? .infinity) <= Double(bound)
        }
    }

    var verdict: String {
        if case .none = limit { return "-" }
        return isKept ? "kept" : "MISSED"
    }

    var limitText: String {
        switch limit {
        case .atMost(let bound): value == nil ? "" : "<= \(Report.number(bound))"
        case .atLeast(let bound): ">= \(Report.number(bound))"
        case .count(let bound): value == nil ? "" : "<= \(bound)"
        case .none: ""
        }
    }
}

/// The figures as text.
package enum Report {
    static func table(_ figures: [Figure], _ options: Options) -> String {
        var rows = [["what", "measured", "unit", "must", "verdict", "note"]]
        rows += figures.map { figure in
            [
                figure.name, figure.value.map(number) ?? "?", figure.unit, figure.limitText, figure.verdict,
                figure.note,
            ]
        }
        let widths = (0..<6).map { column in rows.map { $0[column].count }.max() ?? 0 }
        let lines = rows.map { row in
            "| " + zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: " | ")
                + " |"
        }
        let rule = "|" + widths.map { String(repeating: "-", count: $0 + 2) }.joined(separator: "|") + "|"
        let head = "\(Machine.description)\nspeech: \(Speech.name(options)); minimum of \(options.repetitions)\n"
        return head + "\n" + ([lines[0], rule] + lines.dropFirst()).joined(separator: "\n")
    }

    static func json(_ figures: [Figure], _ options: Options) -> String {
        let items = figures.map { figure in
            let limit = figure.limitText.isEmpty ? "null" : quoted(figure.limitText)
            return "{\"name\":\(quoted(figure.name)),\"measured\":\(figure.value.map(number) ?? "null"),"
                + "\"unit\":\(quoted(figure.unit)),\"limit\":\(limit),\"kept\":\(figure.isKept),"
                + "\"note\":\(quoted(figure.note))}"
        }
        return "{\"machine\":\(quoted(Machine.description)),\"speech\":\(quoted(Speech.name(options))),"
            + "\"figures\":[\(items.joined(separator: ","))]}"
    }

    /// Three significant places where they matter.
    package static func number(_ value: Double) -> String {
        if value == value.rounded(), abs(value) < 1e9 { return String(Int(value)) }
        let places = abs(value) >= 100 ? 0.0 : abs(value) >= 10 ? 1.0 : 3.0
        let scale = pow(10, places)
        let rounded = (value * scale).rounded() / scale
        return rounded == rounded.rounded() ? String(Int(rounded)) : String(rounded)
    }

    private static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}

/// Where it was measured.
enum Machine {
    static var description: String {
        let model = line(of: "/proc/cpuinfo", beginning: "model name").map { $0.drop { $0 != ":" }.dropFirst(2) }
        let load = firstLine("/proc/loadavg")?.split(separator: " ").first ?? "?"
        var name = utsname()
        uname(&name)
        let kernel = withUnsafeBytes(of: &name.release) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        let processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        return "\(processors) x \(model ?? "unknown processor"), Linux \(kernel), load \(load)"
    }

    private static func firstLine(_ path: String) -> String? { line(of: path, beginning: "") }

    private static func line(of path: String, beginning: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var buffer = [CChar](repeating: 0, count: 512)
        while fgets(&buffer, Int32(buffer.count), file) != nil {
            let bytes = buffer.prefix { $0 != 0 && $0 != 10 }.map(UInt8.init(bitPattern:))
            let line = String(decoding: bytes, as: UTF8.self)
            if line.hasPrefix(beginning) { return line }
        }
        return nil
    }
}
