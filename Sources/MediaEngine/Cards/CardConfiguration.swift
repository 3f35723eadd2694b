/// What is asked of a card when it is opened.
public struct CardConfiguration: Hashable, Sendable {
    /// The samples that go through.
    ///
    /// The rate must be one the card takes; one or two channels are mapped.
    public var format: AudioFormat
    /// Audio that the card moves at once.
    ///
    /// The card may choose another.
    public var period: Duration
    /// Audio that the card's buffer holds in playback.
    ///
    /// The card may choose another. In capture a longer buffer adds no delay: a card then takes one that holds what a
    /// stalled process could not read.
    public var buffer: Duration
    /// Silence put in front of the first block of playback, and after each xrun: what a late tick may cost.
    public var prefill: Duration

    /// The low-latency shape of a call: 10 ms periods, a buffer of three, one of them filled in advance.
    ///
    /// - Parameters:
    ///   - format: The samples that go through.
    ///   - period: Audio that the card moves at once.
    ///   - buffer: Audio that the card's buffer holds in playback; several periods.
    ///   - prefill: Silence put in front of the first block of playback; no more than the buffer holds.
    public init(
        format: AudioFormat,
        period: Duration = .milliseconds(10),
        buffer: Duration = .milliseconds(30),
        prefill: Duration = .milliseconds(10)
    ) {
        self.format = format
        self.period = period
        self.buffer = buffer
        self.prefill = prefill
    }
}
