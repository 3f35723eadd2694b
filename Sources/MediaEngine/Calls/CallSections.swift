/// Where a call lies in the graph: in one plan, or its two directions in one each, when the cards stand between.
///
///     receiving  RTP receive ─► … ─► sink, or the mixer of the call card
///     sending    source, or what the call card captures ─► (voice) ─► … ─► RTP send
///
/// Thread: control, by one change of the call at a time.
struct CallSections {
    /// Where the call meets the cards that it shares, and what stands at its ends.
    struct Place {
        /// What is heard goes here: a place at the mixer of the call card.
        var heard: SharedBlock?
        var mixerInput: Int?
        /// What is captured lies here.
        var captured: SharedBlock?
        /// What works on the microphone's signal: the call's own, or one that other calls use, too.
        var voice: CallVoice?
        /// Whether what lies in `captured` has been through `voice`.
        var isProcessed = false
        let source: Filter?
        let sink: Filter?
        /// What gives the sound for who is held.
        let held: Filter?

        /// The canceller that works in the call's own plans.
        var inner: CallVoice? { isProcessed ? nil : voice }
    }

    /// A plan, and the graph that it was made from.
    private struct Section {
        var graph: Graph
        var plan: GraphPlan
        let stage: Int

        init(_ graph: Graph, stage: Int, _ loop: MediaLoop) throws(GraphError) {
            self.graph = graph
            self.stage = stage
            plan = try loop.plan(graph)
        }

        /// Plans the graph anew; answers what runs it.
        mutating func replan(_ loop: MediaLoop) throws(GraphError) -> GraphRunner.Order {
            let former = plan
            plan = try loop.plan(graph)
            return .replace(former, with: plan)
        }
    }

    let place: Place
    /// The filters of the stream, so that those that go can be told from those that stay.
    private var filters: [Filter]
    private var receiving: Section
    /// Nil where one plan has both directions.
    private var sending: Section?
    /// What gives the sound that is sent.
    private let source: Filter
    /// What takes the sound that is heard.
    private let sinks: [Filter]
    /// What gives the own canceller what is heard; nil where that is the stream's last filter itself.
    private let reference: Filter?

    /// The sections of `stream` between the ends of `place`.
    init(_ stream: AudioStream, _ place: Place, name: String, _ loop: MediaLoop) throws(GraphError) {
        self.place = place
        filters = stream.filters
        var sinks: [Filter] = []
        if let block = place.heard {
            sinks = [SharedBlockWriter(block, purpose: "what is heard of \(name), for the mixer")]
        } else if let sink = place.sink {
            sinks = [sink]
        }
        var reference: Filter?
        if place.captured != nil, let voice = place.inner, voice.cancelsEcho {
            // It runs after the cards: what the call has heard is kept for it.
            let kept = SharedBlock(format: CallEngine.cardFormat, tickDuration: loop.tickDuration)
            sinks.append(SharedBlockWriter(kept, purpose: "what is heard, for echo cancelling"))
            reference = SharedBlockReader(kept, purpose: "what is heard of \(name)")
        }
        if let block = place.captured {
            source = SharedBlockReader(block, purpose: "what is captured")
        } else {
            source = place.source ?? SilenceFilter(format: stream.format)
        }
        self.sinks = sinks
        self.reference = reference
        var receiving = loop.makeGraph()
        try Self.linkReceiving(stream, sinks, in: &receiving)
        if place.captured == nil {
            try Self.linkSending(stream, from: source, place, stream.heard, in: &receiving)
        } else {
            var sending = loop.makeGraph()
            try Self.linkSending(stream, from: source, place, reference, in: &sending)
            self.sending = try Section(sending, stage: CardSections.Stage.sending, loop)
        }
        self.receiving = try Section(receiving, stage: CardSections.Stage.receiving, loop)
    }

    private static func linkReceiving(
        _ stream: AudioStream,
        _ sinks: [Filter],
        in graph: inout Graph
    ) throws(GraphError) {
        try stream.linkReceiving(in: &graph)
        for sink in sinks { try graph.link(stream.heard, to: sink, converting: true) }
    }

    private static func linkSending(
        _ stream: AudioStream,
        from source: Filter,
        _ place: Place,
        _ heard: Filter?,
        in graph: inout Graph
    ) throws(GraphError) {
        guard let voice = place.inner else {
            return try stream.linkSending(in: &graph, source: source, held: place.held)
        }
        try graph.link(source, to: voice.filter, converting: true)
        if voice.cancelsEcho, let heard { try graph.link(heard, to: voice.filter, input: 1, converting: true) }
        try stream.linkSending(in: &graph, source: voice.filter, held: place.held)
    }

    // MARK: Changes

    /// What runs the call.
    var insertOrders: [GraphRunner.Order] {
        [receiving, sending].compactMap(\.self).map { .insert($0.plan, stage: $0.stage) }
    }

    /// What runs it no longer.
    var removeOrders: [GraphRunner.Order] { [receiving, sending].compactMap(\.self).map { .remove($0.plan) } }

    /// Puts `stream` in the place of the one before, with its recorders; answers what runs it.
    ///
    /// Filters that are in both stay where they are, with the converters beside them.
    mutating func replace(
        with stream: AudioStream,
        _ recording: CallRecording?,
        _ loop: MediaLoop
    ) throws(GraphError) -> [GraphRunner.Order] {
        let added = stream.filters
        let gone = filters.filter { former in !added.contains { $0 === former } }
        guard !gone.isEmpty || added.count != filters.count else { return [] }
        filters = added
        let (source, sinks, place, reference) = (source, sinks, place, reference)
        return try edit(loop) { receiving, sending throws(GraphError) in
            for filter in gone {
                receiving.remove(filter)
                sending?.remove(filter)
            }
            try Self.linkReceiving(stream, sinks, in: &receiving)
            if var apart = sending.take() {
                try Self.linkSending(stream, from: source, place, reference, in: &apart)
                sending = apart
            } else {
                try Self.linkSending(stream, from: source, place, stream.heard, in: &receiving)
            }
            try Self.link(recording, to: stream, &receiving, &sending)
        }
    }

    /// Adds recorders; answers what runs them.
    mutating func add(
        _ recording: CallRecording,
        to stream: AudioStream,
        _ loop: MediaLoop
    ) throws(GraphError) -> [GraphRunner.Order] {
        try edit(loop) { receiving, sending throws(GraphError) in
            try Self.link(recording, to: stream, &receiving, &sending)
        }
    }

    /// Removes recorders; answers what runs without them.
    mutating func remove(_ recording: CallRecording, _ loop: MediaLoop) throws(GraphError) -> [GraphRunner.Order] {
        try edit(loop) { receiving, sending in
            for filter in recording.filters {
                receiving.remove(filter)
                sending?.remove(filter)
            }
        }
    }

    private static func link(
        _ recording: CallRecording?,
        to stream: AudioStream,
        _ receiving: inout Graph,
        _ sending: inout Graph?
    ) throws(GraphError) {
        guard let recording else { return }
        if let far = recording.far { try receiving.link(stream.heard, to: far, converting: true) }
        let recorders = [recording.near, recording.stereo?.recorder].compactMap { $0 as Filter? }
        if var apart = sending.take() {
            for recorder in recorders { try apart.link(stream.sent, to: recorder, converting: true) }
            if let stereo = recording.stereo {
                try receiving.link(stream.heard, to: stereo.heardWriter, converting: true)
                try apart.link(stereo.heardReader, to: stereo.recorder, input: 1)
            }
            sending = apart
        } else {
            for recorder in recorders { try receiving.link(stream.sent, to: recorder, converting: true) }
            if let stereo = recording.stereo {
                try receiving.link(stream.heard, to: stereo.recorder, input: 1, converting: true)
            }
        }
    }

    private mutating func edit(
        _ loop: MediaLoop,
        _ body: (_ receiving: inout Graph, _ sending: inout Graph?) throws(GraphError) -> Void
    ) throws(GraphError) -> [GraphRunner.Order] {
        var apart = sending?.graph
        try body(&receiving.graph, &apart)
        var orders = [try receiving.replan(loop)]
        if let apart, var section = sending {
            section.graph = apart
            orders.append(try section.replan(loop))
            sending = section
        }
        return orders
    }

    /// The graphs, for drawings.
    var graphs: [Graph] { [receiving, sending].compactMap { $0?.graph } }
}
