import CallBasics
package import RTP

/// What a playout filter can be asked for.
package enum PlayoutCommand: Sendable, BitwiseCopyable {
    /// Takes over what waits in another playout, in whose place it is put at the same edge of a tick.
    case takeOver(Unmanaged<PlayoutFilter>)
}

/// What the playout did, on its way to the session that reports on it, and what is expected of the source, on its way back.
///
/// What became of packets goes to the session in the same tick, the rest when a report is made.
///
/// Thread: media.
package final class PlayoutFeedback {
    // One thread owns these, and no access lasts longer than a call, so checking each would be a waste of the tick.
    /// Whether a packet's fate has become known since the report was taken last.
    @exclusivity(unchecked) package var hasFates = false
    /// What was done since it was taken last.
    @exclusivity(unchecked) package var report = PlayoutReport()
    /// What is to come.
    @exclusivity(unchecked) package var expectedMedia = ExpectedMedia.sound

    /// Nothing done yet.
    package init() {}
}

/// Packets in, sound out: the thin filter around a `Playout`.
///
///     packets ─► playout ─► audio
package final class PlayoutFilter: ControlledFilter<PlayoutCommand, Never>, @unchecked Sendable {
    private let playout: Playout
    private let feedback: PlayoutFeedback?
    private let published = LatestValue(PlayoutStatistics())
    /// What extended reports tell of the sound: of what came in packets, as it came (RFC 3611, section 4.7.4).
    ///
    /// The meter behind the call's gain hears other sound: what was invented, too, and as loud as it is heard.
    @exclusivity(unchecked) private var level = SpeechLevel()
    private var ticksToLevels = 0

    /// Ticks between two looks at the levels, which reports tell a few times a minute.
    private static let levelInterval = 50

    /// A filter that plays with `playout`, of a codec called `codecName`.
    ///
    /// - Parameters:
    ///   - playout: What decodes and decides.
    ///   - codecName: The codec's name, for drawings.
    ///   - delay: How long packets are held back.
    ///   - feedback: Hears what became of packets, and how the sound is.
    ///   - isFirst: Whether no media thread knows `feedback` yet.
    package init(
        _ playout: Playout,
        codecName: String,
        delay: PlayoutDelay,
        feedback: PlayoutFeedback? = nil,
        isFirst: Bool = true
    ) {
        self.playout = playout
        self.feedback = feedback
        super.init(
            FilterDescription(
                name: "playout",
                purpose: "holds packets back against jitter and decodes \(codecName)",
                inputs: [.packets()],
                outputs: [.audio(playout.format)],
                latency: delay.shortest
            )
        )
        guard isFirst else { return }
        feedback?.report.quality.maximumDelay = delay.longest
        feedback?.report.quality.absoluteMaximumDelay = delay.longest
        feedback?.report.quality.isAdaptive = delay.longest != delay.shortest
    }

    /// What was done so far.
    ///
    /// Thread: any.
    package var statistics: PlayoutStatistics { published.value }

    /// What was done up to and with the present tick.
    ///
    /// Thread: media.
    var currentStatistics: PlayoutStatistics { playout.statistics }

    package override func handle(_ command: PlayoutCommand) {
        switch command {
        case .takeOver(let other):
            other._withUnsafeGuaranteedRef { other in
                playout.takeOver(other.playout)
                level = other.level
            }
            published.publish(playout.statistics)
        }
    }

    package override func process(_ io: borrowing FilterIO) {
        let packets = io.inputPackets()
        for index in 0..<packets.count {
            let header = packets.header(index)
            if header.beginsSource {
                playout.reset()
                level = SpeechLevel()
            } else if header.beginsNumbers {
                playout.beginNumbers(at: header.sequenceNumber)
            }
            let result = playout.insert(header, payload: packets.payload(index))
            guard let feedback else { continue }
            switch result {
            case .late, .refused:
                // A packet of a number only had nothing to be played.
                guard !header.isNumberOnly else { break }
                feedback.report.discarded.append(header.sequenceNumber)
                feedback.hasFates = true
            case .accepted, .restarted:
                // A copy (RED) stands for the packet that is lost.
                guard header.isRedundant else { break }
                feedback.report.rebuilt.append(header.sequenceNumber)
                feedback.hasFates = true
            case .duplicate: break
            }
        }
        let output = io.output()
        var samples = output.mutableSamples
        if let feedback { playout.expectedMedia = feedback.expectedMedia }
        playout.play(into: &samples, at: io.time)
        if feedback != nil, playout.playsPackets { level.process(samples.span) }
        guard playout.takeNews() else { return }
        let statistics = playout.statistics
        published.publish(statistics)
        if let feedback { tell(statistics, feedback) }
    }

    private func tell(_ statistics: PlayoutStatistics, _ feedback: PlayoutFeedback) {
        if let number = playout.recoveredSequenceNumber {
            feedback.report.rebuilt.append(number)
            feedback.hasFates = true
        }
        if playout.hasDiscarded {
            playout.takeDiscarded(into: &feedback.report.discarded)
            feedback.hasFates = true
        }
        feedback.report.quality.playedCount = statistics.buffer.playedCount
        feedback.report.quality.totalWaitNanoseconds = statistics.totalWaitNanoseconds
        feedback.report.quality.interruptions = statistics.buffer.interruptions
        ticksToLevels &-= 1
        if ticksToLevels < 0 {
            ticksToLevels = Self.levelInterval
            feedback.report.quality.speechLevel = level.speechLevel
            feedback.report.quality.noiseLevel = level.noiseLevel
        }
    }
}
