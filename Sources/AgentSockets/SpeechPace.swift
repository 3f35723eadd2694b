/// Whether sound comes at the pace of speech, and how much more of it waits than has to.
///
/// A source whose clock is somewhat faster than the call's lets ever more wait, and one that was late once goes on being late. It is
/// looked at for 2 s each time: what comes within a tenth of that, 200 ms at once at most, comes at the pace of speech. What came otherwise,
/// or while nothing was played, has to be played first.
/// Time comes in ticks of 20 ms.
/// Thread: one at a time.
struct SpeechPace: Sendable {
    private let framesInTick: Int
    private var tickCount = 0
    private var arrivedFrames = 0
    /// What has come within one tick: now, and when it was the most.
    private var (tickFrames, mostFrames) = (0, 0)
    /// What waited when the least did.
    private var leastFrames = Int.max
    /// What waits of sound that came in another way.
    private var owedFrames = 0

    init(framesInTick: Int) { self.framesInTick = framesInTick }

    /// Notes that sound has come.
    mutating func arrive(_ frameCount: Int) {
        arrivedFrames += frameCount
        tickFrames += frameCount
        mostFrames = max(mostFrames, tickFrames)
    }

    /// Notes that 20 ms have gone by.
    ///
    /// - Parameters:
    ///   - waiting: Frames that wait to be played, here and in the call.
    ///   - needed: How many have to.
    ///   - isPlaying: Whether something was played meanwhile.
    /// - Returns: How many frames wait for nothing, at the end of what is looked at; nil within it.
    mutating func tick(waiting: Int, needed: Int, isPlaying: Bool) -> Int? {
        guard isPlaying else {
            begin(owing: waiting)
            return 0
        }
        tickCount += 1
        tickFrames = 0
        leastFrames = min(leastFrames, waiting)
        owedFrames = max(owedFrames - framesInTick, 0)
        guard tickCount == Self.tickLimit else { return nil }
        let played = Self.tickLimit * framesInTick
        guard mostFrames <= Self.pieceLimit * framesInTick, abs(arrivedFrames - played) <= played / 10 else {
            begin(owing: waiting)
            return 0
        }
        defer { begin(owing: owedFrames) }
        return owedFrames > 0 ? 0 : max(leastFrames - needed, 0)
    }

    private mutating func begin(owing frameCount: Int) {
        self = SpeechPace(framesInTick: framesInTick)
        owedFrames = frameCount
    }

    private static let tickLimit = 100
    private static let pieceLimit = 10
}
