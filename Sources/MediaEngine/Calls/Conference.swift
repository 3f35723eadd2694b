import Synchronization

/// Calls that hear each other: each hears all the others, and this side.
///
///     let conference = engine.makeConference()
///     try await conference.add(first)
///     try await conference.add(second)
///
/// Each call goes on to have its own source and sink: with the call card, this side talks with all of them. What a call hears is the
/// sum of the others without itself, in the tick in which it came. A call that is on hold neither hears nor is heard; one that
/// ends leaves by itself. Volume and gain of a call hold for the conference, too: `Call.volume` is how loud all hear it, and
/// `Call.isMuted` takes this side alone out of what it hears.
/// Thread: control, any; nothing here blocks.
public final class Conference: Sendable {
    /// Calls that fit into one.
    package static let capacity = 32

    private struct Member {
        let call: Call
        let seat: ConferenceSeat
        /// Whether the recording has what this side says to it: one call does for all that share a microphone.
        var isRecorded: Bool
    }

    private struct State {
        var members: [Member] = []
        var graph: Graph
        /// What runs, while there are calls, or a recording.
        var plan: GraphPlan?
        var recorder: FileRecorderFilter?
    }

    private let engine: EngineCore
    private let mixer: MixerFilter
    /// What this side says.
    private let voices: MixerFilter
    /// Adds both, for a recording.
    private let adder = AdderFilter(format: CallEngine.cardFormat)
    private let presence = GainControl()
    private let state: Mutex<State>
    /// One recording at a time is begun or ended.
    private let recordings = AsyncLock()

    init(_ engine: EngineCore) {
        self.engine = engine
        let (format, tick) = (CallEngine.cardFormat, engine.loop.tickDuration)
        mixer = MixerFilter(format: format, tickDuration: tick)
        voices = MixerFilter(format: format, tickDuration: tick)
        var graph = engine.loop.makeGraph()
        // It is in no other graph.
        _ = try? graph.add(mixer)
        state = Mutex(State(graph: graph))
    }

    /// The calls that are in it, in the order in which they came.
    public var calls: [Call] { state.withLock { $0.members.map(\.call) } }

    /// Whether this side is in it, as at first; without it the calls go on to hear each other.
    public var isPresent: Bool {
        get { presence.isOn }
        set {
            state.withLock { state in
                presence.set(.away, !newValue)
                for member in state.members { member.call.controls.sendGain.set(.away, !newValue) }
            }
        }
    }

    // MARK: Calls

    /// Takes in a call of the same engine; one that is in it already stays.
    ///
    /// - Throws: `EngineError` when it is in another conference, 32 calls are in this one already, or it has ended
    public func add(_ call: Call) async throws(EngineError) {
        guard call.engine === engine else {
            throw .state(.other, "\(call.name) is a call of another engine. A conference has calls of one.")
        }
        try await EngineError.wrappingAsync {
            try await call.changes.withLock {
                guard call.conference !== self else { return }
                guard call.conference == nil else {
                    throw EngineError.state(
                        .inConference,
                        "\(call.name) is in another conference. Remove it there first."
                    )
                }
                await engine.loop.settled(try seat(call))
            }
        }
    }

    private func seat(_ call: Call) throws -> UInt64 {
        try state.withLock { state in
            let stream = call.stream
            guard state.members.count < Self.capacity, let heard = mixer.makeInput(), let voice = voices.makeInput()
            else {
                throw EngineError.state(
                    .queueFull,
                    "\(Self.capacity) calls are in the conference. Remove one, or make another conference."
                )
            }
            do {
                let seat = ConferenceSeat(stream, heard: heard, voice: voice, in: mixer, presence)
                let isRecorded =
                    !call.source.isCallCard
                    || !state.members.contains { $0.isRecorded && $0.call.source.isCallCard }
                var orders: [GraphRunner.Order] = [.command(.open(heard.number), to: mixer)]
                if isRecorded { orders.append(.command(.open(voice.number), to: voices)) }
                let plan = try state.plan ?? engine.loop.plan(state.graph)
                if state.plan == nil { orders.append(.insert(plan, stage: CardSections.Stage.playback)) }
                call.controls.sendGain.set(.away, !presence.isOn)
                let settled = try call.sit(on: seat, after: orders, in: self)
                state.plan = plan
                state.members.append(Member(call: call, seat: seat, isRecorded: isRecorded))
                return settled
            } catch {
                call.controls.sendGain.set(.away, false)
                mixer.removeInput(heard.number)
                voices.removeInput(voice.number)
                throw error
            }
        }
    }

    /// Lets a call out; it goes on alone, and one that is not in it stays as it is.
    ///
    /// - Throws: `EngineError` when the media thread does not run
    public func remove(_ call: Call) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await call.changes.withLock {
                guard call.conference === self, !call.hasEnded else { return }
                let settled = try call.rise(after: closeOrders(for: call))
                call.controls.sendGain.set(.away, false)
                await engine.loop.settled(settled)
                forget(call)
            }
        }
    }

    /// What makes the conference hear a call no longer.
    func closeOrders(for call: Call) -> [GraphRunner.Order] {
        state.withLock { state in
            guard let member = state.members.first(where: { $0.call === call }) else { return [] }
            return [
                .command(.close(member.seat.heardInput), to: mixer),
                .command(.close(member.seat.voiceInput), to: voices),
            ]
        }
    }

    /// A call that was taken out is in it no longer; what it had is free for another.
    func forget(_ call: Call) {
        state.withLock { state in
            guard let place = state.members.firstIndex(where: { $0.call === call }) else { return }
            let gone = state.members.remove(at: place)
            mixer.removeInput(gone.seat.heardInput)
            voices.removeInput(gone.seat.voiceInput)
            if gone.isRecorded, gone.call.source.isCallCard,
                let heir = state.members.firstIndex(where: { $0.call.source.isCallCard })
            {
                let input = state.members[heir].seat.voiceInput
                if give([.command(.open(input), to: voices)]) { state.members[heir].isRecorded = true }
            }
            rest(&state)
        }
    }

    /// Runs nothing while there is nobody, and nothing to record.
    private func rest(_ state: inout State) {
        guard state.members.isEmpty, state.recorder == nil, let plan = state.plan else { return }
        if give([.remove(plan)]) { state.plan = nil }
    }

    /// Gives orders that can be missed: the media thread does not run then, nor will it.
    private func give(_ orders: [GraphRunner.Order]) -> Bool { (try? engine.loop.give(orders)) != nil }

    /// Lets all calls out, each of which goes on alone, and ends the recording.
    ///
    /// - Throws: `EngineError` when some samples could not be written, or the media thread does not run
    public func end() async throws(EngineError) {
        for call in calls { try await remove(call) }
        try await stopRecording()
    }

    // MARK: Recording

    /// Records all that is said into one WAV file, from the next tick on: the calls, and this side while it is present.
    ///
    /// It has one channel of 48 kHz, and goes on when calls come and go. Should it fail later, all calls tell so.
    /// - Parameter path: The file.
    /// - Throws: `EngineError` when it cannot be written, or a recording goes on
    public func startRecording(to path: String) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await recordings.withLock {
                guard state.withLock({ $0.recorder }) == nil else {
                    throw EngineError.state(.recording, "The conference is being recorded. Stop the recording first.")
                }
                let sink = try await CallSinkEnd.open(path, CallEngine.cardFormat)
                do {
                    try await engine.startLoop()
                    try record(FileRecorderFilter(sink))
                } catch {
                    // What is told is why it does not record, not what becomes of the empty file.
                    do { try await CallSinkEnd.close(sink, engine.timebase) } catch {}
                    throw error
                }
            }
        }
    }

    private func record(_ recorder: FileRecorderFilter) throws {
        try engine.hold(self)
        recorder.sink.whenFailing { [weak self] error in
            for call in self?.calls ?? [] { call.tell(.recordingFailed(.file(error))) }
        }
        do {
            try state.withLock { state in
                var graph = state.graph
                try graph.connect(mixer, to: adder)
                try graph.connect(voices, to: adder, input: 1)
                try graph.connect(adder, to: recorder)
                _ = try run(graph, &state)
                state.recorder = recorder
            }
        } catch {
            engine.letGo(self)
            throw error
        }
        engine.timebase.add(recorder.sink)
    }

    /// Runs another graph in the place of the one before.
    private func run(_ graph: Graph, _ state: inout State) throws -> UInt64 {
        let plan = try engine.loop.plan(graph)
        let settled = try engine.loop.give([
            state.plan.map { .replace($0, with: plan) } ?? .insert(plan, stage: CardSections.Stage.playback)
        ])
        (state.graph, state.plan) = (graph, plan)
        return settled
    }

    /// Ends the recording; the file is whole when it returns.
    ///
    /// - Throws: `EngineError` when some samples could not be written
    public func stopRecording() async throws(EngineError) {
        try await stopRecording(isThreadEnded: false)
    }

    /// As `stopRecording()`, also once the media thread has ended.
    func stopRecording(isThreadEnded: Bool) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await recordings.withLock {
                guard let recorder = state.withLock({ $0.recorder }) else { return }
                if !isThreadEnded { await engine.loop.settled(try takeOut(recorder)) }
                state.withLock { state in
                    state.recorder = nil
                    rest(&state)
                }
                engine.letGo(self)
                recorder.sink.hurry()
                try await CallSinkEnd.close(recorder.sink, engine.timebase)
            }
        }
    }

    private func takeOut(_ recorder: FileRecorderFilter) throws -> UInt64 {
        try state.withLock { state in
            var graph = state.graph
            for filter in [recorder, adder, voices] { graph.remove(filter) }
            return try run(graph, &state)
        }
    }

    /// What runs, for drawings.
    var drawnGraph: Graph? { state.withLock { $0.plan == nil ? nil : $0.graph } }
}

extension CallEngine {
    /// A conference without calls.
    public func makeConference() -> Conference { Conference(core) }
}

extension Call {
    /// The conference that the call is in.
    public var conference: Conference? { state.withLock { $0.conference } }

    /// Takes a place in a conference; answers when that is done.
    ///
    /// Thread: under the lock of changes.
    fileprivate func sit(
        on seat: ConferenceSeat,
        after orders: [GraphRunner.Order],
        in conference: Conference
    ) throws(EngineError) -> UInt64 {
        guard !hasEnded else { throw endedError }
        let (stream, recording) = state.withLock { ($0.stream, $0.recording) }
        let settled = try edit(after: orders) { (sections) throws(GraphError) in
            try sections.sit(on: seat, stream, recording, engine.loop)
        }
        state.withLock { $0.conference = conference }
        return settled
    }

    /// Gives the place back; answers when that is done.
    ///
    /// Thread: under the lock of changes.
    fileprivate func rise(after orders: [GraphRunner.Order]) throws(EngineError) -> UInt64 {
        let (stream, recording) = state.withLock { ($0.stream, $0.recording) }
        let settled = try edit(after: orders) { (sections) throws(GraphError) in
            try sections.rise(stream, recording, engine.loop)
        }
        state.withLock { $0.conference = nil }
        return settled
    }
}
