public import CallBasics
import RTP
import Synchronization

/// One full-duplex leg: it sends what its source gives, and plays what it receives.
///
/// Made by `CallEngine.makeCall`. What is asked of it takes effect at the edge of the next tick.
/// Thread: control, any; nothing here blocks.
public final class Call: Sendable {
    struct Recording {
        let near: FileRecorderFilter?
        let far: FileRecorderFilter?

        var filters: [FileRecorderFilter] { [near, far].compactMap(\.self) }
    }

    /// A plan of the call, and the graph that it was made from.
    struct Section {
        var graph: Graph
        var plan: GraphPlan
        let stage: Int
    }

    /// Where the call lies in the graph: whole, or its two directions apart, when cards stand between.
    struct Sections {
        var receiving: Section
        /// Nil where one plan has both directions.
        var sending: Section?
        /// The call's place at the mixer of the call card.
        var mixerInput: Int?
        /// What works on the microphone's signal: the call's own, or one that other calls use, too.
        var voice: CallVoice?
    }

    enum Life {
        case prepared
        case running
        case ending
        case ended
    }

    struct State {
        var stream: AudioStream
        var sections: Sections?
        var life = Life.prepared
        var isInterrupted = false
        var keys = ""
        var hasTelephoneEvents = false
        /// The key whose tones sound.
        var soundingKey: DTMFDigit?
        var isSourceEnded = false
        var protection: LossPolicy
        var recording: Recording?
    }

    /// The call's name in reports.
    public let name: String
    /// Where the other side's RTP must go.
    public let localAddress: SocketAddress
    /// Where its RTCP must go when RTP and RTCP do not share one port.
    public let localControlAddress: SocketAddress?
    /// What happens in the call.
    ///
    /// One task reads it; the newest 256 events wait for it.
    public let events: AsyncStream<CallEvent>

    let number: UInt64
    let configuration: CallConfiguration
    let source: CallSourceEnd
    let sink: CallSinkEnd
    let capture: CaptureFile?
    let state: Mutex<State>
    let engine: EngineCore
    /// One change of the call at a time: updates, recordings, the end.
    let changes = AsyncLock()
    let controls: StreamControls
    private let ownVoice: CallVoice?
    private let hasControlPort: Bool
    private let phase: EngineCore.Phase
    private let eventSink: AsyncStream<CallEvent>.Continuation

    /// Keys of the other side that are kept.
    static let keptKeys = 1024

    init(
        _ configuration: CallConfiguration,
        number: UInt64,
        stream: AudioStream,
        sockets: CallSockets,
        source: CallSourceEnd,
        sink: CallSinkEnd,
        capture: CaptureFile?,
        voice: CallVoice?,
        phase: EngineCore.Phase,
        engine: EngineCore
    ) {
        name = configuration.name
        localAddress = sockets.local
        localControlAddress = sockets.localControl
        hasControlPort = sockets.controlLink != nil
        self.number = number
        self.configuration = configuration
        self.source = source
        self.sink = sink
        self.capture = capture
        self.phase = phase
        self.engine = engine
        ownVoice = voice
        controls = stream.controls
        state = Mutex(State(stream: stream, protection: LossPolicy(stream.lossAbilities)))
        (events, eventSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256))
        controls.sendGain.switches.set(.muted, configuration.isMuted)
        controls.sending.set(.held, configuration.isOnHold)
        controls.receiveGain.switches.set(.held, configuration.isOnHold)
        follow(stream.agreement)
    }

    /// The stream as it is now.
    var stream: AudioStream { state.withLock { $0.stream } }

    // MARK: Facts

    /// What both sides agreed on, as of the last update.
    public var agreement: MediaAgreement { stream.agreement }

    /// Whether the source (file, samples, stream) has been played to its end.
    public var isSourceEnded: Bool {
        engine.loop.serve()
        return state.withLock { $0.isSourceEnded }
    }

    /// Whether the call has ended.
    public var hasEnded: Bool { state.withLock { $0.life == .ended || $0.life == .ending } }

    /// Keys that the other side has sent so far, the last 1024.
    public var receivedKeys: String {
        engine.loop.serve()
        return state.withLock { $0.keys }
    }

    /// What the playout does, row by row; nil unless the stream's configuration asks for it.
    package var playoutTrace: PlayoutTrace? { stream.playoutTrace }

    // MARK: Events

    /// Tells whoever reads the events.
    func tell(_ event: CallEvent) {
        eventSink.yield(event)
    }

    func finishEvents() {
        eventSink.finish()
    }

    func sourceEnded() {
        state.withLock { $0.isSourceEnded = true }
        eventSink.yield(.sourceEnded)
    }

    // MARK: Agreement

    /// Makes direction, and what is expected of the other side, follow what was agreed.
    func follow(_ agreement: MediaAgreement) {
        let isAgreed = agreement.codec != nil
        controls.sending.set(.notAgreed, !isAgreed || !agreement.direction.sends)
        controls.receiveGain.switches.set(.notAgreed, !isAgreed || !agreement.direction.receives)
        expectMedia()
    }

    /// Expects packets of the other side, or none while it is to send none.
    func expectMedia() {
        let isExpected = controls.receiveGain.switches.isOn
        let timeout = isExpected ? configuration.stallTimeout?.nanoseconds ?? .max : .max
        stream.receiver.patience.store(timeout, ordering: .releasing)
    }

    /// Changes what was agreed on, between two ticks: addresses, codecs, payload types, packet time, direction.
    ///
    /// Ports, SSRC, sequence numbers and time stamps go on; nothing is lost but what the change itself removes. What waits
    /// to be played is played, with the codec that it came with.
    /// - Throws: `EngineError` when a codec is not to be had or the call has ended; then nothing has changed.
    public func update(_ agreement: MediaAgreement) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await changes.withLock { try await applyUpdate(agreement) }
        }
    }

    private func applyUpdate(_ agreement: MediaAgreement) async throws {
        guard let (former, sections) = state.withLock({ state in state.sections.map { (state.stream, $0) } }), !hasEnded
        else { throw ended }
        guard agreement != former.agreement else { return }
        let registry = engine.state.withLock { $0.registry }
        let formats = try AgreedFormats(agreement, in: registry)
        let stream = try former.updated(agreement, formats)
        var orders = stream.takeOverOrders(
            from: former,
            addresses: agreement.addresses(hasControlPort: hasControlPort),
            at: engine.now
        )
        if stream.playout !== former.playout { orders += sink.follow(stream.playout) }
        let updated = try replan(sections, stream, orders: &orders)
        let settled = try engine.loop.give(orders)
        state.withLock { state in
            state.stream = stream
            state.sections = updated
            state.protection = LossPolicy(stream.lossAbilities)
        }
        follow(agreement)
        engine.loop.forget(former.talking)
        listen()
        await engine.loop.settled(settled)
    }

    var ended: EngineError { .state(.callEnded, "\(name) has ended. Make another call.") }

    // MARK: Graph

    /// Puts the call into the graph; answers what runs it.
    func addToGraph(_ shared: inout CardSections, _ loop: MediaLoop) throws -> [GraphRunner.Order] {
        var orders: [GraphRunner.Order] = []
        let stream = stream
        var place = Place()
        if sink.isCallCard {
            orders += try shared.addPlayback(loop)
            guard let input = shared.mixer.makeInput() else {
                throw EngineError.state(
                    .queueFull,
                    "\(MixerFilter.capacity) calls are heard on the call card. End one, or give this one another sink."
                )
            }
            place.heard = input.block
            place.mixerInput = input.number
            orders.append(.command(.open(input.number), to: shared.mixer))
        }
        if source.isCallCard {
            let captured = try shared.addCapture(ownVoice, loop)
            place.captured = captured.block
            place.voice = captured.voice ?? ownVoice
            place.isProcessed = captured.voice != nil
            orders += captured.orders
        } else {
            place.voice = ownVoice
        }
        let sections = try plan(stream, place, loop)
        orders.append(.insert(sections.receiving.plan, stage: sections.receiving.stage))
        if let sending = sections.sending { orders.append(.insert(sending.plan, stage: sending.stage)) }
        state.withLock { state in
            state.sections = sections
            state.life = .running
        }
        return orders
    }

    /// Where the call meets the cards that it shares.
    private struct Place {
        /// What is heard goes here.
        var heard: SharedBlock?
        var mixerInput: Int?
        /// What is captured lies here.
        var captured: SharedBlock?
        var voice: CallVoice?
        /// Whether what lies there has been through `voice`.
        var isProcessed = false
    }

    private func plan(_ stream: AudioStream, _ place: Place, _ loop: MediaLoop) throws -> Sections {
        var receiving = loop.makeGraph()
        try stream.assembleReceiving(in: &receiving)
        if let block = place.heard {
            let writer = SharedBlockWriter(block, purpose: "what is heard of \(name), for the mixer")
            try receiving.connect(stream.heard, to: writer, converting: true)
        } else if let filter = sink.filter {
            try receiving.connect(stream.heard, to: filter, converting: true)
        }
        guard let block = place.captured else {
            guard let filter = source.filter else { preconditionFailure("a source that is no card has a filter") }
            try assembleSending(stream, from: filter, place, heard: stream.heard, in: &receiving)
            let plan = try loop.plan(receiving)
            return Sections(
                receiving: Section(graph: receiving, plan: plan, stage: CardSections.Stage.receiving),
                sending: nil,
                mixerInput: place.mixerInput,
                voice: place.voice
            )
        }
        var sending = loop.makeGraph()
        let reader = SharedBlockReader(block, purpose: "what is captured")
        var heard: Filter?
        if let voice = place.voice, !place.isProcessed, voice.cancelsEcho {
            // The call's own canceller runs after the cards: what it has heard is kept for it.
            let kept = SharedBlock(format: stream.heardFormat, tickDuration: loop.tickDuration)
            try receiving.connect(stream.heard, to: SharedBlockWriter(kept, purpose: "what is heard, for echo cancelling"))
            heard = SharedBlockReader(kept, purpose: "what is heard of \(name)")
        }
        try assembleSending(stream, from: reader, place, heard: heard, in: &sending)
        return Sections(
            receiving: Section(
                graph: receiving,
                plan: try loop.plan(receiving),
                stage: CardSections.Stage.receiving
            ),
            sending: Section(graph: sending, plan: try loop.plan(sending), stage: CardSections.Stage.sending),
            mixerInput: place.mixerInput,
            voice: place.voice
        )
    }

    private func assembleSending(
        _ stream: AudioStream,
        from source: Filter,
        _ place: Place,
        heard: Filter?,
        in graph: inout Graph
    ) throws {
        guard let voice = place.voice, !place.isProcessed else {
            return try stream.assembleSending(in: &graph, source: source)
        }
        try graph.connect(source, to: voice.filter, converting: true)
        if voice.cancelsEcho, let heard { try graph.connect(heard, to: voice.filter, input: 1, converting: true) }
        try stream.assembleSending(in: &graph, source: voice.filter)
    }
}
