import Synchronization

/// Key tones and rings on one or several cards, warm for as long as it lives: a key sounds within a tick.
///
///     (ring or file) ─► tones ─► card playback, one for each card
///
/// It has a media thread of its own with ticks of 5 ms, so that from the call to the first sample at the card 2.5 ms
/// pass in the mean. Made by `CallEngine`, or alone for an application that needs nothing else.
/// Thread: control, any thread.
public final class ToneStream: Sendable {
    /// The length of one tick.
    public static let tickDuration = Duration.milliseconds(5)
    private static let keptMeasurements = 256

    private struct State {
        var graph: Graph
        var outputs: [CardPlaybackFilter] = []
        var source: Filter?
        var sourceService: (any BackgroundService)?
        var isSourceEnded = false
        var pending = 0
        var keyToSample: [Duration] = []
        var driver: (any TickDriver)?
    }

    /// The samples that are played.
    public let format: AudioFormat
    private let timebase: EngineTimebase
    private let runner: GraphRunner
    private let pump: EventPump
    private let tones: ToneFilter
    private let state: Mutex<State>

    /// A stream that plays on `cards`, which are opened now, off the media thread.
    ///
    /// - Throws: `EngineError` when a card does not open or the thread cannot be started.
    init(_ cards: [any SoundCard], format: AudioFormat, timebase: EngineTimebase) throws(EngineError) {
        self.format = format
        self.timebase = timebase
        let runner = GraphRunner()
        let tones = ToneFilter(format: format)
        let outputs = try EngineError.wrapping { try Self.open(cards, format, timebase) }
        let (graph, driver) = try EngineError.wrapping {
            var graph = Graph(tickDuration: Self.tickDuration)
            try graph.add(tones)
            for output in outputs { try graph.connect(tones, to: output) }
            runner.install(try GraphPlan(graph))
            return (graph, try timebase.drive(runner, tickDuration: Self.tickDuration, name: "media-tones"))
        }
        self.runner = runner
        self.tones = tones
        pump = EventPump(runner)
        state = Mutex(State(graph: graph, outputs: outputs, driver: driver))
        timebase.add(pump)
        for output in outputs { timebase.add(output.supervisor, isCard: true) }
        pump.listen(to: tones) { [weak self] event in self?.handle(event) }
    }

    // MARK: Keys

    /// Plays one digit, after those that wait.
    ///
    /// - Parameters:
    ///   - digit: The digit.
    ///   - duration: How long it sounds.
    ///   - gap: The silence after it.
    public func play(
        _ digit: DTMFDigit,
        for duration: Duration = .milliseconds(100),
        gap: Duration = .milliseconds(100)
    ) {
        state.withLock { $0.pending += 1 }
        runner.send(tones.playCommand(digit, for: duration, gap: gap, requestedAt: timebase.now))
    }

    /// Inserts silence between digits.
    public func pause(for duration: Duration) {
        runner.send(tones.pauseCommand(for: duration))
    }

    /// Presses a key until `release`; it sounds for a minimum that people notice.
    public func press(_ digit: DTMFDigit) {
        state.withLock { $0.pending += 1 }
        runner.send(tones.startCommand(digit, requestedAt: timebase.now))
    }

    /// Releases the key that is pressed.
    public func release() {
        runner.send(tones.stopCommand())
    }

    /// Sets the level of each sine of the digits that start from now on, in dBm0.
    ///
    /// - Throws: `EngineError` above the loudest sine.
    public func setDigitLevel(_ level: Decibels) throws(EngineError) {
        runner.send(try EngineError.wrapping { try tones.levelCommand(level) })
    }

    /// Whether digits sound or wait.
    public var isDialling: Bool { state.withLock { $0.pending > 0 } }

    /// From the call of `play` or `press` to the hand-over of the digit's first sample to the card, for the last 256
    /// digits, the oldest first.
    ///
    /// Digits that waited for others have waited that much longer.
    public var keyToSample: [Duration] {
        pump.serve()
        return state.withLock { $0.keyToSample }
    }

    // MARK: Rings

    /// Plays a tone with its cadence, in place of the one that sounds.
    ///
    /// - Throws: `EngineError` when the tone cannot be played at the stream's rate.
    public func play(_ tone: ToneSpec) throws(EngineError) {
        runner.send(try EngineError.wrapping { try tones.toneCommand(tone, requestedAt: timebase.now) })
    }

    /// Plays a WAV file, in place of the one that plays.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - repetition: Whether it starts over: a ring usually does, after a pause of 2 s.
    /// - Throws: `EngineError` when the file cannot be read.
    public func play(file path: String, repetition: WAVFeed.Repetition = .once) throws(EngineError) {
        try EngineError.wrapping {
            let player = try FilePlayerFilter(path: path, format: format, repetition: repetition)
            timebase.add(player.feed)
            try replaceSource(with: player, service: player.feed)
        }
    }

    /// Ends tone and file; digits go on.
    public func stopRinging() {
        runner.send(tones.stopToneCommand())
        do {
            try replaceSource(with: nil, service: nil)
        } catch {
            preconditionFailure("a graph without its source can be planned")
        }
    }

    /// Whether the file has been played to its end.
    public var isFileEnded: Bool {
        pump.serve()
        return state.withLock { $0.isSourceEnded }
    }

    // MARK: Cards

    /// Goes on playing on other cards; what sounds goes on sounding there.
    ///
    /// - Throws: `EngineError` when one does not open; then the old ones stay in use.
    public func move(to cards: [any SoundCard]) throws(EngineError) {
        try EngineError.wrapping {
            let outputs = try Self.open(cards, format, timebase)
            let old = try state.withLock { state in
                var graph = state.graph
                for output in state.outputs { graph.remove(output) }
                for output in outputs { try graph.connect(tones, to: output) }
                runner.install(try GraphPlan(graph))
                defer { state.outputs = outputs }
                state.graph = graph
                return state.outputs
            }
            for output in outputs { timebase.add(output.supervisor, isCard: true) }
            settle()
            for output in old { timebase.remove(output.supervisor) }
        }
    }

    /// What went through each card so far.
    public var cardStatistics: [CardStatistics] { state.withLock { $0.outputs.map { $0.statistics.value } } }

    /// How punctual the ticks were.
    public var tickStatistics: TickStatistics { state.withLock { $0.driver?.statistics ?? TickStatistics() } }

    /// The graph, as text or in Graphviz's DOT language.
    ///
    /// - Throws: `EngineError` never while the graph runs, for it was planned.
    public func drawing(asDOT: Bool) throws(EngineError) -> String {
        let graph = state.withLock { $0.graph }
        return try EngineError.wrapping {
            asDOT ? graph.dot() : try graph.text(profile: { [runner] in runner.profile(of: $0) })
        }
    }

    /// Ends all sound and closes the cards.
    public func stop() {
        let (driver, outputs, service) = state.withLock { state in
            defer {
                state.driver = nil
                state.outputs = []
                state.sourceService = nil
            }
            return (state.driver, state.outputs, state.sourceService)
        }
        if let driver { timebase.stop(driver, runner) }
        timebase.remove(pump)
        for output in outputs { timebase.remove(output.supervisor) }
        if let service { timebase.remove(service) }
    }

    private func replaceSource(with source: Filter?, service: (any BackgroundService)?) throws {
        let old = try state.withLock { state in
            var graph = state.graph
            if let source = state.source { graph.remove(source) }
            if let source { try graph.connect(source, to: tones) }
            runner.install(try GraphPlan(graph))
            defer {
                state.source = source
                state.sourceService = service
                state.isSourceEnded = false
            }
            state.graph = graph
            return state.sourceService
        }
        if let source { pump.listen(to: source) { [weak self] event in self?.handle(event) } }
        settle()
        if let old { timebase.remove(old) }
    }

    private func handle(_ event: GraphEvent) {
        switch event.name {
        case "digit":
            let asked = MediaTime(nanoseconds: event.detail)
            let sample = event.time + format.duration(ofFrames: Int(event.value))
            state.withLock { state in
                if state.keyToSample.count == Self.keptMeasurements { state.keyToSample.removeFirst() }
                state.keyToSample.append(sample - asked)
            }
        case "digitend": state.withLock { $0.pending = max(0, $0.pending - 1) }
        case "dtmffull": state.withLock { $0.pending = max(0, $0.pending - 1) }
        case "ended": state.withLock { $0.isSourceEnded = true }
        default: break
        }
    }

    private func settle() {
        guard !timebase.isVirtual else { return }
        for _ in 0..<500 where !runner.isSettled { CallEngine.sleepOneMillisecond() }
    }

    private static func open(
        _ cards: [any SoundCard],
        _ format: AudioFormat,
        _ timebase: EngineTimebase
    ) throws -> [CardPlaybackFilter] {
        try cards.map { card in
            let filter = CardPlaybackFilter(card, CardRole.ringer.configuration(format))
            try filter.open(at: timebase.now)
            return filter
        }
    }
}
