/// Starts ticks when a card can move a period: the lowest latency, and no drift against that card.
///
/// While there is no card, or it has no clock of its own, or it stands still, the ticks go by the clock; so they do when
/// another card has taken its place in the graph.
/// Thread: media, the one that also runs the filter's ticks.
public final class CardPacer: TickPacer, @unchecked Sendable {
    private weak let playback: CardPlaybackFilter?
    private weak let capture: CardCaptureFilter?
    private let fallback = DeadlinePacer()

    /// Ticks that follow the card that `filter` plays on.
    ///
    /// Thread: before the filter's first tick.
    public init(_ filter: CardPlaybackFilter) {
        filter.setsPace = true
        playback = filter
        capture = nil
    }

    /// Ticks that follow the card that `filter` captures from.
    ///
    /// Thread: before the filter's first tick.
    public init(_ filter: CardCaptureFilter) {
        filter.setsPace = true
        playback = nil
        capture = filter
    }

    /// Waits for the card, or for the clock while there is no card that has one.
    public func wait(until deadline: MediaTime, tickDuration: Duration) -> MediaTime {
        if let card = capture?.endpoint, card.isClocked {
            return wait(for: card, until: deadline, tickDuration: tickDuration)
        }
        guard let endpoint = playback?.endpoint, endpoint.isClocked, endpoint.wait(timeout: tickDuration * 2) else {
            return fallback.wait(until: deadline, tickDuration: tickDuration)
        }
        // Sound servers wake early and often. No card's clock is off by more than 1000 ppm, so no tick may be either.
        let earliest = deadline - tickDuration / 1000
        let now = MonotonicClock.current
        return now < earliest ? fallback.wait(until: earliest, tickDuration: tickDuration) : now
    }

    /// Waits until the card holds what a tick needs and half a block more, which makes up for its own jitter.
    ///
    /// A card that moves in long steps would bring ticks in bursts: none comes more than a quarter early.
    private func wait(for card: any CardCapture, until deadline: MediaTime, tickDuration: Duration) -> MediaTime {
        let block = card.format.frameCount(in: tickDuration)
        let wanted = block + max(card.periodFrameCount > block ? card.periodFrameCount : 0, block / 2)
        var time = fallback.wait(until: deadline - tickDuration / 4, tickDuration: tickDuration)
        let latest = deadline + tickDuration * 2
        while time < latest {
            let missing = wanted - card.availableFrameCount(at: time)
            guard missing > 0 else { return time }
            // A step of the card is awaited in pieces, so that no tick comes late by a whole one.
            let pause = min(max(card.format.duration(ofFrames: missing), .milliseconds(1)), tickDuration / 4)
            time = fallback.wait(until: min(MonotonicClock.current + pause, latest), tickDuration: tickDuration)
        }
        return fallback.wait(until: deadline, tickDuration: tickDuration)
    }
}
