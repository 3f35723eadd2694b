import Glibc

/// A signal to send when there is no other: half a second of rising chirp, half a second of silence, and so on.
///
/// A chirp is found again by correlation to the sample, and shows on every codec what it lets through.
public enum TestSignal {
    private static let startFrequency = 300.0
    private static let endFrequency = 3300.0
    private static let amplitude = 0.25 * 32767

    /// `seconds` of the signal; in every channel the same.
    public static func samples(_ seconds: Double, _ format: AudioFormat) -> [Int16] {
        let rate = Double(format.sampleRate)
        let frameCount = Int(seconds * rate)
        var samples: [Int16] = []
        samples.reserveCapacity(frameCount * format.channelCount)
        for frame in 0..<max(frameCount, 0) {
            let time = Double(frame % format.sampleRate) / rate
            let sample = Int16(chirp(at: time, second: frame / format.sampleRate))
            for _ in 0..<format.channelCount { samples.append(sample) }
        }
        return samples
    }

    /// The chirp's value `time` seconds after it began; later seconds begin a little higher, so that no two are alike.
    private static func chirp(at time: Double, second: Int) -> Double {
        let length = 0.5
        guard time < length else { return 0 }
        let start = startFrequency + Double(second % 8) * 50
        let slope = (endFrequency - start) / length
        let phase = 2 * Double.pi * (start * time + slope * time * time / 2)
        let fade = min(1, min(time, length - time) / 0.01)
        return amplitude * fade * sin(phase)
    }
}
