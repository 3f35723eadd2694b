import Foundation
import Testing

@testable import MediaEngine

@Suite struct FilePlayerFilterTests {
    /// Player → recorder, by hand; answers what was recorded and the events' names.
    private func play(
        _ samples: [Int16],
        _ source: AudioFormat,
        as format: AudioFormat,
        repetition: FileRepetition = .once,
        ticks: Int
    ) throws -> (recorded: [Int16], events: [(event: PlayerEvent, time: MediaTime)], player: FilePlayerFilter) {
        try TestFiles.withTemporaryPath { input in
            try TestFiles.withTemporaryPath { output in
                try WAVFile.write(input, format: source, samples: samples)
                let player = try FilePlayerFilter(path: input, format: format, repetition: repetition)
                let recorder = try FileRecorderFilter(path: output, format: format)
                let rig = try CardRig([(player, recorder)])
                rig.driver.add(player.feed)
                rig.driver.add(recorder.sink)
                rig.driver.run(ticks: ticks)
                try recorder.sink.close()
                let events = rig.events().map { ($0.message.load(as: PlayerEvent.self), $0.time) }
                return (try WAVFile.read(output).1, events, player)
            }
        }
    }

    @Test func `the first sample of the file is the first sample out, and silence follows the last`() throws {
        let mono = AudioFormat(sampleRate: 8000)
        let samples = (1...24_100).map { Int16($0 % 30000) }
        let (recorded, events, player) = try play(samples, mono, as: mono, ticks: 310)
        #expect(Array(recorded[..<24_100]) == samples)
        #expect(recorded[24_100...].allSatisfy { $0 == 0 } && recorded.count == 310 * 80)
        #expect(events.count == 1)
        guard case .ended(24_100) = events.first?.event else { throw UnexpectedEvents() }
        #expect(events.first?.time == MediaTime.zero + .milliseconds(3010))
        #expect(player.isFinished && player.feed.frameCount == 24_100)
    }

    @Test(arguments: [10, 0, -1]) func `a looped file starts over after its pause`(pause: Int) throws {
        let mono = AudioFormat(sampleRate: 8000)
        let samples = [Int16](1...200)
        let (recorded, _, player) = try play(
            samples,
            mono,
            as: mono,
            repetition: .forever(pause: .milliseconds(pause)),
            ticks: 10
        )
        let round = samples + [Int16](repeating: 0, count: 8 * max(pause, 0))
        #expect(recorded == Array((round + round + round + round).prefix(10 * 80)))
        #expect(!player.isFinished)
    }

    @Test(arguments: [
        (1, 2, [Int16(10), 20], [Int16(10), 10, 20, 20]),
        (2, 1, [10, 30, -20, -40], [20, -30]),
        (3, 2, [1, 2, 3, 4, 5, 6], [1, 2, 4, 5]),
        (2, 3, [1, 2, 3, 4], [1, 2, 0, 3, 4, 0]),
    ])
    func `channels are fitted to the port`(from: Int, to: Int, samples: [Int16], expected: [Int16]) throws {
        let (recorded, _, _) = try play(
            samples,
            AudioFormat(sampleRate: 8000, channelCount: from),
            as: AudioFormat(sampleRate: 8000, channelCount: to),
            ticks: 1
        )
        #expect(Array(recorded.prefix(expected.count)) == expected)
    }

    @Test(arguments: [8000, 11_025, 16_000, 44_100, 96_000])
    func `a file of another rate stays aligned and keeps its length`(rate: Int) throws {
        let seconds = 2
        let tone = (0..<rate * seconds).map { Int16(8000 * sin(2 * Double.pi * 440 * Double($0) / Double(rate))) }
        let (recorded, events, player) = try play(
            tone,
            AudioFormat(sampleRate: rate),
            as: AudioFormat(sampleRate: 48_000),
            ticks: 210
        )
        #expect(player.feed.frameCount == 96_000)
        guard case .ended(96_000) = events.first?.event else { throw UnexpectedEvents() }
        // A delay of one output frame would already err by 460.
        for index in 4800..<91_200 {
            let ideal = 8000 * sin(2 * Double.pi * 440 * Double(index) / 48_000)
            guard abs(Double(recorded[index]) - ideal) < 40 else {
                Issue.record("frame \(index) is \(recorded[index]), not \(ideal)")
                return
            }
        }
    }

    private struct UnexpectedEvents: Error {}

    @Test func `the recorder counts what the disk does not take, and silence stands for it`() throws {
        let mono = AudioFormat(sampleRate: 8000)
        try TestFiles.withTemporaryPath { path in
            let recorder = try FileRecorderFilter(path: path, format: mono)
            let rig = try CardRig([(CountingSource(format: mono), recorder)])
            rig.driver.run(ticks: 10)
            recorder.sink.serve()
            #expect(recorder.sink.frameCount == 800)
            // Nobody serves: two seconds fit, in a ring of the next power of two.
            rig.driver.run(ticks: 300)
            let statistics = recorder.statistics.value
            #expect(statistics.framesDropped > 0 && statistics.frames + statistics.framesDropped == 310 * 80)
            let error = try #require(throws: WAVError.self) { try recorder.sink.close() }
            #expect(error.code == .incomplete && recorder.sink.droppedFrameCount == statistics.framesDropped)
            let recorded = try WAVFile.read(path).1
            #expect(recorded.count == statistics.frameCount && recorded.first == 0)
            #expect(recorded[..<statistics.frames].elementsEqual((0..<statistics.frames).map { Int16($0) }))
            #expect(recorded[statistics.frames...].allSatisfy { $0 == 0 })
            rig.driver.run(ticks: 1)
            recorder.sink.serve()
            #expect(try WAVFile.read(path).1.count == recorded.count)
        }
    }
}
