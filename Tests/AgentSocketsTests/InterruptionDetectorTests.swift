@testable import AgentSockets
import CallBasics
import Foundation
import MediaEngine
import Testing

/// Who speaks into what an agent says is heard soon; noise and the echo of the agent are not.
@Suite struct InterruptionDetectorTests {
    /// Speech of 8 kHz, 9 s of it.
    private static let speech: [Int16] = {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Examples/Resources/speech.wav").standardized.path
        guard let (_, samples) = try? WAVFile.read(path) else { return [] }
        return stride(from: 0, to: samples.count - 1, by: 2).map { place -> Int16 in
            let sum = Int(samples[place]) + Int(samples[place + 1])
            return Int16(sum / 2)
        }
    }()

    /// Where words begin behind a pause: blocks of 10 ms.
    private static let onsets: [Int] = {
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
        let echoDelay: Int
        let noiseGain: Double
        /// Where in the speech the agent is, and how many samples it has said.
        var place: Int
        var saidCount = 0
        var detector = InterruptionDetector(sampleRate: 8000)

        /// Passes 10 ms, with what the caller says in them.
        mutating func pass(_ caller: ArraySlice<Int16> = [], gain: Double = 0, agentSpeaks: Bool = true)
            -> InterruptionDetector.Change?
        {
            let speech = InterruptionDetectorTests.speech
            var heard = [Int16](repeating: 0, count: 80)
            for index in 0..<80 {
                let noise = Double(Int16(truncatingIfNeeded: generator.next())) * noiseGain
                let isEcho = agentSpeaks && saidCount + index >= echoDelay
                let echo = isEcho ? Double(speech[(place + index + speech.count - echoDelay) % speech.count]) : 0
                let said = caller.isEmpty ? 0 : Double(caller[caller.startIndex + index]) * gain
                heard[index] = Int16(clamping: Int(noise + echo * echoGain + said))
            }
            let played = agentSpeaks ? InterruptionDetectorTests.power(speech[place..<(place + 80)]) : 0
            place = (place + 80) % (speech.count - 80)
            saidCount += 80
            return detector.process(heard.span, playedPower: played)
        }
    }

    @Test(arguments: [-60.0, -45, -36], [-60.0, -30, -15])
    func `a caller is heard soon, at any level of speech`(noise: Double, echo: Double) throws {
        try #require(Self.onsets.count >= 4)
        var times: [Int] = []
        for (number, onset) in (0..<4).flatMap({ _ in Self.onsets }).enumerated() {
            var generator = SeededGenerator(seed: UInt64(number))
            let delay = Int.random(in: 160...2400, using: &generator)
            let place = Int.random(in: 0..<(Self.speech.count - 80), using: &generator)
            let level = Self.gain(.random(in: -9...0, using: &generator))
            var line = Line(
                generator: generator,
                echoGain: Self.gain(echo),
                echoDelay: delay,
                noiseGain: Self.gain(noise),
                place: place
            )
            for _ in 0..<200 { #expect(line.pass() == nil) }
            var found: Int?
            for block in 0..<60 where found == nil && (onset + block + 1) * 80 <= Self.speech.count {
                let begin = (onset + block) * 80
                if case .started = line.pass(Self.speech[begin..<(begin + 80)], gain: level) { found = block + 1 }
            }
            times.append(10 * (found ?? 100))
        }
        times.sort()
        let (median, late) = (times[times.count / 2], times[times.count * 95 / 100])
        // With a strong echo only a loud caller stands out of it.
        guard echo < -20 else { return #expect(times.count { $0 < 600 } > times.count / 2, "\(times)") }
        #expect(noise < -40 ? median <= 50 && late <= 100 : median <= 80 && late <= 160, "\(times)")
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
            for _ in 0..<6000 { if case .started = line.pass(agentSpeaks: agentSpeaks) { count += 1 } }
        }
        #expect(count == 0)
    }
}
