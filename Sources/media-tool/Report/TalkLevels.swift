import Glibc
import MediaEngine

/// How loud both sides of a recorded call were, 20 ms each.
struct TalkLevels {
    /// In dB of full scale.
    let agent: [PlotSeries.Point]
    let other: [PlotSeries.Point]
    /// Of the recording, in seconds.
    let duration: Double

    /// Reads the sound beside a record: the agent is on its left.
    ///
    /// - Throws: `WAVError` when it is no WAV file, or the disk fails
    init(path: String) throws(WAVError) {
        let reader = try WAVReader(path: path)
        let channelCount = reader.format.channelCount
        let frameCount = max(reader.format.sampleRate / 50, 1)
        var block = [Int16](repeating: 0, count: frameCount * channelCount)
        let rate = Double(reader.format.sampleRate)
        var (sides, frames) = ([[PlotSeries.Point](), []], 0)
        while true {
            var room = block.mutableSpan
            let got = try reader.read(into: &room)
            guard got > 0 else { break }
            for side in sides.indices {
                let places = stride(from: min(side, channelCount - 1), to: got * channelCount, by: channelCount)
                let power = places.reduce(0.0) { $0 + Double(block[$1]) * Double(block[$1]) }
                let level = max(10 * log10(power / Double(got) / Self.fullScale), Self.floor)
                sides[side].append(PlotSeries.Point(time: Double(frames) / rate, value: level))
            }
            frames += got
        }
        (agent, other, duration) = (sides[0], sides[1], Double(frames) / rate)
    }

    private static let fullScale = 32_768.0 * 32_768
    /// What is softer is silence.
    static let floor = -70.0
}
