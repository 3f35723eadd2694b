/// Fits frames of one channel count to a device of another.
enum CardChannels {
    /// Copies `frameCount` frames: one channel goes to all, all go averaged to one, else each goes to its own and those
    /// without one are silent.
    static func map(
        _ source: Span<Int16>,
        _ from: Int,
        into target: UnsafeMutableBufferPointer<Int16>,
        _ to: Int,
        frameCount: Int
    ) {
        for frame in 0..<frameCount {
            let start = frame &* from
            if to == 1 {
                var sum = 0
                for channel in 0..<from { sum &+= Int(source[start &+ channel]) }
                target[frame] = Int16(clamping: sum / from)
                continue
            }
            for channel in 0..<to {
                let sample = from == 1 ? source[start] : channel < from ? source[start &+ channel] : 0
                target[frame &* to &+ channel] = sample
            }
        }
    }
}
