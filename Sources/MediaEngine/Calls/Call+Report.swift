import CallBasics
package import RTP
import Synchronization

extension Call {
    /// What was sent and received so far.
    ///
    /// - Parameter peer: The call at the other end when it is in this engine; then the delay from mouth to ear is
    ///   known.
    /// - Returns: The counters, read at once, as of the last tick.
    public func report(hearing peer: Call? = nil) -> LegReport {
        let keys = receivedKeys
        let stream = stream
        let rtp = stream.rtpStatistics
        var report = LegReport(
            name: name,
            rtp: rtp,
            socketDropCount: stream.socketDropCount,
            unreachableCount: stream.unreachableCount,
            playout: stream.playout.statistics,
            format: stream.heardFormat,
            mouthToEar: peer.flatMap { mouthToEar(from: $0) },
            voicePath: stream.voicePath,
            dtmf: keys,
            protection: protection,
            sentLevel: stream.sendMeter.speechLevel ?? sentLevel.rms,
            heardLevel: stream.receiveMeter.speechLevel ?? heardLevel.rms,
            echo: state.withLock { $0.sections?.place.voice }?.filter.statistics
        )
        report.endpoints.localAddress = localAddress.description
        report.endpoints.remoteAddress = (rtp.remoteAddress ?? stream.agreement.remote)?.description
        report.endpoints.localSSRC = rtp.localSSRC
        report.endpoints.remoteSSRC = rtp.remoteSSRC
        return report
    }

    private var protection: LegReport.Protection {
        let policy = state.withLock { $0.protection }
        switch configuration.stream.fec {
        case .auto:
            return LegReport.Protection(mode: policy.current.mode, reason: policy.reason, changes: policy.changeCount)
        case .on: return LegReport.Protection(mode: .fec, reason: "always on, as configured", changes: 0)
        case .off: return LegReport.Protection(mode: .none, reason: "off, as configured", changes: 0)
        }
    }

    /// From the capture of the sound that was played last to its playing, the codec's own delay included.
    private func mouthToEar(from peer: Call) -> Duration? {
        let played = stream.playout.statistics
        let anchor = peer.stream.sender.senderAnchor
        // Time stamps of a codec with another clock rate do not compare.
        guard played.hasPlayed, let timestamp = anchor.timestamp,
            peer.stream.codec.clockRate == stream.codec.clockRate
        else { return nil }
        let distance = Int32(bitPattern: played.lastPlayTimestamp &- timestamp)
        let units = Int64(distance) * 1_000_000_000 / Int64(stream.codec.clockRate)
        let captured = anchor.time + .nanoseconds(units)
        return played.lastPlayTime - captured + peer.stream.codecDelay
    }

    /// What was sent and received, with the source that is heard, as of the last tick.
    package var rtpStatistics: RTPStatistics { stream.rtpStatistics }

    /// How long what came last may still wait to be heard, as of the last tick.
    package var playoutDelay: Duration {
        let buffer = stream.playout.statistics.buffer
        return .nanoseconds(max(buffer.playoutDelayNanoseconds, buffer.targetDelayNanoseconds))
    }

    /// What went through the card that this call alone plays on; nil when it plays on none, or on the engine's.
    package var playbackStatistics: CardStatistics? { sink.route?.statistics }

    /// What the cards that this call alone uses did so far.
    var cardReports: [CardReport] {
        [source.route, sink.route].compactMap(\.self).map { CardReport($0) }
    }
}
