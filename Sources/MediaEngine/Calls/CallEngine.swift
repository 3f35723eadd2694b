import Logging
import Synchronization

/// The engine: it makes calls, runs them on one media thread, and owns the sound cards and the codecs.
///
/// Every call is a chain of filters in one graph; making or ending one plans the graph anew beside the running plan
/// and swaps the two between ticks, so other calls lose nothing.
/// Thread: control, any thread.
public final class CallEngine: Sendable {
    /// The samples that cards are opened with.
    public static let cardFormat = AudioFormat(sampleRate: 48000)

    struct State {
        var graph: Graph
        var driver: (any TickDriver)?
        var registry: PluginRegistry
        var cards: CardList
        var calls: [Call] = []
        var callCount: UInt64 = 0
        var devices: CallDevices
        var tones: ToneStream?
        var toneHolders = 0
        var fallbackCards: [any SoundCard]?
        var routeChanges: [RouteChange] = []
        var isShutDown = false
    }

    let timebase: EngineTimebase
    let configuration: CallEngineConfiguration
    let runner = GraphRunner()
    /// Shared by all calls, which have one media thread.
    private let scratch = PacketScratch()
    let pump: EventPump
    let watcher: RouteWatcher
    let state: Mutex<State>
    private let seeds: Mutex<SeededGenerator>

    /// An engine; its media thread starts with the first call.
    ///
    /// - Throws: `EngineError` when a role is bound to nothing that can be, or a thread cannot be started.
    public init(_ configuration: CallEngineConfiguration = CallEngineConfiguration()) throws(EngineError) {
        self.configuration = configuration
        switch configuration.time {
        case .real(let priority):
            timebase = try EngineError.wrapping { try EngineTimebase(priority: priority, logger: configuration.logger) }
            seeds = Mutex(SeededGenerator(seed: UInt64.random(in: .min ... .max)))
        case .virtual(let seed):
            timebase = EngineTimebase(logger: configuration.logger)
            seeds = Mutex(SeededGenerator(seed: seed))
        }
        var graph = Graph()
        graph.converterFactory = ConverterFilter.factory
        let cards = try EngineError.wrapping { try CardList(bindings: configuration.cardBindings) }
        state = Mutex(
            State(
                graph: graph,
                registry: configuration.registry,
                cards: cards,
                devices: CallDevices(playback: cards.callCard, capture: cards.callCard, ringer: cards.ringerCard)
            )
        )
        pump = EventPump(runner)
        let hands = RouteHands()
        watcher = RouteWatcher(format: Self.cardFormat, now: { [timebase] in timebase.now }) { [timebase] action in
            hands.perform(action, isAtOnce: timebase.isVirtual)
        }
        hands.hold(self)
        timebase.add(pump)
        timebase.add(watcher)
    }

    deinit {
        shutDown()
    }

    /// The present instant of the engine's clock.
    public var now: MediaTime { timebase.now }

    /// How punctual the ticks were.
    public var tickStatistics: TickStatistics { state.withLock { $0.driver?.statistics ?? TickStatistics() } }

    /// How the media thread is scheduled; nil before the first call and in virtual time.
    public var scheduling: SchedulingResult? {
        state.withLock { ($0.driver as? TimerDriver)?.scheduling }
    }

    /// Moves virtual time on, and with it every call.
    ///
    /// - Throws: `EngineError` in an engine of real time.
    public func advance(by duration: Duration) throws(EngineError) {
        guard timebase.advance(by: duration) else {
            throw .state("This engine runs in real time. Make it with CallEngineConfiguration.virtual to move time.")
        }
    }

    /// Ends every call and tone, and the engine's threads.
    public func shutDown() {
        let (calls, driver) = state.withLock { state in
            defer {
                state.isShutDown = true
                state.driver = nil
                state.tones?.stop()
                state.tones = nil
            }
            return (state.calls, state.driver)
        }
        for call in calls {
            do throws(EngineError) { try end(call) } catch { configuration.logger.warning("\(error)") }
        }
        if let driver { timebase.stop(driver, runner) }
        timebase.shutDown()
    }

    /// The graph that runs, as text or in Graphviz's DOT language.
    ///
    /// - Throws: `EngineError` never while the graph runs, for it was planned.
    public func drawing(asDOT: Bool) throws(EngineError) -> String {
        let graph = state.withLock { $0.graph }
        return try EngineError.wrapping {
            asDOT ? graph.dot() : try graph.text(profile: { [runner] in runner.profile(of: $0) })
        }
    }

    // MARK: Codecs

    /// The codecs and plugins that calls can use.
    public var registry: PluginRegistry { state.withLock { $0.registry } }

    /// Loads a plugin into the engine's registry; calls made from now on can use it.
    public func load(_ plugin: any MediaPlugin) {
        state.withLock { $0.registry.load(plugin) }
    }

    /// Registers all plugins anew, in the order in which they were loaded.
    public func reloadPlugins() {
        state.withLock { $0.registry.reload() }
    }

    /// Changes the registry in place: loads C plugins, enables and disables codecs.
    public func updateRegistry(_ body: @Sendable (inout PluginRegistry) -> Void) {
        state.withLock { body(&$0.registry) }
    }

    // MARK: Calls

    /// Makes a call; it sends and receives from the next tick on.
    ///
    /// - Throws: `EngineError` when the codec, a socket, a card or a file is not to be had.
    public func makeCall(_ configuration: CallConfiguration) throws(EngineError) -> Call {
        try makeCalls([configuration])[0]
    }

    /// Makes calls that all begin in the same tick: the legs of a test call.
    ///
    /// - Throws: `EngineError` when the codec, a socket, a card or a file is not to be had.
    public func makeCalls(_ configurations: [CallConfiguration]) throws(EngineError) -> [Call] {
        try EngineError.wrapping {
            let calls = try configurations.map { try prepare($0) }
            try state.withLock { state in
                guard !state.isShutDown else { throw EngineError.state("The engine has been shut down. Make another.") }
                var graph = state.graph
                var devices = state.devices
                for call in calls { try add(call, to: &graph, &devices) }
                let plan = try GraphPlan(graph)
                for call in calls { attach(call) }
                runner.install(plan)
                state.graph = graph
                watchCards(devices)
                state.devices = devices
                state.calls += calls
                for call in calls where !call.configuration.sendsAudio {
                    send(call.stream.encoder.sendingCommand(false))
                }
                try startDriver(&state)
            }
            return calls
        }
    }

    /// The calls that have not ended.
    public var calls: [Call] { state.withLock { $0.calls } }

    func send(_ command: GraphCommand) {
        runner.send(command)
    }

    private func startDriver(_ state: inout State) throws {
        guard state.driver == nil else { return }
        var pacer: any TickPacer = DeadlinePacer()
        if configuration.pace == .callCard {
            if let capture = state.devices.captureFilter {
                pacer = CardPacer(capture)
            } else if let playback = state.devices.playbackFilter {
                pacer = CardPacer(playback)
            }
        }
        let driver = try timebase.drive(runner, tickDuration: state.graph.tickDuration, pacer: pacer, name: "media")
        state.driver = driver
    }

    /// Opens what the call needs, off the media thread and without the engine's lock.
    private func prepare(_ configuration: CallConfiguration) throws -> Call {
        let codec = try state.withLock { state in try state.registry.codec(named: configuration.stream.codec) }
        let accepted = try acceptedCodecs(of: configuration)
        guard configuration.stream.hasDistinctPayloadTypes(with: codec.description, accepted: accepted) else {
            throw EngineError.state(
                "\(configuration.name) has the same payload type for two kinds of packets, or one above 127. "
                    + "Give codecs, telephone events, RED and comfort noise a number of their own, dynamic ones from 96 to 127."
            )
        }
        let sockets = try CallSockets(configuration, seed: nextSeed())
        let capture = try configuration.capturePath.map {
            try CaptureFile(path: $0, unixNanosecondsAtZero: timebase.unixNanosecondsAtZero)
        }
        var rules = RTPSessionConfiguration(
            canonicalName: "\(configuration.name)@\(sockets.local.host)",
            unixNanosecondsAtZero: timebase.unixNanosecondsAtZero,
            destination: configuration.remote
        )
        rules.isMultiplexed = sockets.controlLink == nil
        rules.isSymmetric = configuration.isSymmetric
        rules.sendsExtendedReports = configuration.sendsExtendedReports
        let transport = RTPTransport(
            session: RTPSession(configuration: rules, seed: nextSeed()),
            link: sockets.link,
            controlLink: sockets.controlLink,
            localAddress: sockets.local,
            payloadType: configuration.stream.payloadType(of: codec.description),
            clockRate: UInt32(codec.description.clockRate),
            acceptedPayloadTypes: accepted.map { ($0.payloadType, UInt32($0.codec.description.clockRate)) },
            telephoneEventPayloadType: configuration.stream.telephoneEventPayloadType,
            redPayloadType: configuration.stream.redPayloadType,
            comfortNoise: configuration.stream.comfortNoise(with: codec.description, accepted: accepted),
            tap: capture?.tap,
            scratch: scratch
        )
        let stream = try AudioStream(
            codec,
            configuration.stream,
            accepting: accepted,
            transport: transport,
            detectsInBandDTMF: configuration.detectsInBandDTMF
        )
        return Call(
            configuration,
            stream: stream,
            source: try CallEndParts(configuration.source, format: stream.format, at: now),
            sink: try CallEndParts(configuration.sink, stream: stream, at: now),
            capture: capture,
            voice: try makeVoice(configuration, format: stream.format),
            localAddress: sockets.local,
            engine: self
        )
    }

    /// The codecs that the other side may change to, by their payload types.
    private func acceptedCodecs(of configuration: CallConfiguration) throws -> [AudioStream.Accepted] {
        try configuration.stream.acceptedCodecs.map { accepted in
            let codec = try state.withLock { state in try state.registry.codec(named: accepted.codec) }
            guard let payloadType = accepted.payloadType ?? codec.description.staticPayloadType else {
                throw EngineError.state(
                    "\(configuration.name) accepts \(accepted.codec), which has no payload type of its own. Name one."
                )
            }
            return (codec, payloadType)
        }
    }

    private func add(_ call: Call, to graph: inout Graph, _ devices: inout CallDevices) throws {
        if case .callCard = call.configuration.source {
            let capture = try devices.openCapture(self)
            let source = try devices.addVoice(of: call, after: capture, to: &graph)
            try call.stream.assemble(in: &graph, source: source)
        } else if let source = call.source.filter {
            try call.stream.assemble(in: &graph, source: try devices.addVoice(of: call, after: source, to: &graph))
        }
        if case .callCard = call.configuration.sink {
            try devices.openPlayback(self)
            devices.heard.append(call.stream.heard)
            try devices.linkPlayback(in: &graph)
        } else if let sink = call.sink.filter {
            try graph.connect(call.stream.heard, to: sink, converting: true)
        }
    }

    /// Serves the call's files and cards, and listens to its filters.
    private func attach(_ call: Call) {
        for part in call.source.services + call.sink.services { timebase.add(part.service, isCard: part.isCard) }
        if let capture = call.capture { timebase.add(capture) }
        let talking = [call.stream.receiver, call.stream.sender, call.stream.keyListener, call.source.filter]
            .compactMap(\.self)
        for filter in talking {
            pump.listen(to: filter) { [weak call] event in call?.handle(event) }
        }
    }

    /// Takes the call out of the graph, and closes what it had open.
    func end(_ call: Call) throws(EngineError) {
        let isFirst = call.state.withLock { state in
            defer { state.hasEnded = true }
            return !state.hasEnded
        }
        guard isFirst else { return }
        try EngineError.wrapping {
            let leave = call.stream.sender.leave(at: now)
            try state.withLock { state in
                if timebase.isVirtual { call.stream.sender.handle(leave) } else { send(leave) }
                var graph = state.graph
                if case .callCard = call.configuration.sink {
                    state.devices.heard.removeAll { $0 === call.stream.heard }
                }
                var leaving: [Filter] = call.stream.filters
                leaving += [call.source.filter, call.sink.filter].compactMap(\.self)
                leaving += call.state.withLock { $0.recording?.filters ?? [] }
                for filter in leaving { graph.remove(filter) }
                leaving += state.devices.removeUnusedVoices(from: &graph)
                try state.devices.linkPlayback(in: &graph)
                runner.install(try GraphPlan(graph))
                state.graph = graph
                state.calls.removeAll { $0 === call }
                pump.forget(leaving)
            }
            settle()
            for part in call.source.services + call.sink.services { timebase.remove(part.service) }
            call.finishEvents()
            try stopRecording(call)
            if let capture = call.capture {
                timebase.remove(capture)
                try capture.close()
            }
            try call.sink.close()
        }
    }

    /// Waits until the media thread runs the plan that was installed last; in virtual time it does not run meanwhile.
    func settle() {
        guard !timebase.isVirtual, state.withLock({ $0.driver }) != nil else { return }
        for _ in 0..<500 where !runner.isSettled { Self.sleepOneMillisecond() }
    }

    /// Brings what happened so far to the calls' reports: events that still wait.
    public func flushEvents() {
        pump.serve()
    }

    func nextSeed() -> UInt64 { seeds.withLock { $0.next() } }
}
