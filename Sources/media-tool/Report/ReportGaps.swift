internal import CallBasics
import MediaEngine

/// Where a direction was choppy and why, and what else happened, with what finds it in Wireshark.
struct ReportGaps {
    private let leg: ReportLeg
    private let sources: [TraceEvent]
    private let events: [TraceEvent]

    private static let longestGapTable = 200
    private static let longestEventTable = 50

    /// The gaps and events of `leg`.
    init(_ leg: ReportLeg) {
        self.leg = leg
        let usable = leg.trace.events.filter { $0.kind != .lost && 0...1e12 ~= $0.timeMs }
        events = usable.sorted { $0.timeMs < $1.timeMs }
        sources = events.filter { $0.kind == .sourceChange }
    }

    private var gaps: [AudibleGap] { leg.analysis.gaps }

    /// The section.
    var html: String { "<h3>Gaps</h3>\n" + summary + lane.html + gapTable + eventTable }

    /// Gaps and events over time.
    var lane: GapLane { GapLane(gaps: gaps, events: events, duration: leg.seconds) }

    private var summary: String {
        guard !gaps.isEmpty else { return "<p class=\"good\">There is no audible gap.</p>\n" }
        let total = leg.analysis.totalDuration.milliseconds
        let share = total / (leg.seconds * 10)
        var text = "<p>\(English.count(gaps.count, "audible gap")), "
        text += "\(HTMLText.number(total.rounded())) ms together, \(HTMLText.number(share)) % of the time."
        text += "</p>\n<table><tr><th>Cause</th><th class=\"n\">Gaps</th>"
        text += "<th class=\"n\">ms</th><th>What it is</th></tr>\n"
        for entry in leg.analysis.summary {
            text += "<tr><td>\(Self.mark(entry.cause))</td><td class=\"n\">\(entry.count)</td>"
            text += "<td class=\"n\">\(HTMLText.number(entry.duration.milliseconds.rounded()))</td>"
            text += "<td>\(HTMLText.escaped(entry.cause.explanation))</td></tr>\n"
        }
        return text + "</table>\n"
    }

    // MARK: Every gap

    private var gapTable: String {
        guard !gaps.isEmpty else { return "" }
        let isLong = gaps.count > Self.longestGapTable
        let shown = isLong ? Self.longest(of: gaps) : gaps
        let name = isLong ? "The longest \(shown.count) gaps" : gaps.count == 1 ? "The gap" : "Every gap"
        var text = "<details\(gaps.count <= 20 ? " open" : "")><summary>\(name)</summary>\n<table>"
        text += "<tr><th class=\"n\">At</th>\(clockHead)<th class=\"n\">ms</th><th>Cause</th>"
        if hasNumbers { text += "<th>Heard last before and first after it, in Wireshark</th>" }
        text += "</tr>\n"
        for gap in shown {
            let start = gap.start.milliseconds
            text += "<tr><td class=\"n\">\(HTMLText.time(start / 1000))</td>\(clock(start))"
            text += "<td class=\"n\">\(HTMLText.number(gap.duration.milliseconds.rounded()))</td>"
            text += "<td>\(Self.mark(gap.cause))</td>"
            if hasNumbers { text += "<td><code>\(HTMLText.escaped(packets(gap)))</code></td>" }
            text += "</tr>\n"
        }
        return text + "</table></details>\n"
    }

    private static func longest(of gaps: [AudibleGap]) -> [AudibleGap] {
        let limit = gaps.map(\.duration).sorted(by: >)[longestGapTable - 1]
        let longer = gaps.filter { $0.duration > limit }
        let equal = gaps.filter { $0.duration == limit }.prefix(longestGapTable - longer.count)
        return (longer + equal).sorted { $0.start < $1.start }
    }

    private var hasNumbers: Bool { gaps.contains { $0.lastHeard != nil || $0.nextHeard != nil } }

    /// A display filter that shows the packets around `gap`.
    private func packets(_ gap: AudibleGap) -> String {
        let ssrc = ssrc(at: gap.start.milliseconds).map { "rtp.ssrc == \(CaptureReplay.hexadecimal($0)) && " } ?? ""
        let source = ssrc + (sender.map { "\($0) && " } ?? "")
        switch (gap.lastHeard, gap.nextHeard) {
        case (let last?, let next?) where last <= next: return source + "rtp.seq >= \(last) && rtp.seq <= \(next)"
        // The numbers began again at 0 between them.
        case (let last?, let next?): return source + "(rtp.seq >= \(last) || rtp.seq <= \(next))"
        case (let one?, nil), (nil, let one?): return source + "rtp.seq == \(one)"
        case (nil, nil): return ""
        }
    }

    /// What shows the sender's packets alone, for both sides of a call may have one SSRC; nil where it was not always the same
    /// address, or is not known.
    private var sender: String? {
        guard sources.isEmpty, let text = leg.trace.stream.source, let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...])
        else { return nil }
        let host = text[..<colon].drop { $0 == "[" }.prefix { $0 != "]" && $0 != "%" }
        guard let address = SocketAddress(host: String(host), port: port) else { return nil }
        return "\(address.isIPv4 ? "ip" : "ipv6").src == \(host) && udp.srcport == \(port)"
    }

    /// The source that was heard at a time: the first one, or the one that took over last.
    private func ssrc(at milliseconds: Double) -> UInt32? {
        sources.last { $0.timeMs <= milliseconds }.flatMap { UInt32(exactly: $0.amount) } ?? leg.trace.stream.ssrc
    }

    // MARK: Events

    private var eventTable: String {
        let listed = events.filter { $0.kind != .marker }
        let markers = events.filter { $0.kind == .marker }.reduce(0.0) { $0 + Double($1.amount) }
        var text = ""
        if markers > 0 {
            text += "<p class=\"soft\">\(HTMLText.number(markers)) packet\(markers == 1 ? "" : "s") bore the marker: "
            text += "the sender began anew after silence.</p>\n"
        }
        guard !listed.isEmpty else { return text }
        text += "<h3>Events</h3>\n<table><tr><th class=\"n\">At</th>\(clockHead)<th>What</th></tr>\n"
        for event in listed.prefix(Self.longestEventTable) {
            text += "<tr><td class=\"n\">\(HTMLText.time(event.timeMs / 1000))</td>\(clock(event.timeMs))"
            text += "<td>\(HTMLText.escaped(Self.words(event)))</td></tr>\n"
        }
        text += "</table>\n"
        let rest = listed.count - Self.longestEventTable
        return rest > 0 ? text + "<p>and \(rest) more</p>\n" : text
    }

    private static func words(_ event: TraceEvent) -> String {
        switch event.kind {
        case .sourceChange:
            let ssrc = UInt32(exactly: event.amount).map { ", SSRC \(CaptureReplay.hexadecimal($0))" } ?? ""
            return "Another source, or another address of it, took over\(ssrc)."
        case .restart: return "The source began a new sequence of numbers."
        case .jump: return "Time stamps or numbers jumped; playout began a new line."
        case .codecChange: return "The sender changed to another codec."
        case .xrun: return "The playback card ran empty: \(event.amount) ms were not heard."
        case .lost, .marker: return event.kind.title
        }
    }

    // MARK: Time of day

    private var clockHead: String { leg.trace.stream.startUnixMs == nil ? "" : "<th class=\"n\">UTC</th>" }

    private func clock(_ milliseconds: Double) -> String {
        guard let start = leg.trace.stream.startUnixMs else { return "" }
        let time = UTCTime(unixMilliseconds: start &+ Int64(min(max(milliseconds, 0), 1e12).rounded()))
        return "<td class=\"n\">\(time.time)</td>"
    }

    private static func mark(_ cause: AudibleGap.Cause) -> String {
        "<span class=\"cause\"><i style=\"background:var(--\(cause.rawValue))\"></i>\(HTMLText.escaped(cause.title))</span>"
    }
}
