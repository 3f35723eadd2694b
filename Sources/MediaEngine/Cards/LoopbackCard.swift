package import CallBasics
import Synchronization

/// One of two cards that hear each other: what one plays, the other records.
///
/// A frame is recorded `delay` after it was played, and what was not played in time is recorded as silence.
package final class LoopbackCard: SoundCard {
    /// "loopback-1" or "loopback-2", built in, duplex.
    package let description: CardDescription
    private let outgoing: Cable
    private let incoming: Cable

    /// Two cards that hear each other.
    ///
    /// - Parameter delay: From the speaker of one to the microphone of the other; at least one tick, or the last
    ///   block comes too late to be recorded.
    /// - Returns: The two ends.
    package static func pair(delay: Duration = .milliseconds(10)) -> (LoopbackCard, LoopbackCard) {
        let there = Cable(delay: delay)
        let back = Cable(delay: delay)
        return (
            LoopbackCard(name: "loopback-1", outgoing: there, incoming: back),
            LoopbackCard(name: "loopback-2", outgoing: back, incoming: there)
        )
    }

    private init(name: String, outgoing: Cable, incoming: Cable) {
        description = CardDescription(
            id: CardID("builtin:\(name)"),
            name: name,
            backend: "built-in",
            directions: .duplex
        )
        self.outgoing = outgoing
        self.incoming = incoming
    }

    /// Opens it in one direction.
    ///
    /// - Throws: `CardError` when the other card is open in another format.
    package func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint {
        let cable = direction == .playback ? outgoing : incoming
        let sound = try CableEnd(of: cable, configuration.format)
        if direction == .capture { cable.beginListening() }
        return PacedEndpoint(direction, configuration, sound: sound)
    }
}

/// One end of a cable, for as long as a card is open.
private final class CableEnd: PacedSound {
    private let cable: Cable

    init(of cable: Cable, _ format: AudioFormat) throws(CardError) {
        try cable.attach(format)
        self.cable = cable
    }

    deinit { cable.detach() }

    func play(_ samples: Span<Int16>) { cable.play(samples) }

    func record(into samples: inout MutableSpan<Int16>, count: Int) { cable.record(into: &samples, count: count) }
}

/// The connection from the speaker of one card to the microphone of the other.
private final class Cable: Sendable {
    private struct Use {
        var format: AudioFormat
        var count: Int
    }

    /// How its ends are open; nil while none is.
    private let use = Mutex<Use?>(nil)
    private let delay: Duration
    private let ring = RingBuffer<Int16>(minimumCapacity: 1 << 17)
    /// Samples that wait in the ring when all is well, and the most that may.
    private let usualLevel = Atomic<Int>(0)
    private let highestLevel = Atomic<Int>(.max)
    /// Samples at the front of the ring that were said before anybody listened.
    private let staleCount = Atomic<Int>(0)
    /// Whether nothing was left for who listens: what is said next is heard after the delay, as at first.
    private let isDry = Atomic(false)

    init(delay: Duration) {
        self.delay = delay
    }

    /// Opens an end.
    ///
    /// Throws: `CardError` when the other one is open in another format
    func attach(_ format: AudioFormat) throws(CardError) {
        let other = use.withLock { use -> AudioFormat? in
            guard let present = use else {
                use = Use(format: format, count: 1)
                begin(format)
                return nil
            }
            guard present.format == format else { return present.format }
            use?.count += 1
            return nil
        }
        if let other {
            throw CardError(
                .unsupported,
                "The loopback card's other end is open at \(other), not \(format). Open both alike."
            )
        }
    }

    func detach() {
        use.withLock { use in
            use?.count -= 1
            if use?.count == 0 { use = nil }
        }
    }

    /// Nobody speaks or listens yet.
    private func begin(_ format: AudioFormat) {
        let usual = min(format.frameCount(in: delay) * format.channelCount, ring.capacity / 2)
        usualLevel.store(usual, ordering: .relaxed)
        let slack = format.frameCount(in: .milliseconds(100)) * format.channelCount
        highestLevel.store(min(usual + slack, ring.capacity), ordering: .relaxed)
        while ring.pop() != nil {}
        for _ in 0..<usual { ring.push(0) }
        isDry.store(false, ordering: .relaxed)
    }

    /// What was said so far is not to be heard any more.
    func beginListening() {
        staleCount.store(max(0, ring.count - usualLevel.load(ordering: .relaxed)), ordering: .releasing)
    }

    func play(_ samples: Span<Int16>) {
        if isDry.exchange(false, ordering: .acquiringAndReleasing) {
            for _ in 0..<usualLevel.load(ordering: .relaxed) { ring.push(0) }
        }
        ring.push(contentsOf: samples)
    }

    func record(into samples: inout MutableSpan<Int16>, count: Int) {
        for _ in 0..<staleCount.exchange(0, ordering: .acquiringAndReleasing) { _ = ring.pop() }
        if ring.count > highestLevel.load(ordering: .relaxed) {
            // Nobody listened for a while: the delay must not stay that long.
            while ring.count > usualLevel.load(ordering: .relaxed) { _ = ring.pop() }
        }
        for index in 0..<count {
            guard let sample = ring.pop() else {
                isDry.store(true, ordering: .releasing)
                for rest in index..<count { samples[rest] = 0 }
                return
            }
            samples[index] = sample
        }
    }
}
