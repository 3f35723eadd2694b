import Foundation
import MediaEngine
import Testing

@testable import media_tool

/// Digits of recordings with more than one channel.
@Suite struct ChannelDigitsTests {
    /// A WAV file with the digits of each channel from the times given, in ms; each digit lasts 100 ms.
    private func digits(
        _ channels: [[(digit: String, start: Int)]],
        sampleRate: Int = 8000
    ) throws -> ChannelDigits {
        let format = AudioFormat(sampleRate: sampleRate, channelCount: channels.count)
        var samples = [Int16](repeating: 0, count: 2 * sampleRate * channels.count)
        for (channel, keys) in channels.enumerated() {
            for key in keys {
                let (low, high) = try #require(Self.frequencies[key.digit])
                for frame in 0..<sampleRate / 10 {
                    let time = Double(frame) / Double(sampleRate) * 2 * .pi
                    let place = (key.start * sampleRate / 1000 + frame) * channels.count + channel
                    samples[place] = Int16(6000 * (sin(time * low) + sin(time * high)))
                }
            }
        }
        let scratch = try Scratch()
        try WAVFile.write(scratch.file("a.wav"), format: format, samples: samples)
        return try ChannelDigits(path: scratch.file("a.wav"))
    }

    // ITU-T Q.23.
    private static let frequencies = ["1": (697.0, 1209.0), "5": (770.0, 1336.0), "9": (852.0, 1477.0)]

    @Test(arguments: [8000, 48_000, 6000]) func `each side of a call is heard`(sampleRate: Int) throws {
        // Both press at a time, which no detector would hear in the mean of the two.
        let found = try digits([[("1", 200), ("5", 600)], [("9", 250), ("1", 1200)]], sampleRate: sampleRate)
        #expect(found.channelCount == 2 && found.digits(inChannel: 0) == "15" && found.digits(inChannel: 1) == "91")
        #expect(found.digits == "1951")
        #expect(found.events.map(\.channel) == [0, 1, 0, 1])
    }

    @Test func `what sounds in both channels is one key`() throws {
        let found = try digits([[("1", 200), ("1", 600)], [("1", 200), ("1", 600)]])
        #expect(found.digits == "11" && found.events.count == 4)
    }

    @Test func `one channel is told as before`() throws {
        let found = try digits([[("5", 300)]])
        #expect(found.digits == "5" && found.channelCount == 1 && !found.isTruncated)
        let event = try #require(found.events.first)
        #expect(abs((event.start - .milliseconds(300)).milliseconds) < 10)
        #expect(abs((event.duration - .milliseconds(100)).milliseconds) < 15)
    }
}
