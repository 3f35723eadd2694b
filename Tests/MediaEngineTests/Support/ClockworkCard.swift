import CallBasics
import MediaEngine

/// A card that counts its frames on a clock of its own, also those that nobody takes or gives: what was really in the
/// air at each of them.
///
/// Its microphone hears `sound`, a function of the card's own frame number; what its loudspeaker plays is kept in
/// `played`, frame by frame. A buffer that runs empty or over costs exactly the frames of that time.
final class ClockworkCard: SoundCard, @unchecked Sendable {
    let description = CardDescription(id: "test:clockwork", name: "clockwork", backend: "test", directions: .duplex)
    let driftPPM: Double
    let hasDriftingClock: Bool
    var faults: [MediaTime]
    let sound: @Sendable (Int) -> Int16
    /// Index: the card's frame number; what was not written in time is `silence`.
    fileprivate(set) var played: [Int16] = []
    static let silence = Int16.min

    init(
        driftPPM: Double = 0,
        faults: [MediaTime] = [],
        keepsPlayed: Int = 0,
        sound: @escaping @Sendable (Int) -> Int16 = { _ in 0 }
    ) {
        self.driftPPM = driftPPM
        hasDriftingClock = driftPPM != 0
        self.faults = faults
        self.sound = sound
        played = [Int16](repeating: Self.silence, count: keepsPlayed)
    }

    func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) -> any CardEndpoint {
        direction == .playback ? Playback(self, configuration) : Capture(self, configuration)
    }

    func position(at time: MediaTime, _ rate: Int) -> Int {
        Int((Double(time.nanoseconds) / 1e9 * Double(rate) * (1 + driftPPM / 1e6)).rounded(.down))
    }

    private final class Playback: CardEndpoint, @unchecked Sendable {
        let direction = CardDirection.playback
        let card: ClockworkCard
        let format: AudioFormat
        let periodFrameCount: Int
        let bufferFrameCount: Int
        let prefill: Int
        var drifts: Bool { card.hasDriftingClock }
        private var end: Int?
        private var nextFault = 0

        init(_ card: ClockworkCard, _ configuration: CardConfiguration) {
            self.card = card
            format = configuration.format
            periodFrameCount = format.frameCount(in: configuration.period)
            bufferFrameCount = format.frameCount(in: configuration.buffer)
            prefill = format.frameCount(in: configuration.prefill)
        }

        func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer {
            let position = card.position(at: now, format.sampleRate)
            var transfer = CardTransfer(frameCount: 0)
            if let end {
                var isXrun = end < position
                while nextFault < card.faults.count, card.faults[nextFault] <= now {
                    nextFault += 1
                    isXrun = true
                }
                if isXrun {
                    transfer.condition = .xrun
                    transfer.lostFrameCount = abs(position - end)
                    for frame in position..<max(position, end) where frame < card.played.count {
                        card.played[frame] = ClockworkCard.silence
                    }
                    self.end = nil
                }
            }
            if end == nil { end = position + prefill }
            guard let start = end else { return transfer }
            transfer.frameCount = min(samples.count, bufferFrameCount - (start - position))
            for index in 0..<transfer.frameCount where start + index < card.played.count {
                card.played[start + index] = samples[index]
            }
            end = start + transfer.frameCount
            return transfer
        }

        func frameCount(at now: MediaTime) -> Int {
            max(0, (end ?? 0) - card.position(at: now, format.sampleRate))
        }

        func restart(at now: MediaTime) { end = nil }
    }

    private final class Capture: CardEndpoint, @unchecked Sendable {
        let direction = CardDirection.capture
        let card: ClockworkCard
        let format: AudioFormat
        let periodFrameCount: Int
        let bufferFrameCount: Int
        var drifts: Bool { card.hasDriftingClock }
        private var start: Int?
        private var nextFault = 0

        init(_ card: ClockworkCard, _ configuration: CardConfiguration) {
            self.card = card
            format = configuration.format
            periodFrameCount = format.frameCount(in: configuration.period)
            bufferFrameCount = 2 * format.frameCount(in: configuration.buffer)
        }

        func frameCount(at now: MediaTime) -> Int {
            let position = card.position(at: now, format.sampleRate)
            if start == nil { start = position }
            return min(position - (start ?? position), bufferFrameCount)
        }

        func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer {
            let available = frameCount(at: now)
            let position = card.position(at: now, format.sampleRate)
            let first = start ?? position
            var isXrun = position - first > bufferFrameCount
            while nextFault < card.faults.count, card.faults[nextFault] <= now {
                nextFault += 1
                isXrun = true
            }
            if isXrun {
                start = position
                return CardTransfer(frameCount: 0, condition: .xrun, lostFrameCount: position - first)
            }
            let count = min(samples.count, available)
            for index in 0..<count { samples[index] = card.sound(first + index) }
            start = first + count
            return CardTransfer(frameCount: count)
        }

        func restart(at now: MediaTime) { start = nil }
    }
}
