public import CallBasics

/// One direction of an opened card, in the hands of the media thread.
///
/// Thread: media, except that it is made and freed elsewhere; freeing closes the device. No call but `wait` waits, and
/// none allocates or throws: what goes wrong is in the `CardTransfer`.
public protocol CardEndpoint: AnyObject, Sendable {
    /// Whether it plays or records.
    var direction: CardDirection { get }
    /// The samples that go through.
    var format: AudioFormat { get }
    /// Frames that the card moves at once.
    var periodFrameCount: Int { get }
    /// Frames that the card's buffer holds.
    var bufferFrameCount: Int { get }
    /// Whether the card has a clock of its own, so that ticks can follow it. A card without one (ALSA's `null` and
    /// `file` PCMs, the built-in ones) takes data as fast as it is offered: it is paced by the ticks.
    var isClocked: Bool { get }
    /// Whether its frames come and go at another pace than the ticks', which the filter then has to follow.
    ///
    /// Cards with a clock of their own drift, unless that clock makes the ticks.
    var drifts: Bool { get }
    /// What must be served in the background while the endpoint is in use, if anything.
    var service: (any BackgroundService)? { get }

    /// Frames in the card's buffer: written and not heard yet, or recorded and not read yet.
    ///
    /// Times are real ones for a card with a clock of its own, and those at which ticks are due for others.
    func frameCount(at now: MediaTime) -> Int

    /// Gives the card as many frames of `samples` as it takes now, from the first on.
    ///
    /// Shape: interleaved, whole frames of `format`; what the card does not take is offered again.
    func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer

    /// Takes the oldest frames into `samples`, at most as many as it holds.
    ///
    /// Shape: interleaved, whole frames of `format`, from the first sample on.
    func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer

    /// Empties the card's buffer and begins anew, as after an xrun.
    func restart(at now: MediaTime)

    /// Waits until the card can move a period, or `timeout` has passed; answers whether it can.
    ///
    /// Thread: of a driver that follows the card; the only call that waits.
    func wait(timeout: Duration) -> Bool
}

extension CardEndpoint {
    /// No clock.
    public var isClocked: Bool { false }
    /// With a clock of its own it drifts.
    public var drifts: Bool { isClocked }
    /// Nothing to serve.
    public var service: (any BackgroundService)? { nil }
    /// Takes nothing: it does not play.
    public func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer { CardTransfer(frameCount: 0) }
    /// Gives nothing: it does not record.
    public func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer {
        CardTransfer(frameCount: 0)
    }
    /// Answers at once that the card can: there is no clock to wait for.
    public func wait(timeout: Duration) -> Bool { true }
}
