/// Puts metric families into the text that Prometheus and its kin read.
///
/// A family's metadata come first and its samples stand together; names of families are unique.
/// Source: OpenMetrics 1.0 (draft-richih-opsawg-openmetrics-00), sections 3 to 5; Prometheus, "Exposition formats",
/// "Text-based format" 0.0.4
struct OpenMetricsText {
    /// Which of the two texts is written: no reader takes both.
    enum Form {
        /// What servers ask for over HTTP: families without the suffixes of their samples, units, and `# EOF` at the end.
        case openMetrics
        /// What `promtool check metrics` and node_exporter's textfile collector read: families are named as their samples, no
        /// type `info`, and quotation marks stand as they are in help.
        case prometheus
    }

    /// What a family's numbers do.
    enum Kind: String {
        /// They only grow.
        case counter
        /// They go up and down.
        case gauge
        /// They are always 1: the labels say it all.
        case info

        var suffix: String {
            switch self {
            case .counter: "_total"
            case .gauge: ""
            case .info: "_info"
            }
        }
    }

    typealias Label = (name: String, value: String)

    private let form: Form
    private var text = ""

    /// An empty text.
    init(_ form: Form = .openMetrics) {
        self.form = form
    }

    /// The text, ended.
    var ended: String { form == .openMetrics ? text + "# EOF\n" : text }

    /// Adds a family, unless it has no samples.
    ///
    /// - Parameters:
    ///   - name: Its name, without the suffix of its kind; `unit` is its last part.
    ///   - kind: What its numbers do.
    ///   - unit: Seconds, bytes or ratio; nil for bare counts and scores.
    ///   - help: What it says, as a sentence.
    ///   - samples: Its samples; those whose value is nil are left out.
    mutating func add(
        _ name: String,
        _ kind: Kind,
        unit: String? = nil,
        help: String,
        _ samples: [(labels: [Label], value: Double?)]
    ) {
        let known = samples.compactMap { sample in sample.value.map { (sample.labels, $0) } }
        guard !known.isEmpty else { return }
        let fullName = unit.map { "\(name)_\($0)" } ?? name
        switch form {
        case .openMetrics:
            text += "# TYPE \(fullName) \(kind.rawValue)\n"
            if let unit { text += "# UNIT \(fullName) \(unit)\n" }
            text += "# HELP \(fullName) \(Self.escaped(help))\n"
        case .prometheus:
            let sampleName = fullName + kind.suffix
            text += "# HELP \(sampleName) \(Self.escaped(help, escapesQuotes: false))\n"
            text += "# TYPE \(sampleName) \(kind == .info ? Kind.gauge.rawValue : kind.rawValue)\n"
        }
        for (labels, value) in known {
            let list = labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
            text += fullName + kind.suffix + (list.isEmpty ? "" : "{\(list)}") + " \(Self.number(value))\n"
        }
    }

    private static func escaped(_ text: String, escapesQuotes: Bool = true) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\"" where escapesQuotes: result += "\\\""
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// The number to a millionth, whole ones without a point.
    private static func number(_ value: Double) -> String {
        guard value.isFinite else { return value.isNaN ? "NaN" : value > 0 ? "+Inf" : "-Inf" }
        guard let whole = Int(exactly: value) else { return "\((value * 1_000_000).rounded() / 1_000_000)" }
        return "\(whole)"
    }
}
