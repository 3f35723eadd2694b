import CallBasics
import RTP
import Synchronization

extension EngineCore {
    // MARK: Ports

    /// Opens the ports of a call that is still to be agreed on.
    func reserve(_ network: CallNetwork, hasControlPort: Bool) throws(EngineError) -> MediaReservation {
        try EngineError.wrapping {
            MediaReservation(try openSockets(network, hasControlPort: hasControlPort))
        }
    }

    private func openSockets(_ network: CallNetwork, hasControlPort: Bool) throws -> CallSockets {
        switch network {
        case .udp(let address):
            try CallSockets(bind: address, hasControlPort: hasControlPort, clock: arrivalClock)
        case .reserved(let reservation): try reservation.take()
        case .link(let link, let local): CallSockets(link, local: local)
        }
    }

    // MARK: Making

    /// Makes calls that all begin in the same tick.
    func makeCalls(_ configurations: [CallConfiguration]) async throws(EngineError) -> [Call] {
        var calls: [Call] = []
        do {
            for configuration in configurations { calls.append(try await prepare(configuration)) }
            try begin(calls)
        } catch {
            for call in calls { await call.discard() }
            throw EngineError(error)
        }
        for call in calls { try await waitForOwnCards(call) }
        if calls.contains(where: { $0.source.isCallCard }) { await cards.capture.opened() }
        if calls.contains(where: { $0.sink.isCallCard }) { await cards.playback.opened() }
        return calls
    }

    /// Waits until the cards that were asked for by name have opened; without them there is no call.
    private func waitForOwnCards(_ call: Call) async throws(EngineError) {
        for route in [call.source.route, call.sink.route].compactMap(\.self) {
            await route.opened()
            guard let error = route.lastError else { continue }
            try? await call.end()
            throw .card(error)
        }
    }

    /// Opens what the call needs, without the engine's lock and off the concurrency pool.
    private func prepare(_ configuration: CallConfiguration) async throws(EngineError) -> Call {
        let agreement = configuration.agreement
        let registry = state.withLock { $0.registry }
        let formats = try EngineError.wrapping { try AgreedFormats(agreement, in: registry) }
        let sockets = try EngineError.wrapping {
            try openSockets(configuration.network, hasControlPort: !agreement.multiplexesControl)
        }
        let capture = try await EngineError.wrappingAsync { [unix = timebase.unixNanosecondsAtZero] in
            try await BlockingWork.run {
                try configuration.capturePath.map { try CaptureFile(path: $0, unixNanosecondsAtZero: unix) }
            }
        }
        let addresses = agreement.addresses(hasControlPort: sockets.controlLink != nil)
        var rules = RTPSessionConfiguration(
            canonicalName: "\(configuration.name)@\(sockets.local.host)",
            unixNanosecondsAtZero: timebase.unixNanosecondsAtZero
        )
        rules.addresses = addresses
        rules.sendsExtendedReports = configuration.sendsExtendedReports
        var link = sockets.link
        let seed = nextSeed()
        if !configuration.impairment.isNone {
            link = ImpairedLink(link, configuration.impairment, seed: configuration.impairmentSeed ?? seed)
        }
        let port = RTPPort(
            link: link,
            controlLink: sockets.controlLink,
            localAddress: sockets.local,
            tap: capture?.tap,
            scratch: scratch
        )
        let session = RTPSession(configuration: rules, payloads: formats.payloads, seed: nextSeed(), began: now)
        let phase = takePhase(formats, configuration.stream, agreement)
        let stream = try EngineError.wrapping {
            try AudioStream(
                agreement,
                formats,
                configuration.stream,
                phase: loop.tickDuration * phase.tick,
                over: RTPLeg(session: session, port: port)
            )
        }
        session.voicePath = stream.voicePath
        let source = try await CallSourceEnd(configuration.source, format: stream.format, cards: cards)
        let sink: CallSinkEnd
        do throws(EngineError) {
            sink = try await CallSinkEnd(configuration.sink, of: stream, cards: cards)
        } catch {
            await source.close(timebase, loop)
            throw error
        }
        let voice = try EngineError.wrapping {
            try CallVoice(
                configuration.stream.voiceProcessing,
                isCaptured: source.isCallCard,
                isPlayed: sink.isCallCard,
                format: stream.format,
                registry: registry
            )
        }
        return Call(
            configuration,
            number: state.withLock { state in
                state.callCount += 1
                return state.callCount
            },
            stream: stream,
            sockets: sockets,
            source: source,
            sink: sink,
            capture: capture,
            voice: voice,
            phase: phase,
            engine: self
        )
    }

    /// Puts calls that are prepared into the graph, all at the same edge of a tick.
    private func begin(_ calls: [Call]) throws {
        try state.withLock { state in
            guard !state.hasEnded else {
                throw EngineError.state(.engineEnded, "The engine has been shut down. Make another.")
            }
            let former = state.sections
            var orders: [GraphRunner.Order] = []
            do {
                for call in calls { orders += try call.addToGraph(&state.sections, loop) }
                for call in calls { call.listen() }
                try loop.give(orders, pacer: pacer)
            } catch {
                state.sections = former
                throw error
            }
            for call in calls { state.calls[call.number] = call }
        }
        for call in calls {
            call.source.begin(timebase, loop) { [weak call] in call?.sourceEnded() }
            call.sink.begin(timebase, loop)
            if let capture = call.capture { timebase.add(capture) }
            for route in [call.source.route, call.sink.route].compactMap(\.self) { route.use() }
            if call.source.isCallCard { cards.capture.use() }
            if call.sink.isCallCard { cards.playback.use() }
        }
    }

    private var pacer: any TickPacer {
        guard configuration.pace == .callCard else { return DeadlinePacer() }
        return CardPacer(capture: cards.capture.filter, playback: cards.playback.filter)
    }

    // MARK: Phases

    /// In which tick of its packets a call encodes.
    struct Phase: Hashable, Sendable {
        /// Ticks in a packet.
        let count: Int
        let tick: Int
    }

    /// The tick in which the fewest calls with packets of that length encode: all in one would make it late.
    private func takePhase(
        _ formats: AgreedFormats,
        _ configuration: AudioStreamConfiguration,
        _ agreement: MediaAgreement
    ) -> Phase {
        let ptime = agreement.packetTime ?? configuration.encoder.ptime ?? formats.codec.description.defaultPtime
        let count = max(Int(ptime.nanoseconds / loop.tickDuration.nanoseconds), 1)
        return state.withLock { state in
            var users = state.phases[count] ?? Array(repeating: 0, count: count)
            var tick = 0
            for candidate in users.indices where users[candidate] < users[tick] { tick = candidate }
            users[tick] += 1
            state.phases[count] = users
            return Phase(count: count, tick: tick)
        }
    }

    func givePhaseBack(_ phase: Phase) {
        state.withLock { state in state.phases[phase.count]?[phase.tick] -= 1 }
    }
}

extension AgreedFormats {
    /// What was agreed, with the codecs of `registry`.
    init(_ agreement: MediaAgreement, in registry: PluginRegistry) throws(CodecError) {
        try self.init(agreement) {
            registry.codecs.first(where: \.isEnabled)?.codec
        } find: { name throws(CodecError) in
            try registry.codec(named: name)
        }
    }
}
