/// What a leg's codec adds to delay and impairment, for estimates of its quality.
package struct VoicePath: Hashable, Sendable, BitwiseCopyable {
    /// What the codec costs in the E-model; nil when nothing is known of it.
    package var impairment: CodecImpairment?
    /// From a sample's capture to its packet's sending: the packet's length and the codec's own delay.
    package var sendingDelay: Duration

    /// A path of which nothing is known.
    package init() {
        impairment = nil
        sendingDelay = .zero
    }

    /// The path of the codec with this encoding name and sample rate.
    package init(codecName: String, sampleRate: Int = 8000, sendingDelay: Duration) {
        impairment = CodecImpairment(codecName: codecName, sampleRate: sampleRate)
        self.sendingDelay = sendingDelay
    }

    /// From the other side's mouth to the ear here, if that side's sender is like the one here.
    ///
    /// - Parameters:
    ///   - roundTrip: through the network and back; without it the delay is not known.
    ///   - playoutDelay: from arrival to sound.
    /// - Returns: half the round trip and what both ends add.
    package func oneWayDelay(roundTrip: Duration?, playoutDelay: Duration) -> Duration? {
        roundTrip.map { $0 / 2 + sendingDelay + playoutDelay }
    }
}
