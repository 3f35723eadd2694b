@testable import AgentSockets
import CallBasics
import Foundation
import MediaEngine
import Testing

/// Who speaks into what an agent says is heard soon; noise and the echo of the agent are not.
@Suite struct InterruptionDetectorTests {
    /// Speech of 8 kHz, 9 s of it.
    static let speech: [Int16] = {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Examples/Resources/speech.wav").standardized.path
        guard let (_, samples) = try? WAVFile.read(path) else { return [] }
        return stride(from: 0, to: samples.count - 1, by: 2).map { place -> Int16 in
            let sum = Int(samples[place]) + Int(samples[place + 1])
            return Int16(sum / 2)
        }
    }()

    /// Where words begin behind a pause: blocks of 10 ms.
    static let onsets: [Int] = {
        let loud = stride(from: 0, to: speech.count - 79, by: 80).map { power(speech[$0..<($0 + 80)]) > 3e-4 }
        return loud.indices.dropFirst(20).filter { loud[$0] && !loud[($0 - 15)..<$0].contains(true) && loud[$0 + 1] }
    }()

    private static func power(_ samples: ArraySlice<Int16>) -> Double {
        let energy = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
        return 2 * energy / Double(samples.count) / (32768 * 32768)
    }

    private static func gain(_ decibels: Double) -> Double { Foundation.pow(10, decibels / 20) }

    /// A line on which an agent speaks, and what comes back of that, with noise.
    private struct Line {
        var generator: SeededGenerator
        let echoGain: Double
        var echoDelay: Int
        let noiseGain: Double
        /// Where in the speech the agent is.
        var place: Int
        var ducking = Ducking(sampleRate: 8000, isOn: false)
        var said: [Int16] = []

        /// Passes 20 ms, with what the caller says in them.
        mutating func pass(_ caller: ArraySlice<Int16> = [], gain: Double = 0, agentSpeaks: Bool = true)
            -> InterruptionDetector.Change?
        {
            let speech = InterruptionDetectorTests.speech
            let begin = said.count
            said += agentSpeaks ? speech[place..<(place + 160)] : ArraySlice(repeating: 0, count: 160)
            place = (place + 160) % (speech.count - 160)
            let heard = (0..<160).map { index in
                let noise = Double(Int16(truncatingIfNeeded: generator.next())) * noiseGain
                let source = begin + index - echoDelay
                let echo = source >= 0 ? Double(said[source]) : 0
                let own = caller.isEmpty ? 0 : Double(caller[caller.startIndex + index]) * gain
                return Int16(clamping: Int(noise + echo * echoGain + own))
            }
            let played = Array(said[begin...])
            return ducking.hear(heard.span, played: played.span, isPlaying: true).speech
        }
    }

    /// When callers are heard who begin to speak into an agent that has spoken for a while, in ms; 1000 for those who are not.
    private static func times(noise: Double, echo: Double, after seconds: Double) -> [Int] {
        (0..<(seconds > 2 ? 2 : 4)).flatMap { _ in onsets }.enumerated().map { number, onset in
            var generator = SeededGenerator(seed: UInt64(number))
            let delay = Int.random(in: 160...2400, using: &generator)
            let place = Int.random(in: 0..<(speech.count - 160), using: &generator)
            let level = gain(.random(in: -9...0, using: &generator))
            var line = Line(
                generator: generator,
                echoGain: gain(echo),
                echoDelay: delay,
                noiseGain: gain(noise),
                place: place
            )
            for _ in 0..<Int(seconds * 50) { #expect(line.pass() == nil) }
            for block in 0..<30 where onset * 80 + (block + 1) * 160 <= speech.count {
                let begin = onset * 80 + block * 160
                if case .started = line.pass(speech[begin..<(begin + 160)], gain: level) { return 20 * (block + 1) }
            }
            return 1000
        }.sorted()
    }

    @Test(arguments: [-60.0, -45, -36], [-60.0, -30])
    func `a caller is heard soon, at any level of speech`(noise: Double, echo: Double) throws {
        try #require(Self.onsets.count >= 4)
        let times = Self.times(noise: noise, echo: echo, after: 2)
        let (median, late) = (times[times.count / 2], times[times.count * 95 / 100])
        #expect(noise < -40 ? median <= 60 && late <= 120 : median <= 80 && late <= 160, "\(times)")
    }

    @Test(arguments: [-60.0, -36])
    func `into a strong echo a loud caller is heard at once, and any once the line is known`(noise: Double) {
        #expect(Self.onsets.count >= 4)
        let first = Self.times(noise: noise, echo: -15, after: 2)
        #expect(first.count { $0 < 600 } > first.count * 8 / 10, "\(first)")
        let times = Self.times(noise: noise, echo: -15, after: 10)
        let (median, late) = (times[times.count / 2], times[times.count * 9 / 10])
        #expect(noise < -40 ? median <= 60 && late <= 120 : median <= 80 && late <= 160, "\(times)")
    }

    @Test(arguments: [-60.0, -36], [40, 160, 480, -480])
    func `an echo whose delay changes is no speech`(noise: Double, shift: Int) {
        var line = Line(
            generator: SeededGenerator(seed: 1),
            echoGain: Self.gain(-18),
            echoDelay: 1000,
            noiseGain: Self.gain(noise),
            place: 0
        )
        var count = 0
        for block in 0..<900 {
            if block >= 400, block % 97 == 0 { line.echoDelay += shift * (block / 97 % 2 == 0 ? 1 : -1) }
            if case .started = line.pass() { count += 1 }
        }
        #expect(count == 0)
    }

    @Test(arguments: [-60.0, -40, -25], [true, false])
    func `noise, and the agent's own echo at -15 dB, are no speech`(noise: Double, agentSpeaks: Bool) {
        var count = 0
        for seed in 0..<UInt64(2) {
            var line = Line(
                generator: SeededGenerator(seed: seed),
                echoGain: Self.gain(-15),
                echoDelay: 400 + 200 * Int(seed % 10),
                noiseGain: Self.gain(noise),
                place: 0
            )
            for _ in 0..<3000 { if case .started = line.pass(agentSpeaks: agentSpeaks) { count += 1 } }
        }
        #expect(count == 0)
    }
}
