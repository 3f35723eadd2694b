import CallBasics
import Logging
import RTP
import Synchronization

/// What `CallEngine` is a handle of: the media loop, the cards, the codecs and the calls.
///
/// Calls hold it, and it holds the calls; letting go of the handle ends both.
/// Thread: control, any. The lock is held for planning and bookkeeping, never while something is opened or waited for.
final class EngineCore: Sendable {
    struct State {
        /// The calls that run, and those that are being ended.
        var calls: [UInt64: Call] = [:]
        var callCount: UInt64 = 0
        var sections: CardSections
        /// The ringer's stream, while it is open.
        var tones: ToneStream?
        var toneHolders = 0
        /// Streams on other cards.
        var otherTones: [ToneStream] = []
        /// Rings with a file that were begun, and rings that were ended.
        var ringCount: UInt64 = 0
        /// Times that held keys were released.
        var keyReleaseCount = 0
        /// Conferences that are recorded, whose files are to be whole in the end.
        var recordedConferences: [Conference] = []
        var hasEnded = false
    }

    let configuration: CallEngineConfiguration
    let timebase: EngineTimebase
    let loop: MediaLoop
    let cards: EngineCards
    /// Shared by all calls, which have one media thread.
    let scratch = PacketScratch()
    /// Shared by the sockets of all calls; nil in virtual time, of which the kernel's time stamps know nothing.
    let socketSharing: SocketSharing?
    let phases = EncodingPhases()
    let state: Mutex<State>
    private let plugins: Mutex<PluginRegistry>
    /// Held while plugins change the registry; a lock of its own, for they may take long, and ask the engine.
    private let pluginChanges = Mutex(())
    let keyTimes = KeyTimes()
    /// One use of the ringer at a time.
    let toneChanges = AsyncLock()
    private let ending = AsyncLock()
    let events: AsyncStream<EngineEvent>
    private let eventSink: AsyncStream<EngineEvent>.Continuation
    private let seeds: Mutex<SeededGenerator>

    init(_ configuration: CallEngineConfiguration) throws(EngineError) {
        self.configuration = configuration
        switch configuration.time {
        case .real(let priority):
            timebase = try EngineError.wrapping { try EngineTimebase(priority: priority, logger: configuration.logger) }
            seeds = Mutex(SeededGenerator(seed: UInt64.random(in: .min ... .max)))
            socketSharing = SocketSharing()
        case .virtual(let seed):
            timebase = EngineTimebase(logger: configuration.logger)
            seeds = Mutex(SeededGenerator(seed: seed))
            socketSharing = nil
        }
        loop = MediaLoop(tickDuration: .milliseconds(10), timebase: timebase, name: "media")
        let (events, sink) = AsyncStream.makeStream(of: EngineEvent.self, bufferingPolicy: .bufferingNewest(256))
        (self.events, eventSink) = (events, sink)
        plugins = Mutex(configuration.registry)
        let relay = CardEventRelay(sink)
        do {
            cards = try EngineCards(configuration, timebase: timebase) { relay.tell($0) }
        } catch {
            loop.stop()
            timebase.shutDown()
            throw error
        }
        let sections: CardSections
        do throws(GraphError) {
            sections = try CardSections(loop, playback: cards.playback.filter, capture: cards.capture.filter)
        } catch {
            loop.stop()
            cards.shutDown()
            timebase.shutDown()
            throw EngineError(error)
        }
        state = Mutex(State(sections: sections))
        relay.hold(self)
        loop.listen(to: sections.keyTones) { [keyTimes, card = cards.playback.filter] event, time in
            // Without a card, nobody heard it.
            if case .digitStarted(let offset, let requestedAt) = event, card.hadCard(at: time) {
                keyTimes.note(time + CallEngine.cardFormat.duration(ofFrames: offset) - requestedAt)
            }
        }
    }

    /// The codecs and plugins that calls can use.
    var registry: PluginRegistry { plugins.withLock { $0 } }

    /// Changes the registry; meanwhile, it is what it was before.
    func updateRegistry(_ body: (inout PluginRegistry) -> Void) {
        // The former goes outside the locks, for which its plugins may ask as they go.
        let former = pluginChanges.withLock { _ in
            var registry = registry
            body(&registry)
            return plugins.withLock { [registry] in exchange(&$0, with: registry) }
        }
        withExtendedLifetime(former) {}
    }

    var now: MediaTime { timebase.now }

    /// The next number that draws what must be random.
    func nextSeed() -> UInt64 { seeds.withLock { $0.next() } }

    /// The calls that have not ended, in the order in which they were made.
    var calls: [Call] { openCalls.filter { !$0.hasEnded } }

    /// Those and the ones that are being ended.
    private var openCalls: [Call] { state.withLock { $0.calls.values.sorted { $0.number < $1.number } } }

    /// All filters that run.
    var graph: Graph {
        let (calls, sections) = (calls, state.withLock { $0.sections })
        var graph = loop.makeGraph()
        for call in calls {
            for part in call.state.withLock({ $0.sections?.graphs ?? [] }) { graph.merge(part) }
        }
        if sections.playbackPlan != nil { graph.merge(sections.playbackGraph) }
        if sections.capturePlan != nil { graph.merge(sections.captureGraph) }
        var conferences: [Conference] = []
        for conference in calls.compactMap(\.conference) where !conferences.contains(where: { $0 === conference }) {
            conferences.append(conference)
            if let part = conference.drawnGraph { graph.merge(part) }
        }
        return graph
    }

    // MARK: Cards

    /// Hears what happened to a card.
    ///
    /// Thread: of the cards.
    func handle(_ event: CardRouteEvent) {
        guard case .changed(let change) = event.kind, event.role == .call else { return }
        cards.note(change)
        for voice in state.withLock({ $0.sections.sharedVoices }) {
            // Another card is another room; full rings are no reason to keep the old one.
            loop.runner.send(.reset, to: voice.filter)
        }
    }

    // MARK: End

    /// Ends every call and tone, and the engine's threads, when their files are whole, or given up.
    func shutDown() async {
        await ending.withLock {
            let isFirst = state.withLock { state in
                defer { state.hasEnded = true }
                return !state.hasEnded
            }
            if isFirst { await end() }
        }
    }

    private func end() async {
        await withTaskGroup(of: Void.self) { group in
            for call in openCalls {
                // Virtual time is moved by one thread at a time.
                if timebase.isVirtual { await end(call) } else { group.addTask { await self.end(call) } }
            }
        }
        let tones = state.withLock { state in
            defer {
                state.tones = nil
                state.otherTones = []
            }
            return state.otherTones + [state.tones].compactMap(\.self)
        }
        for stream in tones { await stream.stop() }
        for conference in recordedConferences { await stopRecording(conference) }
        await BlockingWork.run { self.stopThreads() }
        // Those that the media thread could not be told to let go of are free now that it has ended.
        for call in openCalls { await end(call, isThreadEnded: true) }
        for conference in recordedConferences { await stopRecording(conference, isThreadEnded: true) }
        eventSink.finish()
    }

    private func end(_ call: Call, isThreadEnded: Bool = false) async {
        do throws(EngineError) {
            if isThreadEnded { try await call.endWithoutThread() } else { try await call.end() }
        } catch {
            configuration.logger.warning("\(error)")
        }
    }

    private func stopRecording(_ conference: Conference, isThreadEnded: Bool = false) async {
        do throws(EngineError) {
            try await conference.stopRecording(isThreadEnded: isThreadEnded)
        } catch {
            configuration.logger.warning("\(error)")
        }
    }

    private var recordedConferences: [Conference] { state.withLock { $0.recordedConferences } }

    /// Keeps a conference until its recording has ended.
    func hold(_ conference: Conference) throws(EngineError) {
        let isOpen = state.withLock { state in
            if !state.hasEnded { state.recordedConferences.append(conference) }
            return !state.hasEnded
        }
        if !isOpen { throw endedError }
    }

    /// The recording of a conference has ended.
    func letGo(_ conference: Conference) {
        state.withLock { state in state.recordedConferences.removeAll { $0 === conference } }
    }

    private func stopThreads() {
        loop.stop()
        cards.shutDown()
        timebase.shutDown()
    }
}

/// Brings what happens to cards to the engine, which does not exist yet when they are made, and to the application.
private final class CardEventRelay: Sendable {
    private struct Target: Sendable {
        weak var core: EngineCore?
    }

    private let target = Mutex(Target())
    private let sink: AsyncStream<EngineEvent>.Continuation

    init(_ sink: AsyncStream<EngineEvent>.Continuation) {
        self.sink = sink
    }

    func hold(_ core: EngineCore) {
        target.withLock { $0.core = core }
    }

    func tell(_ event: CardRouteEvent) {
        target.withLock { $0.core }?.handle(event)
        sink.yield(.card(event))
    }
}

/// From a key to its first sample, for the last 256 keys.
final class KeyTimes: Sendable {
    private static let capacity = 256
    private let times = Mutex<[Duration]>([])

    func note(_ time: Duration) {
        times.withLock { times in
            if times.count == Self.capacity { times.removeFirst() }
            times.append(time)
        }
    }

    /// The times, the oldest first.
    var all: [Duration] { times.withLock { $0 } }
}
