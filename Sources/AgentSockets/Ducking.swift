internal import MediaEngine

/// Hears the other side, and says when what the agent says is to pause: as soon as somebody speaks into it, until the agent
/// clears it, or 600 ms are over without that.
///
///     heard ──► echo of the line, once there is a strong one ──► detector ──► pause, go on
///     played ─────┴───────────────────────────────────────────────┘
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
    /// Nil while what comes back of what is played is weak.
    private var echo: LineEcho?
    private let sampleRate: Int
    /// Blocks of 10 ms for which it is paused already.
    private var pausedBlocks: Int?

    /// Whether the agent is paused.
    var isPaused: Bool { pausedBlocks != nil }

    /// One that never pauses the agent where `isOn` is false.
    init(sampleRate: Int, isOn: Bool) {
        blockFrameCount = sampleRate / 100
        self.isOn = isOn
        self.sampleRate = sampleRate
        detector = InterruptionDetector(sampleRate: sampleRate)
    }

    /// Hears whole blocks of 10 ms.
    ///
    /// - Parameters:
    ///   - samples: What the other side says.
    ///   - played: What was played to it meanwhile, as much.
    ///   - isPlaying: Whether there is something that could pause.
    /// - Returns: What has happened.
    mutating func hear(_ samples: Span<Int16>, played: Span<Int16>, isPlaying: Bool) -> News {
        if echo == nil, detector.hasStrongEcho { echo = LineEcho(sampleRate: sampleRate) }
        guard let rest = echo?.process(heard: samples, played: played) else {
            return listen(samples, played: played, blockCount: samples.count / blockFrameCount, isPlaying)
        }
        return listen(rest.span, played: played, blockCount: samples.count / blockFrameCount, isPlaying)
    }

    /// Listens for speech in blocks of 10 ms; both sounds last equally long.
    private mutating func listen(
        _ samples: Span<Int16>,
        played: Span<Int16>,
        blockCount: Int,
        _ isPlaying: Bool
    ) -> News {
        var news = News()
        for block in 0..<blockCount {
            let (length, playedLength) = (samples.count / blockCount, played.count / blockCount)
            var change = detector.process(
                samples.extracting((block * length)..<((block + 1) * length)),
                played: played.extracting((block * playedLength)..<((block + 1) * playedLength)),
                isCancelled: echo != nil
            )
            if case .started? = change, echo?.hearsPlayed == true {
                detector.retract()
                change = nil
            }
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
