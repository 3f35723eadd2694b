internal import CallBasics
import MediaEngine

/// What the receivers of the streams in a capture report of them by RTCP (RFC 3550, section 6.4; RFC 3611, section 4.7).
struct CapturedReports: Sendable {
    /// What was reported of one stream.
    struct Report: Sendable {
        /// Reports.
        var count = 0
        /// Packets that never came, by the last report; below 0 when more came twice.
        var lost = 0
        /// The largest share that was lost between two reports, 0 to 1.
        var worstFraction = 0.0
        /// Interarrival jitter of the last report, in units of the clock rate.
        var jitter: UInt32 = 0
        /// The metrics of the last extended report that has some which can be.
        var metrics: RTCPVoIPMetrics?

        /// The figures as scripts get them; jitter in ms where the stream's clock is known.
        func json(clockRate: Int?) -> JSONValue {
            let milliseconds = clockRate.map { (Double(jitter) * 100_000 / Double(max($0, 1))).rounded() / 100 }
            return [
                "count": .integer(count),
                "lost": .integer(lost),
                "worstLossPercent": .number((worstFraction * 1000).rounded() / 10),
                "jitterMs": JSONValue(milliseconds),
                "rFactor": JSONValue(metrics?.knownRFactor.map(Double.init)),
                "mosListening": JSONValue(metrics?.knownListeningQuality),
                "mosConversational": JSONValue(metrics?.knownConversationalQuality),
            ]
        }
    }

    /// Both sides may choose one SSRC: reports go to the host that sends the stream.
    private struct Key: Hashable {
        let ssrc: UInt32
        let sender: SocketAddress

        init(_ ssrc: UInt32, _ sender: SocketAddress) {
            self.ssrc = ssrc
            self.sender = sender.with(port: 0)
        }
    }

    private var reports: [Key: Report] = [:]

    /// Streams that something was reported of.
    var count: Int { reports.count }

    /// What was reported of the stream of `ssrc` that `sender` sends; nil when nothing was.
    func report(of ssrc: UInt32, from sender: SocketAddress) -> Report? { reports[Key(ssrc, sender)] }

    /// Takes the reports in `datagram`, if it is RTCP that can be read.
    mutating func add(_ datagram: CapturedDatagram) {
        let bytes = datagram.payload.span
        guard DatagramKind(of: bytes) == .rtcp,
            var compound = try? RTCPCompound(parsing: bytes, allowsReducedSize: true)
        else { return }
        while let packet = compound.next(in: bytes) {
            switch packet {
            case .senderReport(let report): add(report.blocks, bytes, datagram.destination)
            case .receiverReport(let report): add(report.blocks, bytes, datagram.destination)
            case .extendedReport(var report):
                while let block = report.next(in: bytes) {
                    guard case .voipMetrics(let metrics) = block, metrics.isPlausible else { continue }
                    note(metrics.ssrc, datagram.destination) { $0.metrics = metrics }
                }
            case .sourceDescription, .goodbye, .other: break
            }
        }
    }

    private mutating func add(_ blocks: RTCPReportBlocks, _ bytes: Span<UInt8>, _ sender: SocketAddress) {
        for index in 0..<blocks.count {
            guard let block = blocks.block(index, in: bytes) else { continue }
            note(block.ssrc, sender) { report in
                report.count += 1
                report.lost = Int(block.cumulativeLost)
                report.worstFraction = max(report.worstFraction, Double(block.fractionLost) / 256)
                report.jitter = block.jitter
            }
        }
    }

    private mutating func note(_ ssrc: UInt32, _ sender: SocketAddress, _ change: (inout Report) -> Void) {
        let key = Key(ssrc, sender)
        guard reports[key] != nil || reports.count < CapturedStreams.maximumStreamCount else { return }
        change(&reports[key, default: Report()])
    }
}
