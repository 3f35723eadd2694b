/// Whether sound comes at the pace of speech, and how much more of it waits than has to.
///
/// A source whose clock is somewhat faster than the call's lets ever more wait, and one that was late once goes on being late. It is
/// looked at for 2 s each time: what comes within a tenth of that, in pieces of up to 200 ms, comes at the pace of speech.
/// Time comes in ticks of 20 ms.
/// Thread: one at a time.
struct SpeechPace: Sendable {
    private let framesInTick: Int
    private var tickCount = 0
    private var arrivedFrames = 0
    private var largestPiece = 0
    /// What waited when the least did.
    private var leastFrames = Int.max

    init(framesInTick: Int) { self.framesInTick = framesInTick }

    /// Notes that sound has come.
    mutating func arrive(_ frameCount: Int) {
        arrivedFrames += frameCount
        largestPiece = max(largestPiece, frameCount)
    }

    /// Notes that 20 ms have gone by.
    ///
    /// - Parameters:
    ///   - waiting: Frames that wait to be played, here and in the call.
    ///   - needed: How many have to.
    /// - Returns: How many frames wait for nothing, at the end of what is looked at; nil within it.
    mutating func tick(waiting: Int, needed: Int) -> Int? {
        tickCount += 1
        leastFrames = min(leastFrames, waiting)
        guard tickCount == Self.tickLimit else { return nil }
        defer { self = SpeechPace(framesInTick: framesInTick) }
        let played = Self.tickLimit * framesInTick
        guard largestPiece <= Self.pieceLimit * framesInTick, abs(arrivedFrames - played) <= played / 10 else {
            return 0
        }
        return max(leastFrames - needed, 0)
    }

    private static let tickLimit = 100
    private static let pieceLimit = 10
}
