import CallBasics

/// The parts of the graph that all calls on the call card share: what is played there, and what is captured.
///
///     playback  (calls) ─► mixer ─► key tones ┬► card
///                                             └► (what is played, for echo cancellers)
///     capture   card ┬► (as it is)
///                    └► echo canceller ─► (for the calls that want it)
///
/// Each is a plan of its own, between the receiving and the sending parts of the calls. It runs while somebody uses it,
/// and what is in it stays when calls come and go.
/// Thread: control, under the engine's lock.
struct CardSections {
    /// Where a plan runs in the tick, after those of lower stages.
    enum Stage {
        static let receiving = 0
        static let playback = 1
        static let capture = 2
        static let sending = 3
    }

    /// A way of processing that calls share, and where its signal lies.
    struct SharedVoice {
        let voice: CallVoice
        let block: SharedBlock
        var userCount = 0
    }

    let mixer: MixerFilter
    let keyTones: ToneFilter
    private let playbackFilter: CardFilter
    private let captureFilter: CardFilter
    private let played: SharedBlock
    private let captured: SharedBlock
    private(set) var playbackGraph: Graph
    private(set) var captureGraph: Graph
    private(set) var playbackPlan: GraphPlan?
    private(set) var capturePlan: GraphPlan?
    private var playbackUserCount = 0
    private var captureUserCount = 0
    private var voices: [SharedVoice] = []

    init(_ loop: MediaLoop, playback: CardFilter, capture: CardFilter) throws(GraphError) {
        let format = CallEngine.cardFormat
        mixer = MixerFilter(format: format, tickDuration: loop.tickDuration)
        keyTones = ToneFilter(format: format)
        playbackFilter = playback
        captureFilter = capture
        played = SharedBlock(format: format, tickDuration: loop.tickDuration)
        captured = SharedBlock(format: format, tickDuration: loop.tickDuration)
        var graph = loop.makeGraph()
        try graph.connect(mixer, to: keyTones)
        try graph.connect(keyTones, to: playback)
        try graph.connect(keyTones, to: SharedBlockWriter(played, purpose: "what is played, for echo cancelling"))
        playbackGraph = graph
        graph = loop.makeGraph()
        try graph.connect(capture, to: SharedBlockWriter(captured, purpose: "what is captured, for the calls"))
        captureGraph = graph
    }

    /// Whether a call is heard on the card.
    var isPlaying: Bool { playbackUserCount > 0 }

    /// The voices that work on the captured signal now.
    var sharedVoices: [CallVoice] { voices.map(\.voice) }

    // MARK: Playback

    /// Takes in a call that is heard on the card; answers what runs it.
    mutating func addPlayback(_ loop: MediaLoop) throws(GraphError) -> [GraphRunner.Order] {
        playbackUserCount += 1
        guard playbackPlan == nil else { return [] }
        let plan = try loop.plan(playbackGraph)
        playbackPlan = plan
        return [.insert(plan, stage: Stage.playback)]
    }

    /// Lets go of a call; answers what stops it all with the last one.
    mutating func removePlayback() -> [GraphRunner.Order] {
        playbackUserCount -= 1
        guard playbackUserCount == 0, let plan = playbackPlan.take() else { return [] }
        // A key that is held, or waits, is not for the calls that come after.
        return [.command(.forget, to: keyTones), .remove(plan)]
    }

    // MARK: Capture

    /// Takes in a call that is spoken into the card.
    ///
    /// - Parameters:
    ///   - own: What the call wants done to the signal; one that another call already uses takes its place.
    ///   - loop: The loop that runs it.
    /// - Returns: Where the call's signal lies, what works on it, and what runs it.
    /// - Throws: `GraphError` when the filters cannot be linked.
    mutating func addCapture(
        _ own: CallVoice?,
        _ loop: MediaLoop
    ) throws(GraphError) -> (block: SharedBlock, voice: CallVoice?, orders: [GraphRunner.Order]) {
        captureUserCount += 1
        guard let own, own.isShared else { return (captured, nil, try replanCapture(loop)) }
        if let index = voices.firstIndex(where: { $0.voice.configuration == own.configuration }) {
            voices[index].userCount += 1
            return (voices[index].block, voices[index].voice, try replanCapture(loop))
        }
        let block = SharedBlock(format: own.format, tickDuration: loop.tickDuration)
        try captureGraph.connect(captureFilter, to: own.filter, converting: true)
        if own.cancelsEcho {
            let reference = SharedBlockReader(played, purpose: "what is played")
            try captureGraph.connect(reference, to: own.filter, input: 1, converting: true)
        }
        try captureGraph.connect(
            own.filter,
            to: SharedBlockWriter(block, purpose: "the processed voice, for the calls")
        )
        voices.append(SharedVoice(voice: own, block: block, userCount: 1))
        return (block, own, try replanCapture(loop, isChanged: true))
    }

    /// Lets go of a call, which used `voice`.
    mutating func removeCapture(_ voice: CallVoice?, _ loop: MediaLoop) throws(GraphError) -> [GraphRunner.Order] {
        captureUserCount -= 1
        var isChanged = false
        if let voice, voice.isShared, let index = voices.firstIndex(where: { $0.voice.filter === voice.filter }) {
            voices[index].userCount -= 1
            if voices[index].userCount == 0 {
                let links = captureGraph.links
                let around = captureGraph.filters.filter { other in
                    links.contains {
                        $0.source == other.id && $0.target == voice.filter.id && other !== captureFilter
                            || $0.source == voice.filter.id && $0.target == other.id
                    }
                }
                for filter in around { captureGraph.remove(filter) }
                captureGraph.remove(voice.filter)
                voices.remove(at: index)
                isChanged = true
            }
        }
        guard captureUserCount == 0 else { return isChanged ? try replanCapture(loop, isChanged: true) : [] }
        guard let plan = capturePlan.take() else { return [] }
        return [.remove(plan)]
    }

    private mutating func replanCapture(
        _ loop: MediaLoop,
        isChanged: Bool = false
    ) throws(GraphError) -> [GraphRunner.Order] {
        guard let running = capturePlan else {
            let plan = try loop.plan(captureGraph)
            capturePlan = plan
            return [.insert(plan, stage: Stage.capture)]
        }
        guard isChanged else { return [] }
        let plan = try loop.plan(captureGraph)
        capturePlan = plan
        return [.replace(running, with: plan)]
    }
}
