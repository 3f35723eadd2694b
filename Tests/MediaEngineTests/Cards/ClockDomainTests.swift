import CallBasics
import Foundation
import MediaEngineTesting
import TestSupport
import Testing

@testable import MediaEngine

private let format = AudioFormat(sampleRate: 48_000)
private let configuration = CardConfiguration(format: format)

/// Cards that drift against the ticks, and against each other.
@Suite struct ClockDomainTests {
    /// An hour, or ten minutes, after which the correction has settled as well.
    private static let virtualMinutes = thorough(60, quick: 10)

    private struct Duplex {
        let playback: CardRoute
        let capture: CardRoute
        let rig: CardRig

        /// `sink` hears what is captured; by default, a card on which it is played.
        init(_ speaker: any SoundCard, _ microphone: any SoundCard, source: Filter, sink: Filter? = nil) throws {
            rig = try CardRig()
            playback = rig.route(.playback, speaker, configuration)
            capture = rig.route(.capture, microphone, configuration)
            let sink = sink ?? rig.route(.playback, NullCard(), configuration).filter
            try rig.connect([(source, playback.filter), (capture.filter, sink)])
        }
    }

    @Test(arguments: thorough([50, -50, 300, -300, 1000, -1000], quick: [-300, 1000]))
    func `for an hour a drifting card neither runs dry nor over, and its latency stays`(ppm: Int) throws {
        let card = FaultyCard(driftPPM: ppm)
        let quiet = SilenceFilter(format: format)
        let duplex = try Duplex(card, card, source: quiet)
        duplex.rig.driver.advance(by: .seconds(1))
        let start = (duplex.playback.statistics, duplex.capture.statistics)
        var farthest = 0
        for _ in 0..<Self.virtualMinutes * 6 {
            duplex.rig.driver.advance(by: .seconds(10))
            let (played, recorded) = (duplex.playback.statistics, duplex.capture.statistics)
            farthest = max(farthest, abs(played.latencyFrames - start.0.latencyFrames))
            farthest = max(farthest, abs(recorded.latencyFrames - start.1.latencyFrames))
        }
        // 10 ms are 480 frames.
        #expect(farthest < 480, "\(farthest) frames")
        for statistics in [duplex.playback.statistics, duplex.capture.statistics] {
            #expect(statistics.xruns == 0 && statistics.framesLost == 0 && statistics.shortages == 0)
            #expect(abs(try #require(statistics.ppm) - Double(ppm)) < 1)
        }
        #expect(abs(duplex.capture.statistics.correctionPPM - Double(ppm)) < 3)
        #expect(abs(duplex.playback.statistics.correctionPPM + Double(ppm)) < 3)
    }

    @Test(arguments: [50, -300, 1000])
    func `the rate of a card is known within 5 ppm after 30 s`(ppm: Int) throws {
        let card = FaultyCard(driftPPM: ppm)
        let duplex = try Duplex(card, card, source: SilenceFilter(format: format))
        duplex.rig.driver.advance(by: .seconds(30))
        #expect(abs(try #require(duplex.playback.statistics.ppm) - Double(ppm)) < 5)
        #expect(abs(try #require(duplex.capture.statistics.ppm) - Double(ppm)) < 5)
    }

    @Test(arguments: [300.0, 500, 1400, -1000]) func `sound goes through a drifting card without a click`(ppm: Double)
        throws
    {
        let tone: @Sendable (Int) -> Int16 = { Int16(10_000 * sin(2 * .pi * 1000 / 48_000 * Double($0))) }
        let microphone = ClockworkCard(driftPPM: ppm, sound: tone)
        let speaker = ClockworkCard(driftPPM: -ppm, keepsPlayed: 48_000 * 8)
        let heard = CollectingSink(format: format)
        let duplex = try Duplex(speaker, microphone, source: ToneSource(), sink: heard)
        duplex.rig.driver.advance(by: .seconds(8))
        // A smooth sine bends by at most its amplitude times the square of the angle per frame.
        let bound = 10_000 * pow(2 * Double.pi * 1000 / 48_000, 2) * 1.01 + 4
        let recorded = heard.collected.map(Double.init)
        let played = speaker.played.prefix(48_000 * 7).map(Double.init)
        for sound in [Array(recorded[2400...]), Array(played[2400...])] {
            var bend = 0.0
            for index in 2..<sound.count {
                bend = max(bend, abs(sound[index] - 2 * sound[index - 1] + sound[index - 2]))
            }
            #expect(bend < bound)
        }
    }

    // MARK: Xruns

    @Test func `what is recorded after an xrun is as late as before, to the sample`() throws {
        // The microphone hears numbers: 1, 2, 3 … 30000, 1, 2 …
        let microphone = ClockworkCard(faults: times(1003, 2500, 9010)) { Int16($0 % 30_000 + 1) }
        let heard = CollectingSink(format: format)
        let duplex = try Duplex(NullCard(), microphone, source: SilenceFilter(format: format), sink: heard)
        duplex.rig.driver.advance(by: .seconds(12))
        let statistics = duplex.capture.statistics
        #expect(statistics.xruns == 3)
        #expect(statistics.framesInserted == statistics.framesLost && statistics.framesLost > 0)
        let lateness = lateness(of: heard.collected)
        #expect(lateness.count == 1, "\(lateness)")
        // Nothing else is missing.
        let silent = heard.collected.dropFirst(1000).count { $0 == 0 }
        #expect(silent == statistics.framesInserted)
    }

    @Test(arguments: [10, 4, 16]) func `what is played after an xrun is heard as late as before`(prefillMs: Int) throws
    {
        let speaker = ClockworkCard(faults: times(1003, 2500, 9010), keepsPlayed: 48_000 * 12)
        var shape = configuration
        shape.prefill = .milliseconds(prefillMs)
        let rig = try CardRig()
        let playback = rig.route(.playback, speaker, shape)
        try rig.connect([(NumberSource(), playback.filter)])
        rig.driver.advance(by: .seconds(12))
        #expect(playback.statistics.xruns == 3)
        let lateness = lateness(of: speaker.played.prefix(48_000 * 11))
        #expect(lateness == [prefillMs * 48], "\(lateness)")
    }

    @Test func `ticks that are skipped are missing on both sides, and nothing else has moved`() throws {
        let speaker = ClockworkCard(keepsPlayed: 48_000 * 3)
        let microphone = ClockworkCard { Int16($0 % 30_000 + 1) }
        let heard = CollectingSink(format: format)
        let duplex = try Duplex(speaker, microphone, source: NumberSource(), sink: heard)
        duplex.rig.driver.advance(by: .seconds(1))
        // Three ticks are skipped: sound of 30 ms was never made, and none was taken.
        duplex.rig.driver.clock.advance(by: .milliseconds(30))
        var late = duplex.rig.driver.clock.now
        for _ in 0..<150 {
            duplex.rig.runner.tick(at: late)
            late += .milliseconds(10)
        }
        let played = lateness(of: speaker.played.prefix(48_000 * 2))
        // The numbers went on where they were, three blocks later.
        #expect(played == [480, 480 + 3 * 480], "\(played)")
        let recorded = lateness(of: heard.collected)
        let usual = try #require(recorded.max())
        #expect(recorded == [usual, usual - 3 * 480], "\(recorded)")
    }

    @Test(arguments: thorough([200.0, -500], quick: [-500]))
    func `an xrun of a drifting card moves nothing by more than a sample`(ppm: Double)
        throws
    {
        let tone: @Sendable (Int) -> Int16 = { frame in
            // In real time, so that the card's own rate drops out.
            Int16(20_000 * sin(2 * .pi * 100 * Double(frame) / (48_000 * (1 + ppm / 1e6))))
        }
        var places: [Double] = []
        for faults in [[], times(20_005)] {
            let microphone = ClockworkCard(driftPPM: ppm, faults: faults, sound: tone)
            let heard = CollectingSink(format: format, capacity: 48_000 * 22)
            let duplex = try Duplex(NullCard(), microphone, source: SilenceFilter(format: format), sink: heard)
            duplex.rig.driver.advance(by: .milliseconds(21_100))
            #expect(duplex.capture.statistics.xruns == faults.count)
            places.append(phase(heard.collected[(48_000 * 21)..<(48_000 * 21 + 4800)]))
        }
        #expect(abs(places[0] - places[1]) < 1, "\(places)")
    }

    @Test func `frames that come late are left out, so that latency does not grow`() throws {
        let card = FaultyCard([ScriptedFault(.stall(.milliseconds(400)), at: .zero + .seconds(5))], driftPPM: 150)
        let duplex = try Duplex(card, card, source: SilenceFilter(format: format))
        duplex.rig.driver.advance(by: .seconds(4))
        let before = (duplex.playback.statistics, duplex.capture.statistics)
        duplex.rig.driver.advance(by: .seconds(20))
        let after = (duplex.playback.statistics, duplex.capture.statistics)
        #expect(abs(after.0.latencyFrames - before.0.latencyFrames) < 48)
        #expect(abs(after.1.latencyFrames - before.1.latencyFrames) < 48)
        #expect(after.0.xruns == 0 && after.1.xruns == 0)
        #expect(abs(try #require(after.1.ppm) - 150) < 5)
    }

    @Test func `a card without a clock, or without drift, is passed on bit for bit`() throws {
        let (one, other) = LoopbackCard.pair(delay: .milliseconds(20))
        let heard = CollectingSink(format: format)
        let duplex = try Duplex(one, other, source: CountingSource(format: format), sink: heard)
        duplex.rig.driver.advance(by: .seconds(10))
        // Silence at first, while blocks gather and in the cable; then every number follows its predecessor.
        #expect(heard.breakCount <= 960 + 960 + 1)
        #expect(duplex.capture.statistics.ppm == nil && duplex.capture.statistics.correctionPPM == 0)
    }

    /// By how many frames numbers come later than they were counted, in all of `samples`.
    private func lateness(of samples: some Sequence<Int16>) -> Set<Int> {
        Set(
            samples.enumerated().filter { $0.element > 0 }.map { index, number in
                let distance = (index - Int(number) + 1) % 30_000
                return distance > 15_000 ? distance - 30_000 : distance < -15_000 ? distance + 30_000 : distance
            }
        )
    }

    private func times(_ milliseconds: Int...) -> [MediaTime] { milliseconds.map { .zero + .milliseconds($0) } }

    /// The place of a sine of 100 Hz in samples of 48 kHz.
    private func phase(_ samples: ArraySlice<Int16>) -> Double {
        var (real, imaginary) = (0.0, 0.0)
        for index in samples.indices {
            let angle = 2 * Double.pi * 100 * Double(index) / 48_000
            real += Double(samples[index]) * sin(angle)
            imaginary += Double(samples[index]) * cos(angle)
        }
        return atan2(imaginary, real) / (2 * .pi) * 480
    }
}

/// Gives the numbers from 1 to 30000, again and again.
private final class NumberSource: Filter, @unchecked Sendable {
    private var next = 0

    init() {
        super.init(FilterDescription(name: "numbers", purpose: "counts", outputs: [.audio(format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        var samples = io.output().mutableSamples
        for index in samples.indices {
            samples[index] = Int16(next % 30_000 + 1)
            next += 1
        }
    }
}

/// A sine of 1000 Hz.
private final class ToneSource: Filter, @unchecked Sendable {
    private var next = 0

    init() {
        super.init(FilterDescription(name: "tone", purpose: "1000 Hz", outputs: [.audio(format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        var samples = io.output().mutableSamples
        for index in samples.indices {
            samples[index] = Int16(10_000 * sin(2 * .pi * 1000 / 48_000 * Double(next)))
            next += 1
        }
    }
}
