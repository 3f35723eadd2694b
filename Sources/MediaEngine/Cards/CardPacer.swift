import CallBasics

/// Starts ticks when a card can move a period: the lowest latency, and no drift against that card.
///
/// While there is no card, or it has no clock of its own, or it stands still, the ticks go by the clock.
/// Thread: media, the one that also runs the filters' ticks.
package final class CardPacer: TickPacer, @unchecked Sendable {
    private let capture: CardFilter?
    private let playback: CardFilter?

    /// Ticks that follow the card of `capture`, or that of `playback` while there is none to capture from.
    package init(capture: CardFilter?, playback: CardFilter?) {
        self.capture = capture
        self.playback = playback
    }

    /// Waits for the card, or for the clock while there is no card that has one.
    package func wait(until deadline: MediaTime, tickDuration: Duration, _ sleeper: Sleeper) -> MediaTime {
        let recorded = capture?.withCard { card in
            card.isClocked ? Self.wait(forCapture: card, until: deadline, tickDuration, sleeper) : nil
        }
        capture?.setsPace = (recorded ?? nil) != nil
        if let time = recorded ?? nil {
            playback?.setsPace = false
            return time
        }
        let isReady = playback?.withCard { card in card.isClocked ? card.wait(timeout: tickDuration * 2) : nil }
        playback?.setsPace = (isReady ?? nil) != nil
        guard (isReady ?? nil) == true else {
            sleeper.sleep(until: deadline)
            return deadline
        }
        // Sound servers wake early and often. No card's clock is off by more than 1000 ppm, so no tick may be either.
        let earliest = deadline - tickDuration / 1000
        let now = MonotonicClock.current
        guard now < earliest else { return now }
        sleeper.sleep(until: earliest)
        return earliest
    }

    /// Waits until the card holds what a tick needs and half a block more, which makes up for its own jitter.
    ///
    /// A card that moves in long steps would bring ticks in bursts: none comes more than a quarter early.
    private static func wait(
        forCapture card: any CardEndpoint,
        until deadline: MediaTime,
        _ tickDuration: Duration,
        _ sleeper: Sleeper
    ) -> MediaTime {
        let block = card.format.frameCount(in: tickDuration)
        let wanted = block + max(card.periodFrameCount > block ? card.periodFrameCount : 0, block / 2)
        var time = deadline - tickDuration / 4
        sleeper.sleep(until: time)
        let latest = deadline + tickDuration * 2
        while time < latest {
            let missing = wanted - card.frameCount(at: time)
            guard missing > 0 else { return time }
            // A step of the card is awaited in pieces, so that no tick comes late by a whole one.
            let pause = min(max(card.format.duration(ofFrames: missing), .milliseconds(1)), tickDuration / 4)
            time = min(MonotonicClock.current + pause, latest)
            sleeper.sleep(until: time)
        }
        return deadline
    }
}
