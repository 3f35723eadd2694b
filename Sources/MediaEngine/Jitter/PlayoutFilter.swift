/// Packets in, sound out: the thin filter around a `Playout`.
///
///     packets ─► playout ─► audio
public final class PlayoutFilter: Filter, @unchecked Sendable {
    private let playout: Playout
    private let published = LatestValue(PlayoutStatistics())

    /// A filter that plays with `playout`, of a codec called `codecName`.
    ///
    /// - Parameters:
    ///   - playout: What decodes and decides.
    ///   - codecName: The codec's name, for drawings.
    ///   - delay: How long packets are held back, for drawings.
    public init(_ playout: Playout, codecName: String, delay: Duration) {
        self.playout = playout
        super.init(
            FilterDescription(
                name: "playout",
                purpose: "holds packets back against jitter and decodes \(codecName)",
                inputs: [.packets()],
                outputs: [.audio(playout.format)],
                latency: delay
            )
        )
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
        if command.name == "reset" { playout.reset() }
    }

    public override func process(_ io: borrowing FilterIO) {
        let packets = io.inputPackets()
        for index in 0..<packets.count {
            let header = packets.header(index)
            if header.beginsSource { playout.reset() }
            playout.insert(header, payload: packets.payload(index))
        }
        let output = io.output()
        var samples = output.mutableSamples
        playout.play(into: &samples, at: io.time)
        if playout.takeNews() { published.publish(playout.statistics) }
    }
}
