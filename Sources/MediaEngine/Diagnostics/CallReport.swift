/// What a call, or a test call of two legs, did: one value for the table people read, for JSON, and for tests.
public struct CallReport: Sendable, Hashable {
    /// How punctual the ticks were.
    public struct Ticks: Sendable, Hashable {
        /// Ticks that ran.
        public var count: Int
        /// Ticks that started more than half a tick late.
        public var late: Int
        /// The lateness that 99 % of the ticks did not exceed.
        public var p99LatenessMs: Double
        /// Events of the media thread that found no room on their way, of all calls: keys, goodbyes and stalls that nobody
        /// has heard of may be among them.
        public var lostEvents: Int

        /// The figures of `statistics`, and so many events that were lost.
        package init(_ statistics: TickStatistics, lostEvents: Int = 0) {
            self.lostEvents = lostEvents
            count = statistics.count
            late = statistics.lateCount
            p99LatenessMs = (statistics.lateness.quantile(0.99).milliseconds * 1000).rounded() / 1000
        }
    }

    /// The codec's name.
    public var codec: String
    /// "udp" or "virtual".
    public var mode: String
    /// How long the call lasted.
    public var seconds: Double
    /// One report for each leg in this process.
    public var legs: [LegReport]
    /// How punctual the ticks were.
    public var ticks: Ticks
    /// The cards that the calls use.
    public var cards: [CardReport] = []
    /// The changes of card that the calls went through.
    public var routeChanges: [RouteChange] = []

    /// A report of `legs`.
    public init(codec: String, mode: String, seconds: Double, legs: [LegReport], ticks: Ticks) {
        self.codec = codec
        self.mode = mode
        self.seconds = seconds
        self.legs = legs
        self.ticks = ticks
    }

    /// The report as a table, one column for each leg.
    public var table: String {
        var rows: [[String]] = [[""] + legs.map(\.name)]
        func row(_ title: String, _ value: (LegReport) -> String) { rows.append([title] + legs.map(value)) }
        row("sent packets") { "\($0.sent.packets)" }
        row("sent bytes") { "\($0.sent.bytes)" }
        row("answered as unreachable") { "\($0.sent.unreachable)" }
        row("received packets") { "\($0.received.packets)" }
        row("lost") { "\($0.received.lost)" }
        row("late") { "\($0.received.late)" }
        row("duplicate") { "\($0.received.duplicate)" }
        row("reordered") { "\($0.received.reordered)" }
        row("discarded") { "\($0.received.discarded)" }
        row("rejected") { "\($0.received.rejected)" }
        row("of other sources, RTP / RTCP") { "\($0.received.refused.packets) / \($0.received.refused.otherControl)" }
        row("of STUN and DTLS") { "\($0.received.refused.otherProtocol)" }
        row("dropped by the socket") { "\($0.received.socketDrops)" }
        row("concealed ms") { "\($0.received.concealedMs)" }
        row("recovered by FEC") { "\($0.received.fecRecovered)" }
        row("recovered by RED") { "\($0.received.redundant)" }
        row("jitter ms") { "\($0.jitterMs)" }
        row("playout delay ms") { "\($0.playoutDelayMs)" }
        row("stretched ms") { "\($0.stretchedMs)" }
        row("mouth to ear ms") { $0.mouthToEarMs.map { "\($0)" } ?? "unknown" }
        row("round trip ms") { $0.rtcp.roundTripMs.map { "\($0)" } ?? "unknown" }
        row("loss reported by peer") { $0.rtcp.fractionLost.map { "\(($0 * 1000).rounded() / 10) %" } ?? "unknown" }
        row("loss runs, mean / longest") {
            $0.rtcp.lossRuns.map { "\($0.mean) / \($0.longest)" } ?? "unknown"
        }
        row("loss protection") { $0.lossProtection.mode.rawValue }
        row("loss in bursts / gaps") { "\($0.quality.burstLossPercent) / \($0.quality.gapLossPercent) %" }
        row("R factor, estimated") {
            Self.known($0.quality.rFactor) + ($0.quality.scale == .wideband ? " of 129" : "")
        }
        row("MOS listening / conversing") {
            "\(Self.known($0.quality.mosListening)) / \(Self.known($0.quality.mosConversational))"
        }
        row("R factor, says the peer") { Self.known($0.quality.remote?.rFactor) }
        row("reports not believed") { "\($0.quality.implausibleReports)" }
        row("keys received") { $0.dtmf.isEmpty ? "none" : $0.dtmf }
        row("level sent dBov") { "\($0.sentLevel)" }
        row("level heard dBov") { "\($0.heardLevel)" }
        if legs.contains(where: { $0.echo != nil }) {
            row("echo reduced by dB") { $0.echo.map { "\($0.erleDb)" } ?? "none" }
            row("echo delay ms") { $0.echo.map { $0.delayMs.map { "\($0)" } ?? "unknown" } ?? "none" }
        }
        var text = "\(codec) call over \(mode == "virtual" ? "a simulated network" : "UDP"), \(seconds) s\n"
        text += Self.aligned(rows)
        for leg in legs { text += "\(leg.name) loss protection: \(leg.lossProtection.reason)\n" }
        text += "ticks: \(ticks.count), \(ticks.late) late, 99 % within \(ticks.p99LatenessMs) ms"
        text += ticks.lostEvents > 0 ? ", \(ticks.lostEvents) events lost\n" : "\n"
        for card in cards { text += card.line + "\n" }
        for change in routeChanges { text += "route: " + change.line + "\n" }
        return text
    }

    private static func known(_ value: (some CustomStringConvertible)?) -> String {
        value.map { "\($0)" } ?? "unknown"
    }

    private static func aligned(_ rows: [[String]]) -> String {
        let columnCount = rows.map(\.count).max() ?? 0
        let widths = (0..<columnCount).map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = row.enumerated().map { column, text in
                let padding = String(repeating: " ", count: widths[column] - text.count)
                return column == 0 ? text + padding : padding + text
            }
            return "  " + cells.joined(separator: "  ") + "\n"
        }.joined()
    }
}
