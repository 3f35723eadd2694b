/// Packets in, sound out: the thin filter around a `Playout`.
///
///     packets ─► playout ─► audio
public final class PlayoutFilter: Filter, @unchecked Sendable {
    private let playout: Playout
    private let transport: RTPTransport?
    private let delay: Duration
    private let longestDelay: Duration
    private let published = LatestValue(PlayoutStatistics())
    /// What the transport's reports tell of the sound.
    @exclusivity(unchecked) private var level = SpeechLevel()

    /// A filter that plays with `playout`, of a codec called `codecName`.
    ///
    /// - Parameters:
    ///   - playout: What decodes and decides.
    ///   - codecName: The codec's name, for drawings.
    ///   - delay: How long packets are held back, at least.
    ///   - longestDelay: The most that they are held back when the buffer adapts; nil when it does not.
    ///   - transport: Hears which packets did not serve, and asks how long the others waited, for its reports.
    public init(
        _ playout: Playout,
        codecName: String,
        delay: Duration,
        longestDelay: Duration? = nil,
        transport: RTPTransport? = nil
    ) {
        self.playout = playout
        self.transport = transport
        self.delay = delay
        self.longestDelay = longestDelay ?? delay
        super.init(
            FilterDescription(
                name: "playout",
                purpose: "holds packets back against jitter and decodes \(codecName)",
                inputs: [.packets()],
                outputs: [.audio(playout.format)],
                latency: delay
            )
        )
        transport?.session.playoutQuality = { [weak self] in self?.quality }
    }

    /// What was done so far.
    ///
    /// Thread: any.
    public var statistics: PlayoutStatistics { published.value }

    /// What was done up to and with the present tick.
    ///
    /// Thread: media.
    var currentStatistics: PlayoutStatistics { playout.statistics }

    /// Makes the playout forget its source before the next packet: another sender begins.
    public func startOver() -> GraphCommand { GraphCommand(to: self, "reset") }

    public override func handle(_ command: GraphCommand) {
        if command.name == "reset" { beginSource() }
    }

    private func beginSource() {
        playout.reset()
        level = SpeechLevel()
    }

    public override func process(_ io: borrowing FilterIO) {
        let packets = io.inputPackets()
        for index in 0..<packets.count {
            let header = packets.header(index)
            if header.beginsSource { beginSource() }
            let result = playout.insert(header, payload: packets.payload(index))
            switch result {
            case .late, .refused: transport?.noteDiscard(header.sequenceNumber)
            case .accepted, .restarted:
                // A copy (RED) stands for the packet that is lost.
                if header.isRedundant { transport?.noteRecovery(header.sequenceNumber) }
            case .duplicate: break
            }
        }
        let output = io.output()
        var samples = output.mutableSamples
        playout.play(into: &samples, at: io.time)
        if transport != nil, playout.playsPackets { level.process(samples.span) }
        if let number = playout.recoveredSequenceNumber { transport?.noteRecovery(number) }
        if playout.takeNews() { published.publish(playout.statistics) }
    }

    /// What the transport's reports tell, a few times a minute.
    private var quality: PlayoutQuality {
        let statistics = playout.statistics
        var quality = PlayoutQuality()
        quality.playedCount = statistics.buffer.playedCount
        quality.totalWaitNanoseconds = statistics.totalWaitNanoseconds
        quality.maximumDelay = longestDelay
        quality.absoluteMaximumDelay = longestDelay
        quality.isAdaptive = longestDelay != delay
        quality.speechLevel = level.speechLevel
        quality.noiseLevel = level.noiseLevel
        return quality
    }
}
