internal import MediaEngine

/// Hears the other side, and says when what the agent says is to pause: as soon as somebody speaks into it, until the agent
/// clears it, or 600 ms are over without that.
///
/// Time comes with what is heard. Thread: one at a time.
struct Ducking: Sendable {
    /// What has happened within what was heard last.
    struct News: Sendable, Hashable {
        var speech: InterruptionDetector.Change?
        /// Whether the agent is to pause, or to go on; nil for as before.
        var isPaused: Bool?
    }

    private let blockFrameCount: Int
    private let isOn: Bool
    private var detector: InterruptionDetector
    private var levels: PlayedLevels
    /// Blocks of 10 ms for which it is paused already.
    private var pausedBlocks: Int?

    /// Whether the agent is paused.
    var isPaused: Bool { pausedBlocks != nil }

    /// One that never pauses the agent where `isOn` is false.
    init(sampleRate: Int, isOn: Bool) {
        blockFrameCount = sampleRate / 100
        self.isOn = isOn
        (detector, levels) = (InterruptionDetector(sampleRate: sampleRate), PlayedLevels(sampleRate: sampleRate))
    }

    /// Notes what is handed to the call.
    mutating func note(_ samples: Span<Int16>) { levels.note(samples) }

    /// Hears whole blocks of 10 ms.
    ///
    /// - Parameters:
    ///   - samples: What the other side says.
    ///   - position: Frames that were played to it by now.
    ///   - isPlaying: Whether there is something that could pause.
    /// - Returns: What has happened.
    mutating func hear(_ samples: Span<Int16>, position: Int, isPlaying: Bool) -> News {
        var news = News()
        let power = levels.loudest(upTo: position)
        for block in 0..<(samples.count / blockFrameCount) {
            let range = (block * blockFrameCount)..<((block + 1) * blockFrameCount)
            let change = detector.process(samples.extracting(range), playedPower: power)
            news.speech = change ?? news.speech
            if let blocks = pausedBlocks {
                pausedBlocks = blocks + 1
                if blocks + 1 >= Self.patience {
                    detector.learn()
                    (pausedBlocks, news.isPaused) = (nil, false)
                }
            } else if isOn, isPlaying, case .started? = change {
                (pausedBlocks, news.isPaused) = (0, true)
            }
        }
        return news
    }

    /// The agent has cleared what it had said: what it says now is heard.
    mutating func commit() { pausedBlocks = nil }

    /// In blocks: for how long it waits for the agent's word.
    private static let patience = 60
}
