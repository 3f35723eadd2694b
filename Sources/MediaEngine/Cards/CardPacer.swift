/// Starts ticks when a card can move a period: the lowest latency, and no drift against that card.
///
/// While there is no card, or it has no clock of its own, or it stands still, the ticks go by the clock; so they do when
/// another card has taken its place in the graph.
/// Thread: media, the one that also runs the filter's ticks.
public final class CardPacer: TickPacer, @unchecked Sendable {
    private let endpoint: @Sendable () -> (any CardEndpoint)?
    private let fallback = DeadlinePacer()

    /// Ticks that follow the card that `filter` plays on.
    public convenience init(_ filter: CardPlaybackFilter) {
        self.init { [weak filter] in filter?.endpoint }
    }

    /// Ticks that follow the card that `filter` captures from.
    public convenience init(_ filter: CardCaptureFilter) {
        self.init { [weak filter] in filter?.endpoint }
    }

    private init(_ endpoint: @escaping @Sendable () -> (any CardEndpoint)?) {
        self.endpoint = endpoint
    }

    /// Waits for the card, or for the clock while there is no card that has one.
    public func wait(until deadline: MediaTime, tickDuration: Duration) -> MediaTime {
        guard let endpoint = endpoint(), endpoint.isClocked, endpoint.wait(timeout: tickDuration * 2) else {
            return fallback.wait(until: deadline, tickDuration: tickDuration)
        }
        // Sound servers wake early and often. No card's clock is off by more than 1000 ppm, so no tick may be either.
        let earliest = deadline - tickDuration / 1000
        let now = MonotonicClock.current
        return now < earliest ? fallback.wait(until: earliest, tickDuration: tickDuration) : now
    }
}
