import Glibc
import MediaEngine

/// A sine that one side sends, and the other hears.
struct Tone {
    static let ours = Tone(frequency: 1000)
    static let baresip = Tone(frequency: 440)
    static let linphone = Tone(frequency: 700)

    let frequency: Double

    /// Writes 10 s of it, in mono.
    func write(to path: String, rate: Int) throws {
        let writer = try WAVWriter(path: path, format: AudioFormat(sampleRate: rate))
        let samples = (0..<(10 * rate)).map { index in
            Int16(8000 * sin(2 * .pi * frequency * Double(index) / Double(rate)))
        }
        try writer.write(samples.span)
    }

    /// For each whole 0.1 s of the file at `path`, whether at least 80 % of what is heard is this tone.
    ///
    /// Source: Goertzel's recurrence; 0.1 s of a frequency that is a multiple of 10 Hz is a whole number of its periods.
    func tenths(of path: String) throws -> [Bool] {
        let (format, samples) = try WAVFile.read(path)
        let mono = stride(from: 0, to: samples.count, by: format.channelCount).map { samples[$0] }
        return tenths(of: mono, rate: format.sampleRate)
    }

    /// The same of samples at a rate.
    func tenths(of samples: [Int16], rate: Int) -> [Bool] {
        let count = rate / 10
        let mono = samples.map(Double.init)
        let factor = 2 * cos(2 * .pi * frequency / Double(rate))
        return stride(from: 0, through: mono.count - count, by: count).map { start in
            var (last, before, energy) = (0.0, 0.0, 0.0)
            for sample in mono[start..<(start + count)] {
                (last, before) = (sample + factor * last - before, last)
                energy += sample * sample
            }
            let power = last * last + before * before - factor * last * before
            // 100 is -50 dBFS: less is not heard.
            return energy > 100 * 100 * Double(count) && 2 * power > 0.8 * energy * Double(count)
        }
    }
}
