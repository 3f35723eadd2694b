import Synchronization

/// The engine's cards in use: one capture and one playback that all calls share, and the ringer.
struct CallDevices {
    var playback: any SoundCard
    var capture: any SoundCard
    var ringer: any SoundCard
    private(set) var playbackFilter: CardPlaybackFilter?
    private(set) var captureFilter: CardCaptureFilter?
    private var mixer: MixerFilter?
    /// The card that was asked for while another stands in for it; nil while it is in use itself.
    private(set) var wantedPlayback: (any SoundCard)?
    private(set) var wantedCapture: (any SoundCard)?
    /// What works on microphones' signals, for one call or for all that want the same on the call card.
    private(set) var voices: [CallVoice] = []
    /// What is heard of each call that plays on the card.
    var heard: [Filter] = []

    init(playback: any SoundCard, capture: any SoundCard, ringer: any SoundCard) {
        self.playback = playback
        self.capture = capture
        self.ringer = ringer
    }

    /// The capture filter, opened if it is not.
    mutating func openCapture(_ engine: CallEngine) throws(CardError) -> CardCaptureFilter {
        if let captureFilter { return captureFilter }
        let filter = CardCaptureFilter(
            capture,
            CardRole.call.configuration(CallEngine.cardFormat),
            isGated: engine.configuration.gatesAudioSession
        )
        if !engine.configuration.gatesAudioSession { try filter.open(at: engine.now) }
        engine.timebase.add(filter.supervisor, isCard: true)
        captureFilter = filter
        return filter
    }

    /// Opens the playback filter if it is not.
    mutating func openPlayback(_ engine: CallEngine) throws(CardError) {
        guard playbackFilter == nil else { return }
        let filter = CardPlaybackFilter(
            playback,
            CardRole.call.configuration(CallEngine.cardFormat),
            isGated: engine.configuration.gatesAudioSession
        )
        if !engine.configuration.gatesAudioSession { try filter.open(at: engine.now) }
        engine.timebase.add(filter.supervisor, isCard: true)
        playbackFilter = filter
    }

    /// Mixes all that is heard and links it to the playback card.
    mutating func linkPlayback(in graph: inout Graph) throws(GraphError) {
        guard let playbackFilter else { return }
        if let mixer { graph.remove(mixer) }
        let mixer = MixerFilter(format: CallEngine.cardFormat, inputCount: heard.count)
        self.mixer = mixer
        for (input, filter) in heard.enumerated() {
            try graph.connect(filter, to: mixer, input: input, converting: true)
        }
        try graph.connect(mixer, to: playbackFilter)
        for voice in voices where voice.isShared && voice.cancelsEcho {
            try graph.connect(mixer, to: voice.filter, input: 1)
        }
    }

    /// Puts what the call wants done to the signal of `source` behind that; answers what then gives the signal.
    mutating func addVoice(
        of call: Call,
        after source: Filter,
        to graph: inout Graph
    ) throws(GraphError) -> Filter {
        guard let own = call.voice else { return source }
        if own.isShared, let shared = voices.first(where: { $0.isShared && $0.configuration == own.configuration }) {
            call.state.withLock { $0.voice = shared.filter }
            return shared.filter
        }
        voices.append(own)
        call.state.withLock { $0.voice = own.filter }
        try graph.connect(source, to: own.filter, converting: true)
        if own.cancelsEcho, !own.isShared {
            try graph.connect(call.stream.heard, to: own.filter, input: 1, converting: true)
        }
        return own.filter
    }

    /// Lets go of what no call uses any more; answers it.
    mutating func removeUnusedVoices(from graph: inout Graph) -> [Filter] {
        let links = graph.links
        let unused = voices.filter { voice in !links.contains { $0.source == voice.filter.id } }
        for voice in unused { graph.remove(voice.filter) }
        voices.removeAll { voice in unused.contains { $0.filter === voice.filter } }
        return unused.map(\.filter)
    }

    /// Keeps in mind which card was asked for, when another takes its place for `cause`.
    mutating func note(_ cause: RouteChange.Cause, _ direction: CardDirection, leaving card: any SoundCard) {
        let wanted = direction == .playback ? wantedPlayback : wantedCapture
        let kept: (any SoundCard)? = cause == .unplugged ? wanted ?? card : nil
        if direction == .playback { wantedPlayback = kept } else { wantedCapture = kept }
    }

    /// Lets go of the playback filter, to put another in its place; answers it.
    mutating func releasePlayback(from graph: inout Graph) -> CardPlaybackFilter? {
        guard let filter = playbackFilter.take() else { return nil }
        graph.remove(filter)
        return filter
    }

    /// Puts `filter` in the place of the capture filter, in every link; answers the old one.
    mutating func replaceCapture(
        with filter: CardCaptureFilter,
        in graph: inout Graph
    ) throws(GraphError) -> CardCaptureFilter? {
        let old = captureFilter
        captureFilter = filter
        guard let old else { return nil }
        var fed: [(Filter, Int)] = []
        for link in graph.links where link.source == old.id {
            guard let target = graph.filter(link.target) else { continue }
            fed.append((target, link.input))
        }
        graph.remove(old, keepingConverters: true)
        for (target, input) in fed { try graph.connect(filter, to: target, input: input, converting: true) }
        return old
    }
}
