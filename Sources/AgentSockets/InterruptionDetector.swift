internal import MediaEngine

/// Tells that the other side speaks, 10 ms at a time, and takes the echo of what is played to it for no speech.
///
/// A block is loud when it stands out of the noise, and by 6 dB out of the echo of what was played within the last 400 ms. That
/// is taken to be 15 dB weaker at first, then as strong as the strongest of what came back in the last 1.6 s in which its
/// like would have been heard; and what turned out to be no interruption is taken for echo, too, by 3 dB less with each second without its like.
/// Speech begins with 40 ms of loud blocks within 60, and ends with 200 ms without one.
/// Pure. Shape: one channel, at any rate. `process` allocates nothing.
struct InterruptionDetector: Sendable {
    /// What has changed, with the frame at which it did.
    enum Change: Sendable, Hashable {
        case started(Int)
        case stopped(Int)
    }

    private let blockFrameCount: Int
    private var activity = VoiceActivity()
    /// Powers of what was played, of the last 400 ms in a ring.
    private var played = InlineArray<40, Double>(repeating: 0)
    private var blockCount = 0
    /// The newest block is the lowest bit.
    private var history: UInt8 = 0
    private var quietBlocks = 0
    private(set) var isSpeaking = false
    private var lastLoudEnd = 0
    /// The power of what came back, of that of what was played, in windows of 400 ms: a ring.
    private var windows = InlineArray<4, Double>(repeating: InterruptionDetector.firstCoupling)
    /// Blocks that were noted in the windows.
    private var notedBlocks = 0
    /// What was taken for speech and was none, likewise.
    private var learned = 0.0
    /// The strongest of what was heard in the present speech, likewise.
    private var strongest = 0.0

    init(sampleRate: Int) { blockFrameCount = sampleRate / 100 }

    /// Hears 10 ms, in which `reference` was played, each at its own rate; without most of the echo where that is cancelled.
    mutating func process(_ block: Span<Int16>, played reference: Span<Int16>, isCancelled: Bool) -> Change? {
        activity.process(block)
        played[blockCount % played.count] = VoiceActivity.power(of: reference)
        blockCount &+= 1
        let position = blockCount &* blockFrameCount
        let loudest = played.indices.reduce(0) { max($0, played[$1]) }
        let ratio = loudest > Self.audible ? activity.power / loudest : nil
        let least = isCancelled ? Self.leastCoupling : 0
        let coupling = windows.indices.reduce(max(learned, least)) { max($0, windows[$1]) }
        let isLoud = activity.isLoud && ratio ?? .infinity > coupling * Self.margin
        history = history << 1 | (isLoud ? 1 : 0)
        if isLoud {
            (quietBlocks, lastLoudEnd) = (0, position)
            strongest = max(strongest, ratio ?? 0)
        } else {
            quietBlocks &+= 1
            // Where the noise hides all that could come back, there is nothing to be learned.
            let isHidden = !activity.isLoud && coupling * loudest < activity.floorPower * Self.hiding
            if let ratio, !isSpeaking, !isHidden { noteEcho(activity.isLoud ? ratio : 0) }
        }
        let recent = history & Self.window
        if !isSpeaking, recent.nonzeroBitCount >= Self.loudBlocks {
            isSpeaking = true
            let age = UInt8.bitWidth - recent.leadingZeroBitCount
            return .started(position - age * blockFrameCount)
        }
        if isSpeaking, quietBlocks >= Self.hangoverBlocks {
            (isSpeaking, strongest) = (false, 0)
            return .stopped(lastLoudEnd)
        }
        return nil
    }

    /// Notes how much came back in a block without speech.
    private mutating func noteEcho(_ ratio: Double) {
        // What is nearly as strong as that renews it.
        let isAlike = learned > Self.firstCoupling && ratio * Self.margin > learned
        learned = isAlike ? max(learned, min(ratio, Self.mostCoupling)) : learned * Self.decay
        let window = notedBlocks / played.count % windows.count
        if notedBlocks % played.count == 0 { windows[window] = 0 }
        windows[window] = max(windows[window], min(ratio, Self.firstCoupling))
        notedBlocks &+= 1
    }

    /// The speech that has just begun was none.
    mutating func retract() { (isSpeaking, history, strongest) = (false, 0, 0) }

    /// Whether what came back lately was stronger than -21 dB, or what was taken for speech.
    var hasStrongEcho: Bool {
        let measured = notedBlocks / played.count
        return learned > Self.strongCoupling
            || windows.indices.contains { $0 < measured && windows[$0] > Self.strongCoupling }
    }

    /// What was heard was no interruption: its like is taken for echo for a while.
    mutating func learn() { learned = max(learned, min(strongest, Self.mostCoupling)) }

    /// -45 dB: what is quieter has no echo worth the name.
    private static let audible = 3.162_277_660_168_379e-5
    /// -15 dB and -6 dB.
    private static let firstCoupling = 0.031_622_776_601_683_8
    private static let mostCoupling = 0.251_188_643_150_958
    /// -35 dB: now and then an adaptive filter leaves more than it did.
    private static let leastCoupling = 3.162_277_660_168_38e-4
    /// -21 dB.
    private static let strongCoupling = 0.007_943_282_347_242_82
    /// 6 dB.
    private static let margin = 3.981_071_705_534_973
    /// 9 dB, from which on a block stands out of the noise.
    private static let hiding = 7.943_282_347_242_815
    /// 0.03 dB in 10 ms.
    private static let decay = 0.993_116_048_420_934
    private static let window: UInt8 = 0b11_1111
    private static let loudBlocks = 4
    private static let hangoverBlocks = 20
}
