@testable import MediaEngine
import Synchronization

/// `TestSignal.samples`, made once for all tests: where the compiler does not optimise, a minute of it takes seconds.
func chirps(_ seconds: Double, _ format: AudioFormat) -> [Int16] {
    let count = max(Int(seconds * Double(format.sampleRate)), 0) * format.channelCount
    return madeChirps.withLock { made in
        if let known = made[format], known.count >= count { return Array(known.prefix(count)) }
        let samples = TestSignal.samples(seconds, format)
        made[format] = samples
        return samples
    }
}

private let madeChirps = Mutex<[AudioFormat: [Int16]]>([:])
