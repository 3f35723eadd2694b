import CallBasics
import Synchronization
import Testing

@testable import MediaEngine

/// What a card has recorded while the media thread was stopped is taken by the ticks that make up for the stall.
@Suite struct StalledCaptureTests {
    private static let format = AudioFormat(sampleRate: 48_000)

    /// A microphone with a clock of its own, which hears each frame's number.
    private final class Microphone: SoundCard, CardEndpoint, Sendable {
        let description = CardDescription(id: "test:real", name: "real", backend: "test", directions: [.capture])
        let direction = CardDirection.capture
        let format = StalledCaptureTests.format
        let periodFrameCount = 480
        let bufferFrameCount = 19_200
        let isClocked = true
        let drifts = false
        private let state = Mutex((now: 0, taken: 0))

        /// The clock, in ms.
        func move(to now: Int) { state.withLock { $0.now = now } }

        func open(_: CardDirection, _: CardConfiguration, at: MediaTime) -> any CardEndpoint { self }
        func frameCount(at now: MediaTime) -> Int { state.withLock { $0.now * 48 - $0.taken } }
        func restart(at now: MediaTime) {}

        func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer {
            let room = samples.count
            let (first, count) = state.withLock { state in
                let count = min(room, state.now * 48 - state.taken)
                defer { state.taken += count }
                return (state.taken, count)
            }
            for index in 0..<count { samples[index] = Int16(truncatingIfNeeded: first + index + 1) }
            return CardTransfer(frameCount: count)
        }
    }

    @Test(arguments: [30, 80, 200]) func `nothing recorded during a stall is left out`(stall: Int) throws {
        let card = Microphone()
        let heard = CollectingSink(format: Self.format)
        let rig = try CardRig()
        let route = rig.route(.capture, card)
        try rig.connect([(route.filter, heard)])
        rig.serve()
        var started = 0
        for tick in 1...300 {
            let due = tick * 10
            // Once a second the thread stands; the ticks that were due then follow each other at once.
            started = max(due, started)
            if due % 1000 == 0 { started = due + stall }
            card.move(to: started)
            rig.runner.tick(at: .zero + .milliseconds(due), lateness: .milliseconds(started - due))
        }
        #expect(route.statistics.framesLost == 0 && route.statistics.shortages == 0)
        let samples = heard.collected.drop { $0 == 0 }
        #expect(samples.count > 290 * 480)
        #expect(zip(samples, samples.dropFirst()).allSatisfy { $0 &+ 1 == $1 })
    }
}
