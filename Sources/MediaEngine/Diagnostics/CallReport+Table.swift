extension CallReport {
    /// The report as a table, one column for each leg, without rows for what cannot be where the packets came from.
    public var table: String {
        var rows: [[String]] = [[""] + legs.map(\.name)]
        for (title, kind, value) in Self.rows where isShown(kind) { rows.append([title] + legs.map(value)) }
        var text = "\(codec) call over \(network), \(seconds) s\n" + Self.aligned(rows)
        if isShown(.sending) {
            for leg in legs { text += "\(leg.name) loss protection: \(leg.lossProtection.reason)\n" }
        }
        text += "ticks: \(ticks.count)"
        if mode == .udp { text += ", \(ticks.late) late, 99 % within \(ticks.p99LatenessMs) ms" }
        text += ticks.lostEvents > 0 ? ", \(ticks.lostEvents) events lost\n" : "\n"
        for card in cards { text += card.line + "\n" }
        for change in routeChanges { text += "route: " + change.line + "\n" }
        return text
    }

    /// What a row is about.
    private enum RowKind {
        case any, sending, socket, echo
    }

    private static let rows: [(title: String, kind: RowKind, value: @Sendable (LegReport) -> String)] = [
        ("sent packets", .sending, { "\($0.sent.packets)" }),
        ("sent bytes", .sending, { "\($0.sent.bytes)" }),
        ("answered as unreachable", .socket, { "\($0.sent.unreachable)" }),
        ("received packets", .any, { "\($0.received.packets)" }),
        ("lost", .any, { "\($0.received.lost)" }),
        ("late", .any, { "\($0.received.late)" }),
        ("duplicate", .any, { "\($0.received.duplicate)" }),
        ("reordered", .any, { "\($0.received.reordered)" }),
        ("discarded", .any, { "\($0.received.discarded)" }),
        ("rejected", .any, { "\($0.received.rejected)" }),
        (
            "of other sources, RTP / RTCP", .any,
            { "\($0.received.refused.packets) / \($0.received.refused.otherControl)" }
        ),
        ("of STUN and DTLS", .any, { "\($0.received.refused.otherProtocol)" }),
        ("dropped by the socket", .socket, { "\($0.received.socketDrops)" }),
        ("concealed ms", .any, { "\($0.received.concealedMs)" }),
        ("recovered by FEC", .any, { "\($0.received.fecRecovered)" }),
        ("recovered by RED", .any, { "\($0.received.redundant)" }),
        ("jitter ms", .any, { "\($0.jitterMs)" }),
        ("playout delay ms", .any, { "\($0.playoutDelayMs)" }),
        ("stretched ms", .any, { "\($0.stretchedMs)" }),
        ("mouth to ear ms", .sending, { known($0.mouthToEarMs) }),
        ("round trip ms", .sending, { known($0.rtcp.roundTripMs) }),
        (
            "loss reported by peer", .sending,
            { $0.rtcp.fractionLost.map { "\(($0 * 1000).rounded() / 10) %" } ?? "unknown" }
        ),
        (
            "loss runs, mean / longest", .sending,
            { $0.rtcp.lossRuns.map { "\($0.mean) / \($0.longest)" } ?? "unknown" }
        ),
        ("loss protection", .sending, { $0.lossProtection.mode.rawValue }),
        ("loss in bursts / gaps", .any, { "\($0.quality.burstLossPercent) / \($0.quality.gapLossPercent) %" }),
        (
            "R factor, estimated", .any,
            { known($0.quality.rFactor) + ($0.quality.scale == .wideband ? " of 129" : "") }
        ),
        (
            "MOS listening / conversing", .any,
            { "\(known($0.quality.mosListening)) / \(known($0.quality.mosConversational))" }
        ),
        ("R factor, says the peer", .sending, { known($0.quality.remote?.rFactor) }),
        ("reports not believed", .sending, { "\($0.quality.implausibleReports)" }),
        ("keys received", .any, { $0.dtmf.isEmpty ? "none" : $0.dtmf }),
        ("level sent dBov", .sending, { "\($0.sentLevel)" }),
        ("level heard dBov", .any, { "\($0.heardLevel)" }),
        ("echo reduced by dB", .echo, { $0.echo.map { "\($0.erleDb)" } ?? "none" }),
        ("echo delay ms", .echo, { $0.echo.map { known($0.delayMs) } ?? "none" }),
    ]

    private func isShown(_ kind: RowKind) -> Bool {
        switch kind {
        case .any: true
        case .sending: mode != .replay
        case .socket: mode == .udp
        case .echo: legs.contains { $0.echo != nil }
        }
    }

    private var network: String {
        switch mode {
        case .udp: "UDP"
        case .virtual: "a simulated network"
        case .replay: "a capture"
        }
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
