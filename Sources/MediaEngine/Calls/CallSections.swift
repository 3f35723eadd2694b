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

    /// What the stream is linked with.
    private struct Ends {
        let place: Place
        /// What gives the sound that is sent.
        let source: Filter
        /// What takes the sound that is heard.
        var sinks: [Filter] = []
        /// What gives the own canceller what is heard; nil where that is the stream's last filter itself.
        var reference: Filter?
        /// The place in a conference, while the call has one, and what shuts each sink while this side is not in it.
        var seat: ConferenceSeat?
        var gates: [GainFilter] = []

        /// Keeps what is heard for an own canceller, whose plan runs later.
        mutating func keepHeard(_ name: String, _ loop: MediaLoop) {
            guard let voice = place.inner, voice.cancelsEcho, reference == nil else { return }
            let kept = SharedBlock(format: CallEngine.cardFormat, tickDuration: loop.tickDuration)
            sinks.append(SharedBlockWriter(kept, purpose: "what is heard, for echo cancelling"))
            reference = SharedBlockReader(kept, purpose: "what is heard of \(name)")
        }

        /// The filters that give what is sent, the stream's and their own.
        func sendingFilters(of stream: AudioStream) -> [Filter] {
            stream.sendingFilters + [source, place.held, place.inner?.filter].compactMap(\.self)
        }

        /// Links `stream` between these ends, as far as it is not.
        func link(
            _ stream: AudioStream,
            _ recording: CallRecording?,
            _ receiving: inout Graph,
            _ sending: inout Graph?
        ) throws(GraphError) {
            try stream.linkReceiving(in: &receiving)
            if let seat { try receiving.link(stream.heard, to: seat.tap, converting: true) }
            for (index, sink) in sinks.enumerated() {
                guard gates.indices.contains(index) else {
                    try receiving.link(stream.heard, to: sink, converting: true)
                    continue
                }
                try receiving.link(stream.heard, to: gates[index], converting: true)
                try receiving.link(gates[index], to: sink)
            }
            if var apart = sending.take() {
                try linkSending(stream, reference, in: &apart)
                sending = apart
            } else {
                try linkSending(stream, stream.heard, in: &receiving)
            }
            try recording?.link(to: stream, &receiving, &sending)
        }

        private func linkSending(
            _ stream: AudioStream,
            _ heard: Filter?,
            in graph: inout Graph
        ) throws(GraphError) {
            var source = source
            if let voice = place.inner {
                try graph.link(source, to: voice.filter, converting: true)
                if voice.cancelsEcho, let heard { try graph.link(heard, to: voice.filter, input: 1, converting: true) }
                source = voice.filter
            }
            try stream.linkSending(in: &graph, source: source, held: place.held, others: seat?.others)
            if let seat { try graph.link(stream.sendGain, to: seat.voice, converting: true) }
        }
    }

    /// The filters of the stream, so that those that go can be told from those that stay.
    private var filters: [Filter]
    private let name: String
    private var ends: Ends
    private var receiving: Section
    /// Nil where one plan has both directions.
    private var sending: Section?

    /// The sections of `stream` between the ends of `place`.
    init(_ stream: AudioStream, _ place: Place, name: String, _ loop: MediaLoop) throws(GraphError) {
        filters = stream.filters
        self.name = name
        let source: Filter
        if let block = place.captured {
            source = SharedBlockReader(block, purpose: "what is captured")
        } else {
            source = place.source ?? SilenceFilter(format: stream.format)
        }
        ends = Ends(place: place, source: source)
        if let block = place.heard {
            ends.sinks = [SharedBlockWriter(block, purpose: "what is heard of \(name), for the mixer")]
        } else if let sink = place.sink {
            ends.sinks = [sink]
        }
        var receiving = loop.makeGraph()
        var sending: Graph?
        if place.captured != nil {
            // It runs after the cards.
            ends.keepHeard(name, loop)
            sending = loop.makeGraph()
        }
        try ends.link(stream, nil, &receiving, &sending)
        self.receiving = try Section(receiving, stage: CardSections.Stage.receiving, loop)
        self.sending = nil
        if let sending { self.sending = try Section(sending, stage: CardSections.Stage.sending, loop) }
    }

    var place: Place { ends.place }

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
        var gone = filters.filter { former in !added.contains { $0 === former } }
        guard !gone.isEmpty || added.count != filters.count else { return [] }
        filters = added
        if let former = ends.seat {
            let seat = former.adapted(to: stream)
            gone += former.filters.filter { filter in !seat.filters.contains { $0 === filter } }
            ends.seat = seat
        }
        return try relink(stream, without: gone, recording, loop)
    }

    /// Gives the call a place in a conference; answers what runs it.
    ///
    /// It sends in a plan of its own from then on, behind the conference's, also once it has left.
    mutating func sit(
        on seat: ConferenceSeat,
        _ stream: AudioStream,
        _ recording: CallRecording?,
        _ loop: MediaLoop
    ) throws(GraphError) -> [GraphRunner.Order] {
        let isApart = sending != nil
        if !isApart { ends.keepHeard(name, loop) }
        ends.seat = seat
        ends.gates = ends.sinks.compactMap { sink in
            guard case .audio(let format)? = sink.description.inputs.first?.kind else { return nil }
            return seat.makeGate(format)
        }
        let gates = Array(zip(ends.gates, ends.sinks))
        let moved = isApart ? [] : ends.sendingFilters(of: stream) + (recording?.filters ?? [])
        return try relink(stream, without: moved, recording, sendsApart: !isApart, loop) { receiving in
            for (gate, sink) in gates { receiving.insert(gate, before: sink) }
        }
    }

    /// Takes the call out of its conference; answers what runs it alone.
    mutating func rise(
        _ stream: AudioStream,
        _ recording: CallRecording?,
        _ loop: MediaLoop
    ) throws(GraphError) -> [GraphRunner.Order] {
        let (seat, gates) = (ends.seat.take(), ends.gates)
        ends.gates = []
        return try relink(stream, without: seat?.filters ?? [], recording, loop) { receiving in
            for gate in gates { receiving.bypass(gate) }
        }
    }

    /// Adds recorders; answers what runs them.
    mutating func add(
        _ recording: CallRecording,
        to stream: AudioStream,
        _ loop: MediaLoop
    ) throws(GraphError) -> [GraphRunner.Order] {
        try edit(loop) { receiving, sending throws(GraphError) in
            try recording.link(to: stream, &receiving, &sending)
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

    private mutating func relink(
        _ stream: AudioStream,
        without gone: [Filter],
        _ recording: CallRecording?,
        sendsApart: Bool = false,
        _ loop: MediaLoop,
        _ change: (_ receiving: inout Graph) -> Void = { _ in }
    ) throws(GraphError) -> [GraphRunner.Order] {
        let ends = ends
        return try edit(loop) { receiving, sending throws(GraphError) in
            change(&receiving)
            for filter in gone {
                receiving.remove(filter)
                sending?.remove(filter)
            }
            if sendsApart { sending = loop.makeGraph() }
            try ends.link(stream, recording, &receiving, &sending)
        }
    }

    private mutating func edit(
        _ loop: MediaLoop,
        _ body: (_ receiving: inout Graph, _ sending: inout Graph?) throws(GraphError) -> Void
    ) throws(GraphError) -> [GraphRunner.Order] {
        var apart = sending?.graph
        try body(&receiving.graph, &apart)
        var orders = [try receiving.replan(loop)]
        guard let apart else { return orders }
        if var section = sending {
            section.graph = apart
            orders.append(try section.replan(loop))
            sending = section
        } else {
            let section = try Section(apart, stage: CardSections.Stage.sending, loop)
            orders.append(.insert(section.plan, stage: section.stage))
            sending = section
        }
        return orders
    }

    /// The graphs, for drawings.
    var graphs: [Graph] { [receiving, sending].compactMap { $0?.graph } }
}
