public import CallBasics
import Synchronization

/// Key tones and rings on one or several cards, warm until it is stopped: a key sounds within a tick.
///
///     (ring from a file) ─► tones ─► card playback, one for each card
///
/// It has a media thread of its own with ticks of 5 ms, so that from the call to the first sample at the card 2.5 ms
/// pass in the mean. Made by `CallEngine.makeToneStream`; keys and rings have one of the engine's own.
/// Thread: control, any; nothing here blocks.
public final class ToneStream: Sendable {
    /// The length of one tick.
    package static let tickDuration = Duration.milliseconds(5)

    private struct State {
        var graph: Graph
        /// The graph that runs; nil before it is open, and after the end.
        var plan: GraphPlan?
        /// After the end they are those of before: keys that have sounded may still be told.
        var routes: [CardRoute] = []
        var source: CallSourceEnd?
        var isSourceEnded = false
        /// As in `askedFileCount`.
        var fileCount: UInt64 = 0
        /// When the tone that sounds, or is to, was asked for.
        var ringing: MediaTime?
        /// Keys that sound or wait.
        var keyCount = 0
        var hasEnded = false
    }

    /// The samples that are played.
    package let format: AudioFormat
    private let timebase: EngineTimebase
    private let cards: EngineCards
    private let loop: MediaLoop
    private let tones: ToneFilter
    private let keyTimes: KeyTimes
    private let state: Mutex<State>
    private let quietHandler = Mutex<(@Sendable () -> Void)?>(nil)
    /// One change of the graph at a time.
    private let changes = AsyncLock()

    /// A stream without a card.
    init(format: AudioFormat, _ timebase: EngineTimebase, _ cards: EngineCards, _ keyTimes: KeyTimes) {
        self.format = format
        self.timebase = timebase
        self.cards = cards
        self.keyTimes = keyTimes
        loop = MediaLoop(tickDuration: Self.tickDuration, timebase: timebase, name: "media-tones")
        tones = ToneFilter(format: format)
        state = Mutex(State(graph: loop.makeGraph()))
        loop.listen(to: tones) { [weak self] event, time in self?.handle(event, at: time) }
    }

    /// Opens `cards` and begins to run.
    ///
    /// - Throws: `EngineError` when the thread cannot be started or, where they are required, a card does not open; then
    ///   the stream has ended.
    func open(_ cards: [any SoundCard], isRequired: Bool) async throws(EngineError) {
        do {
            let routes = try await self.cards.openRingerRoutes(to: cards, format: format, isRequired: isRequired)
            state.withLock { $0.routes = routes }
            try await loop.start()
            try change { (graph) throws(GraphError) in
                try graph.add(tones)
                for route in routes { try graph.connect(tones, to: route.filter) }
            }
        } catch {
            await stop()
            throw EngineError(error)
        }
    }

    /// Hears when the last sound has ended.
    func whenQuiet(_ handler: @escaping @Sendable () -> Void) {
        quietHandler.withLock { $0 = handler }
    }

    /// Whether nothing sounds or waits.
    var isQuiet: Bool {
        state.withLock { $0.keyCount == 0 && $0.ringing == nil && ($0.source == nil || $0.isSourceEnded) }
    }

    /// Whether it has been stopped.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    // MARK: Keys

    /// Plays one digit, after those that wait.
    ///
    /// - Parameters:
    ///   - digit: The digit.
    ///   - duration: How long it sounds.
    ///   - gap: The silence after it.
    /// - Throws: `EngineError` when more digits wait than fit, or the stream has been stopped.
    public func play(
        _ digit: DTMFDigit,
        for duration: Duration = .milliseconds(100),
        gap: Duration = .milliseconds(100)
    ) throws(EngineError) {
        try play(.play(digit, duration: duration.nanoseconds, gap: gap.nanoseconds, requestedAt: timebase.now))
    }

    /// Inserts silence between digits.
    ///
    /// - Throws: `EngineError` when more digits wait than fit, or the stream has been stopped.
    package func pause(for duration: Duration) throws(EngineError) {
        try requireRunning()
        try loop.play(.pause(duration.nanoseconds), on: tones)
    }

    /// Presses a key until `release`; it sounds for a minimum that people notice.
    ///
    /// - Throws: `EngineError` when more digits wait than fit, or the stream has been stopped.
    public func press(_ digit: DTMFDigit) throws(EngineError) {
        try play(.start(digit, requestedAt: timebase.now))
    }

    /// Releases the key that is pressed.
    ///
    /// - Throws: `EngineError` when the media thread does not run.
    public func release() throws(EngineError) {
        guard !hasEnded else { return }
        try loop.send(.stop(nil), to: tones)
    }

    /// Plays a key, told by its command.
    func play(_ command: ToneFilter.Command) throws(EngineError) {
        try requireRunning()
        state.withLock { $0.keyCount += 1 }
        do throws(EngineError) {
            try loop.play(command, on: tones)
        } catch {
            state.withLock { $0.keyCount -= 1 }
            throw error
        }
    }

    /// Sets the level of each sine of the digits that start from now on, in dBm0.
    ///
    /// - Throws: `EngineError` above the loudest sine.
    public func setDigitLevel(_ level: Decibels) throws(EngineError) {
        let loudest = -Decibels.zeroDBm0.value
        guard level.value <= loudest, level.value >= -100 else {
            let message = "A digit level of \(level.value) dBm0 cannot be played. Give -100 to \(loudest) dBm0."
            throw .tone(ToneError(.invalidTone, message))
        }
        try requireRunning()
        try loop.send(.level(level), to: tones)
    }

    /// Whether digits sound or wait.
    package var isDialling: Bool {
        serve()
        return state.withLock { $0.keyCount > 0 }
    }

    /// From the call of `play` or `press` to the hand-over of the digit's first sample to the card, for the last 256
    /// digits, the oldest first.
    ///
    /// Digits that waited for others have waited that much longer; those that no card got are not among them.
    package var keyToSample: [Duration] {
        serve()
        return keyTimes.all
    }

    // MARK: Rings

    /// Plays a tone with its cadence, in place of the one that sounds.
    ///
    /// - Throws: `EngineError` when the tone cannot be played at the stream's rate, or the stream has been stopped.
    public func play(_ tone: ToneSpec) throws(EngineError) {
        try requireRunning()
        try tones.turns.withLock { _ throws(EngineError) in
            try EngineError.wrapping { try tones.prepare(tone) }
            let now = timebase.now
            state.withLock { $0.ringing = now }
            try loop.send(.tone(requestedAt: now), to: tones)
        }
    }

    /// Plays a WAV file, in place of the one that plays.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - repetition: Whether it starts over: a ring usually does, after a pause of 2 s.
    /// - Throws: `EngineError` when the file cannot be read, or the stream has been stopped.
    public func play(file path: String, repetition: FileRepetition = .once) async throws(EngineError) {
        try requireRunning()
        let number = countFile()
        let source = try await CallSourceEnd(.file(path, repetition: repetition), format: format, cards: cards)
        try await play(source) { self.state.withLock { $0.fileCount } == number }
    }

    /// Plays a file that is open, if it `isWanted` when its turn comes; otherwise, and on failure, it is closed.
    func play(_ source: CallSourceEnd, if isWanted: @Sendable () -> Bool) async throws(EngineError) {
        do throws(EngineError) {
            try await EngineError.wrappingAsync {
                try await changes.withLock {
                    try requireRunning()
                    guard isWanted() else { return await source.close(timebase, loop) }
                    try await replaceSource(source)
                }
            }
        } catch {
            await source.close(timebase, loop)
            throw error
        }
    }

    /// Files that were to be played, and rings that were ended: what tests wait for.
    var askedFileCount: UInt64 { state.withLock { $0.fileCount } }

    /// Counts a file that is to be played, or to be played no longer; answers its number.
    @discardableResult
    private func countFile() -> UInt64 {
        state.withLock { state in
            state.fileCount += 1
            return state.fileCount
        }
    }

    /// Ends tone and file; digits go on.
    ///
    /// - Throws: `EngineError` when the media thread does not run.
    public func stopRinging() async throws(EngineError) {
        countFile()
        try await EngineError.wrappingAsync {
            try await changes.withLock {
                guard !hasEnded else { return }
                try loop.send(.stopTone, to: tones)
                state.withLock { $0.ringing = nil }
                try await replaceSource(nil)
            }
        }
        if isQuiet { tellQuiet() }
    }

    /// Whether the file has been played to its end.
    package var isFileEnded: Bool {
        serve()
        return state.withLock { $0.isSourceEnded }
    }

    // MARK: Cards

    /// Goes on playing on other cards; what sounds goes on sounding there.
    ///
    /// - Throws: `EngineError` when one does not open; then the old ones stay in use. Also when the stream is stopped,
    ///   before or meanwhile; then none stays open.
    public func move(to cards: [any SoundCard]) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await changes.withLock {
                try requireRunning()
                let routes = try await self.cards.openRingerRoutes(to: cards, format: format, isRequired: true)
                let old = state.withLock { $0.routes }
                let settled: UInt64
                do {
                    settled = try change(to: routes) { (graph) throws(GraphError) in
                        for route in old { graph.remove(route.filter) }
                        for route in routes { try graph.connect(tones, to: route.filter) }
                    }
                } catch {
                    for route in routes { await route.release() }
                    throw error
                }
                await loop.settled(settled)
                for route in old { await route.release() }
            }
        }
    }

    /// What went through each card so far.
    package var cardStatistics: [CardStatistics] { state.withLock { $0.routes }.map(\.statistics) }

    /// How punctual the ticks were.
    package var tickStatistics: TickStatistics { loop.statistics }

    /// The filters that run, as text or in Graphviz's DOT language.
    ///
    /// - Throws: `EngineError` never while they run, for they were planned.
    package func drawing(asDOT: Bool) throws(EngineError) -> String {
        let graph = state.withLock { $0.graph }
        return try EngineError.wrapping {
            asDOT ? graph.dot() : try graph.text(profile: { [loop] in loop.runner.profile(of: $0) })
        }
    }

    /// Ends all sound and closes the cards; they are closed when it returns.
    ///
    /// Those that `move` is just opening are closed as soon as they are open.
    public func stop() async {
        let ended = state.withLock { state -> State? in
            guard !state.hasEnded else { return nil }
            defer {
                state.hasEnded = true
                state.source = nil
            }
            return state
        }
        guard let ended else { return }
        await BlockingWork.run { [loop] in loop.stop() }
        for route in ended.routes { await route.release() }
        await ended.source?.close(timebase, loop)
    }

    // MARK: Inside

    /// Brings what has happened to those who wait for it.
    func serve() { loop.serve() }

    private func requireRunning() throws(EngineError) { if hasEnded { throw Self.stoppedError } }

    private static var stoppedError: EngineError {
        .state(.callEnded, "The tone stream has been stopped. Make another.")
    }

    /// Changes the graph, and the routes with it, and runs it; answers when the media thread is done with the former.
    @discardableResult
    private func change(
        to routes: [CardRoute]? = nil,
        _ body: (inout Graph) throws(GraphError) -> Void
    ) throws(EngineError) -> UInt64 {
        try EngineError.wrapping {
            try state.withLock { state in
                // Who has stopped the stream meanwhile has not closed them.
                if routes != nil, state.hasEnded { throw Self.stoppedError }
                var graph = state.graph
                try body(&graph)
                let plan = try loop.plan(graph)
                let settled = try loop.give([state.plan.map { .replace($0, with: plan) } ?? .insert(plan)])
                state.graph = graph
                state.plan = plan
                if let routes { state.routes = routes }
                return settled
            }
        }
    }

    private func replaceSource(_ source: CallSourceEnd?) async throws(EngineError) {
        let old = state.withLock { $0.source }
        guard source != nil || old != nil else { return }
        let wasEnded = state.withLock { state in
            defer {
                state.source = source
                state.isSourceEnded = false
            }
            return state.isSourceEnded
        }
        // Before it runs: one that is empty ends in its first tick.
        source?.begin(timebase, loop) { [weak self] in self?.sourceEnded(source) }
        let settled: UInt64
        do throws(EngineError) {
            settled = try change { (graph) throws(GraphError) in
                if let filter = old?.filter { graph.remove(filter) }
                if let filter = source?.filter { try graph.connect(filter, to: tones) }
            }
        } catch {
            state.withLock { state in
                state.source = old
                state.isSourceEnded = wasEnded
            }
            throw error
        }
        await loop.settled(settled)
        await old?.close(timebase, loop)
    }

    /// Thread: background.
    private func sourceEnded(_ source: CallSourceEnd?) {
        // The end of one that another has replaced says nothing of that one.
        state.withLock { state in
            if state.source === source { state.isSourceEnded = true }
        }
        if isQuiet { tellQuiet() }
    }

    private func handle(_ event: ToneFilter.Event, at time: MediaTime) {
        switch event {
        case .digitStarted(let offset, let requestedAt):
            // Without a card, nobody heard it.
            let isHeard = state.withLock { $0.routes }.contains { $0.filter.hadCard(at: time) }
            if isHeard { keyTimes.note(time + format.duration(ofFrames: offset) - requestedAt) }
        case .digitEnded: state.withLock { $0.keyCount = max(0, $0.keyCount - 1) }
        case .toneStarted: return
        case .toneEnded(_, let requestedAt):
            // That of a tone which another one has replaced says nothing of that one.
            state.withLock { state in
                if state.ringing == requestedAt { state.ringing = nil }
            }
        }
        if isQuiet { tellQuiet() }
    }

    private func tellQuiet() {
        quietHandler.withLock { $0 }?()
    }
}
