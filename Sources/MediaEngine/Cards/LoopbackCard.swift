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
        let sound = try cable.attach(configuration.format)
        if direction == .capture { cable.beginListening() }
        return PacedEndpoint(direction, configuration, sound: sound)
    }
}

/// The connection from the speaker of one card to the microphone of the other.
private final class Cable: PacedSound {
    private let attached = Mutex<AudioFormat?>(nil)
    private let delay: Duration
    private let ring = RingBuffer<Int16>(minimumCapacity: 1 << 17)
    /// Samples that wait in the ring when all is well, and the most that may.
    private let usualLevel = Atomic<Int>(0)
    private let highestLevel = Atomic<Int>(.max)
    /// Samples at the front of the ring that were said before anybody listened.
    private let staleCount = Atomic<Int>(0)

    init(delay: Duration) {
        self.delay = delay
    }

    func attach(_ format: AudioFormat) throws(CardError) -> any PacedSound {
        let (other, wasFirst) = attached.withLock { attached in
            defer { attached = attached ?? format }
            return (attached ?? format, attached == nil)
        }
        guard other == format else {
            throw CardError(
                .unsupported,
                "The loopback card's other end is open at \(other), not \(format). Open both alike."
            )
        }
        guard wasFirst else { return self }
        let usual = min(format.frameCount(in: delay) * format.channelCount, ring.capacity / 2)
        usualLevel.store(usual, ordering: .relaxed)
        let slack = format.frameCount(in: .milliseconds(100)) * format.channelCount
        highestLevel.store(min(usual + slack, ring.capacity), ordering: .relaxed)
        for _ in 0..<usual { ring.push(0) }
        return self
    }

    /// What was said so far is not to be heard any more.
    func beginListening() {
        staleCount.store(max(0, ring.count - usualLevel.load(ordering: .relaxed)), ordering: .releasing)
    }

    func play(_ samples: Span<Int16>) {
        ring.push(contentsOf: samples)
    }

    func record(into samples: inout MutableSpan<Int16>, count: Int) {
        for _ in 0..<staleCount.exchange(0, ordering: .acquiringAndReleasing) { _ = ring.pop() }
        if ring.count > highestLevel.load(ordering: .relaxed) {
            // Nobody listened for a while: the delay must not stay that long.
            while ring.count > usualLevel.load(ordering: .relaxed) { _ = ring.pop() }
        }
        for index in 0..<count { samples[index] = ring.pop() ?? 0 }
    }
}
