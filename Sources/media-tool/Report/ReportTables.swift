/// The figures of a direction, each with what it means, and what the other side tells beside them.
struct ReportTables {
    private let figures: ReportFigures

    /// The tables of `figures`.
    init(_ figures: ReportFigures) {
        self.figures = figures
    }

    private struct Line {
        let name: String
        let figure: String
        let meaning: String
    }

    /// The section; nothing where nothing is known.
    var html: String {
        let tables =
            table("Packets", Self.packets) + table("Delay and sound, ms", Self.delays) + comparison
            + table("What its receiver reports, by the capture's RTCP", Self.reported)
        return tables.isEmpty ? "" : "<h3>Figures</h3>\n<div class=\"tables\">\n\(tables)</div>\n"
    }

    private static let packets = [
        Line(name: "received", figure: "received packets", meaning: "without those that came twice"),
        Line(name: "lost", figure: "received lost", meaning: "never came"),
        Line(name: "late", figure: "received late", meaning: "came too late to be played"),
        Line(name: "discarded", figure: "received discarded", meaning: "thrown away because too many waited"),
        Line(name: "recovered", figure: "received fec recovered", meaning: "rebuilt from their successor (FEC)"),
        Line(name: "redundant", figure: "received redundant", meaning: "brought by a later one (RED)"),
        Line(name: "duplicate", figure: "received duplicate", meaning: "came twice"),
        Line(name: "reordered", figure: "received reordered", meaning: "came after one sent later"),
        Line(name: "rejected", figure: "received rejected", meaning: "no RTP, of others, or corrupt"),
    ]

    private static let delays = [
        Line(name: "jitter", figure: "jitter ms", meaning: "RFC 3550, at the end"),
        Line(name: "playout delay", figure: "playout delay ms", meaning: "from arrival to sound, mean of all packets"),
        Line(name: "mouth to ear", figure: "quality one way delay ms", meaning: "measured, or by the round trip"),
        Line(name: "concealed", figure: "received concealed ms", meaning: "in place of packets lost, late or corrupt"),
        Line(name: "stretched", figure: "stretched ms", meaning: "added or taken away to follow the network"),
    ]

    private static let reported = [
        Line(name: "reports", figure: "receiver reports count", meaning: "of senders and receivers"),
        Line(name: "lost", figure: "receiver reports lost", meaning: "packets, by the last report"),
        Line(name: "worst loss, %", figure: "receiver reports worst loss percent", meaning: "between two reports"),
        Line(name: "jitter, ms", figure: "receiver reports jitter ms", meaning: "by the last report"),
        Line(name: "R factor", figure: "receiver reports r factor", meaning: "by the last extended report"),
        Line(name: "MOS, listening", figure: "receiver reports mos listening", meaning: "by the last extended report"),
        Line(name: "MOS, conversing", figure: "receiver reports mos conversational", meaning: "the same"),
    ]

    private func table(_ title: String, _ lines: [Line]) -> String {
        let rows = lines.compactMap { line in
            figures.number(line.figure).map { value in
                "<tr><td>\(line.name)</td><td class=\"n\">\(HTMLText.number(value))</td>"
                    + "<td class=\"soft\">\(line.meaning)</td></tr>\n"
            }
        }
        return rows.isEmpty ? "" : "<table><tr><th colspan=\"3\">\(title)</th></tr>\n\(rows.joined())</table>\n"
    }

    // MARK: Both sides

    private struct Comparison {
        let name: String
        let here: Double?
        let there: Double?
    }

    private func row(_ name: String, _ here: String?, _ there: String) -> Comparison {
        Comparison(name: name, here: here.flatMap { figures.number($0) }, there: figures.number(there))
    }

    private static let shared = [
        ("MOS, conversing", "mos conversational"), ("MOS, listening", "mos listening"), ("R factor", "r factor"),
        ("lost and not recovered, %", "loss percent"), ("late or discarded, %", "discard percent"),
        ("lost or late in bursts, %", "burst loss percent"), ("lost or late between them, %", "gap loss percent"),
        ("a burst, ms", "burst ms"), ("between bursts, ms", "gap ms"),
    ]

    /// What the other side hears of this one, by its RTCP, beside what this one hears.
    private var comparison: String {
        var rows = Self.shared.map { name, figure in row(name, "quality \(figure)", "quality remote \(figure)") }
        let share = figures.number("rtcp fraction lost").map { $0 * 100 }
        rows.append(Comparison(name: "lost since its report before, %", here: nil, there: share))
        rows.append(row("round trip, ms", "rtcp round trip ms", "quality remote round trip ms"))
        rows.append(row("jitter buffer, ms", nil, "quality remote buffer delay ms"))
        rows.append(row("level of speech, dBm0", nil, "quality remote signal level"))
        rows = rows.filter { $0.here != nil || $0.there != nil }
        guard !rows.isEmpty else { return "" }
        // A capture has nothing of the other side's: an empty column is left out.
        let (hasHere, hasThere) = (rows.contains { $0.here != nil }, rows.contains { $0.there != nil })
        func cell(_ value: Double?, _ isThere: Bool) -> String {
            isThere ? "<td class=\"n\">\(value.map { HTMLText.number($0) } ?? "")</td>" : ""
        }
        let head =
            (hasHere ? "<th class=\"n\">this side hears</th>" : "")
            + (hasThere ? "<th class=\"n\">the other side hears, by its RTCP</th>" : "")
        let body = rows.map { row in
            "<tr><td>\(row.name)</td>\(cell(row.here, hasHere))\(cell(row.there, hasThere))</tr>\n"
        }
        return "<table><tr><th>Quality (RFC 3611)</th>\(head)</tr>\n\(body.joined())</table>\n"
    }
}
