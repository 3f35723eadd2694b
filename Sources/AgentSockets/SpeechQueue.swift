/// What an agent says and has not been handed to the call, in order: sound, and marks in it.
///
///     agent, in bursts or piece by piece ──► queue ──► as much as the call's stream has room for
///
/// When it had run dry, sound waits until some of it is there, so that what comes in pieces is heard without gaps: 60 ms at
/// first, more where there have been gaps, and less again where there are none. What comes at the pace of speech, and waits for longer than
/// that all the time, is trimmed in its pauses; what comes in a burst never is. Time comes in ticks of 20 ms.
/// Thread: one at a time.
struct SpeechQueue: Sendable {
    private enum Item: Sendable {
        case sound([Int16])
        case mark(String)
    }

    private let framesInTick: Int
    private var items: [Item] = []
    /// How many of the items are gone, and how much of the sound behind them.
    private var (goneCount, goneFrames) = (0, 0)
    private(set) var waitingFrameCount = 0
    private(set) var waitingMarkCount = 0
    private var isRunning = false
    /// For how many ticks sound has waited to begin.
    private var waitedTicks = 0
    /// For how many ticks nothing has been there since all was played; nil where nothing was said, or it was cleared.
    private var dryTicks: Int?
    private var smoothTicks = 0
    /// How much has to wait before it begins, in ticks.
    private(set) var delayTicks = SpeechQueue.firstDelay
    /// How often the sound had a gap within what was said.
    private(set) var gapCount = 0
    private var pace: SpeechPace
    /// What of the sound is to be left out in its pauses, and what was.
    private var surplusFrames = 0
    private(set) var trimmedFrameCount = 0
    /// How much of the sound up to now was quiet.
    private var quietFrames = 0

    /// Pieces that it holds.
    var pieceCount: Int { items.count - goneCount }

    init(sampleRate: Int) {
        framesInTick = max(sampleRate / 50, 1)
        pace = SpeechPace(framesInTick: framesInTick)
    }

    // MARK: What the agent says

    /// Adds sound; answers the frames that find no room.
    mutating func add(_ samples: [Int16]) -> Int {
        let room = Self.tickLimit * framesInTick - waitingFrameCount
        let taken = min(samples.count, room)
        guard taken > 0 else { return samples.count }
        if let dryTicks, dryTicks <= Self.gapLimit {
            gapCount += 1
            delayTicks = min(delayTicks + 2, Self.mostDelay)
            smoothTicks = 0
        }
        dryTicks = nil
        append(taken == samples.count ? samples : Array(samples[..<taken]))
        waitingFrameCount += taken
        pace.arrive(taken)
        return samples.count - taken
    }

    /// Adds small pieces to the one before, so that they take no more room than large ones.
    private mutating func append(_ samples: [Int16]) {
        if let place = items.indices.last, place >= goneCount, case .sound(var last) = items[place],
            last.count < Self.pieceLimit * framesInTick
        {
            // Taken out for the time being: else all of it would be copied.
            items[place] = .mark("")
            last += samples
            items[place] = .sound(last)
        } else {
            items.append(.sound(samples))
        }
    }

    /// Adds a mark behind what was added; answers false when too many wait.
    mutating func add(mark name: String) -> Bool {
        guard waitingMarkCount < Self.markLimit else { return false }
        items.append(.mark(name))
        waitingMarkCount += 1
        return true
    }

    /// Throws all away; answers the marks that were in it.
    mutating func clear() -> [String] {
        let names = items[goneCount...].compactMap { if case .mark(let name) = $0 { name } else { nil } }
        (items, goneCount, goneFrames) = ([], 0, 0)
        (waitingFrameCount, waitingMarkCount) = (0, 0)
        (isRunning, waitedTicks, dryTicks) = (false, 0, nil)
        forgetPace()
        return names
    }

    // MARK: What the call takes

    /// Notes that 20 ms have gone by, that the call still has so much to play, and whether it plays.
    mutating func tick(queued frameCount: Int, isPlaying: Bool = true) {
        if isRunning, frameCount == 0, waitingFrameCount == 0 {
            (isRunning, dryTicks) = (false, 0)
            forgetPace()
        }
        if isRunning {
            smoothTicks += 1
            if smoothTicks % Self.smoothLimit == 0 { delayTicks = max(delayTicks - 1, Self.leastDelay) }
            let (waiting, needed) = (frameCount + waitingFrameCount, (delayTicks + 1) * framesInTick)
            let surplus = pace.tick(waiting: waiting, needed: needed, isPlaying: isPlaying)
            surplusFrames = min(surplus ?? surplusFrames, max(waiting - needed, 0))
        } else if waitingFrameCount > 0 {
            waitedTicks += 1
        } else if let ticks = dryTicks {
            dryTicks = ticks + 1
        }
    }

    /// Nothing waits any more: neither is there too much.
    private mutating func forgetPace() {
        pace = SpeechPace(framesInTick: framesInTick)
        (surplusFrames, quietFrames) = (0, 0)
    }

    /// Hands on as much as is taken.
    ///
    /// - Parameters:
    ///   - write: Takes sound; answers the frames that it had room for.
    ///   - mark: Takes a mark, and how many frames were left out before it in all; false when it cannot.
    mutating func pass(write: (Span<Int16>) -> Int, mark: (String, Int) -> Bool) {
        if !isRunning, waitingFrameCount > 0 {
            guard waitedTicks >= delayTicks || waitingFrameCount >= delayTicks * framesInTick else { return }
            (isRunning, waitedTicks) = (true, 0)
        }
        while goneCount < items.count {
            switch items[goneCount] {
            case .sound(let samples):
                let rest = samples.span.extracting(goneFrames...)
                let piece = surplusFrames > 0 ? rest.extracting(first: framesInTick) : rest
                let taken: Int
                if isSurplus(piece) {
                    taken = piece.count
                    surplusFrames -= taken
                    trimmedFrameCount += taken
                } else {
                    taken = write(piece)
                    listen(piece.extracting(first: taken))
                }
                waitingFrameCount -= taken
                goneFrames += taken
                guard taken == piece.count else { return }
                guard goneFrames == samples.count else { continue }
            case .mark(let name):
                guard mark(name, trimmedFrameCount) else { return }
                waitingMarkCount -= 1
            }
            (goneCount, goneFrames) = (goneCount + 1, 0)
            guard 2 * goneCount >= items.count else { continue }
            items.removeFirst(goneCount)
            goneCount = 0
        }
    }

    /// Whether sound is to be left out: in a pause, of which 100 ms are heard.
    private func isSurplus(_ piece: Span<Int16>) -> Bool {
        surplusFrames > 0 && piece.count <= surplusFrames && quietFrames >= Self.pauseTicks * framesInTick
            && Self.isQuiet(piece)
    }

    /// Notes how long the sound has been quiet.
    private mutating func listen(_ samples: Span<Int16>) {
        for index in samples.indices.reversed() where !Self.isQuiet(samples[index]) {
            quietFrames = samples.count - 1 - index
            return
        }
        quietFrames += samples.count
    }

    private static func isQuiet(_ samples: Span<Int16>) -> Bool {
        for index in samples.indices where !isQuiet(samples[index]) { return false }
        return true
    }

    /// Below -46 dB of full scale.
    private static func isQuiet(_ sample: Int16) -> Bool { -164...164 ~= sample }

    /// Of a pause, what is left whole.
    private static let pauseTicks = 5
    /// In ticks: how much waits at first, at least and at most, and within what time more sound belongs to what was said.
    private static let firstDelay = 3
    private static let leastDelay = 2
    private static let mostDelay = 10
    private static let gapLimit = 10
    /// How long without a gap makes the delay shorter.
    private static let smoothLimit = 125
    /// Ten minutes, as Twilio has it.
    private static let tickLimit = 10 * 60 * 50
    private static let markLimit = 1024
    /// How much is put together, in ticks.
    private static let pieceLimit = 50
}
