import CallBasics
import RTP
import Synchronization

extension EngineCore {
    // MARK: Ports

    /// Opens the ports of a call that is still to be agreed on.
    func reserve(_ network: CallNetwork, hasControlPort: Bool) throws(EngineError) -> MediaReservation {
        MediaReservation(try openSockets(network, hasControlPort: hasControlPort))
    }

    private func openSockets(_ network: CallNetwork, hasControlPort: Bool) throws(EngineError) -> CallSockets {
        switch network {
        case .udp(let address):
            do throws(NetworkError) {
                return try CallSockets(bind: address, hasControlPort: hasControlPort, sharing: socketSharing)
            } catch {
                throw .network(error)
            }
        case .reserved(let reservation): return try reservation.take()
        case .link(let link, let local): return CallSockets(link, local: local)
        }
    }

    // MARK: Making

    /// Makes calls that all begin in the same tick.
    func makeCalls(_ configurations: [CallConfiguration]) async throws(EngineError) -> [Call] {
        var calls: [Call] = []
        guard !state.withLock({ $0.hasEnded }) else { throw endedError }
        do {
            for configuration in configurations { calls.append(try await prepare(configuration)) }
            // A card that was asked for by name must be there, before streams give and take sound; the engine's own may
            // come later.
            for route in calls.flatMap({ [$0.source.route, $0.sink.route] }).compactMap(\.self) {
                await route.opened()
                if let error = route.lastError { throw error }
            }
            try await begin(calls)
        } catch {
            for call in calls { await call.discard() }
            throw EngineError(error)
        }
        for route in calls.flatMap(\.routes) { await route.opened() }
        return calls
    }

    /// Opens what the call needs, without the engine's lock and off the concurrency pool.
    private func prepare(_ configuration: CallConfiguration) async throws(EngineError) -> Call {
        let registry = registry
        let formats: AgreedFormats
        do throws(CodecError) {
            formats = try AgreedFormats(configuration.agreement, in: registry)
        } catch {
            throw .codec(error)
        }
        let hasControlPort = !configuration.agreement.multiplexesControl
        let sockets = try openSockets(configuration.network, hasControlPort: hasControlPort)
        do throws(EngineError) {
            try configuration.check(configuration.agreement, over: sockets)
            return try await prepare(configuration, formats, sockets, registry)
        } catch {
            if case .reserved(let reservation) = configuration.network { reservation.giveBack(sockets) }
            throw error
        }
    }

    private func prepare(
        _ configuration: CallConfiguration,
        _ formats: AgreedFormats,
        _ sockets: CallSockets,
        _ registry: PluginRegistry
    ) async throws(EngineError) -> Call {
        let capture = try await openCapture(configuration.capturePath)
        let phase = phases.take(of: packetTicks(configuration.agreement, formats, configuration.stream))
        let leg = makeLeg(configuration, formats, sockets, capture?.tap)
        let stream: AudioStream
        do throws(CodecError) {
            stream = try AudioStream(
                configuration.agreement,
                formats,
                configuration.stream,
                phase: loop.tickDuration * phase.tick,
                isMuted: configuration.isMuted,
                hasHeldSound: configuration.heldSound != nil,
                over: leg
            )
        } catch {
            throw .codec(error)
        }
        leg.session.voicePath = stream.voicePath
        let source = try await CallSourceEnd(configuration.source, format: stream.format, cards: cards)
        var held: CallSourceEnd?
        do throws(EngineError) {
            if let sound = configuration.heldSound {
                held = try await CallSourceEnd(sound.source(stream.format), format: stream.format, cards: cards)
            }
            let sink = try await CallSinkEnd(configuration.sink, of: stream, cards: cards)
            let voice = try EngineError.wrapping {
                try CallVoice(
                    configuration.stream.voiceProcessing,
                    isCaptured: source.isCallCard,
                    isPlayed: sink.isCallCard,
                    format: stream.format,
                    registry: registry
                )
            }
            let number = state.withLock { state in
                state.callCount += 1
                return state.callCount
            }
            let call = Call(
                configuration,
                number: number,
                stream: stream,
                sockets: sockets,
                source: source,
                sink: sink,
                held: held,
                capture: capture,
                voice: voice,
                phase: phase,
                engine: self
            )
            call.begin()
            return call
        } catch {
            await source.close(timebase, loop, keepsStream: true)
            await held?.close(timebase, loop)
            throw error
        }
    }

    private func openCapture(_ path: String?) async throws(EngineError) -> CaptureFile? {
        guard let path else { return nil }
        let (timebase, unix) = (timebase, timebase.unixNanosecondsAtZero)
        // The timebase serves the file, and is not to be kept by it.
        let clock: @Sendable () -> MediaTime = { [weak timebase] in timebase?.now ?? .zero }
        return try await EngineError.wrappingAsync {
            try await BlockingWork.run { try CaptureFile(path: path, unixNanosecondsAtZero: unix, now: clock) }
        }
    }

    private func makeLeg(
        _ configuration: CallConfiguration,
        _ formats: AgreedFormats,
        _ sockets: CallSockets,
        _ tap: PacketTap?
    ) -> RTPLeg {
        var rules = RTPSessionConfiguration(
            canonicalName: "\(configuration.name)@\(sockets.local.host)",
            unixNanosecondsAtZero: timebase.unixNanosecondsAtZero
        )
        rules.addresses = configuration.agreement.addresses(
            hasControlPort: sockets.controlLink != nil,
            local: sockets.local
        )
        rules.sendsExtendedReports = configuration.sendsExtendedReports
        var link = sockets.link
        let seed = nextSeed()
        if !configuration.impairment.isNone {
            link = ImpairedLink(link, configuration.impairment, seed: configuration.impairmentSeed ?? seed)
        }
        var controlLink = sockets.controlLink
        // What the network does is done to the cipher text.
        if let security = configuration.security {
            link = security.secured(link, isOfControl: false)
            controlLink = controlLink.map { security.secured($0, isOfControl: true) }
        }
        let port = RTPPort(
            link: link,
            controlLink: controlLink,
            localAddress: sockets.local,
            tap: tap,
            scratch: scratch
        )
        let session = RTPSession(configuration: rules, payloads: formats.payloads, seed: nextSeed())
        return RTPLeg(session: session, port: port)
    }

    /// Ticks in each packet that a call sends.
    func packetTicks(
        _ agreement: MediaAgreement,
        _ formats: AgreedFormats,
        _ stream: AudioStreamConfiguration
    ) -> Int {
        let ptime = agreement.packetTime ?? stream.encoder.ptime ?? formats.codec.description.defaultPtime
        return max(Int(ptime.nanoseconds / loop.tickDuration.nanoseconds), 1)
    }

    /// Puts calls that are prepared into the graph, all at the same edge of a tick.
    private func begin(_ calls: [Call]) async throws {
        // Nothing waits under the engine's lock.
        try await startLoop()
        try state.withLock { state in
            guard !state.hasEnded else {
                throw endedError
            }
            let former = state.sections
            do {
                var orders: [GraphRunner.Order] = []
                for call in calls {
                    // It waited for its files and cards; who was named has all the time there is to be heard first.
                    call.stream.begin(at: now)
                    orders += try call.join(&state.sections, loop)
                }
                try loop.give(orders)
            } catch {
                state.sections = former
                throw error
            }
            for call in calls { state.calls[call.number] = call }
        }
    }

    /// Ends calls beside each other.
    func endCalls(_ calls: [Call]) async throws(EngineError) {
        // Virtual time is moved by one thread at a time. Of others, no more than have room for their orders.
        let together = timebase.isVirtual ? 1 : 64
        let failure = await withTaskGroup(of: EngineError?.self) { group in
            var failure: EngineError?
            for (index, call) in calls.enumerated() {
                if index >= together, let error = await group.next() { failure = failure ?? error }
                group.addTask { await Self.end(call) }
            }
            for await error in group { failure = failure ?? error }
            return failure
        }
        if let failure { throw failure }
    }

    /// Ends a call; answers what went wrong.
    private static func end(_ call: Call) async -> EngineError? {
        do throws(EngineError) {
            try await call.end()
            return nil
        } catch {
            return error
        }
    }

    /// Takes a call out of the graph; answers when the media thread is done with it.
    func takeOut(_ call: Call) throws -> UInt64 {
        try state.withLock { state in
            let former = state.sections
            do {
                return try loop.give(try call.leave(&state.sections, loop))
            } catch {
                state.sections = former
                throw error
            }
        }
    }

    /// Has the media thread run.
    func startLoop() async throws(EngineError) { try await loop.start(pacer: self.pacer) }

    private var pacer: any TickPacer {
        guard configuration.pace == .callCard else { return DeadlinePacer() }
        return CardPacer(capture: cards.capture.filter, playback: cards.playback.filter)
    }
}

extension AgreedFormats {
    /// What was agreed, with the codecs of `registry`.
    package init(_ agreement: MediaAgreement, in registry: PluginRegistry) throws(CodecError) {
        try self.init(agreement) {
            registry.codecs.first(where: \.isEnabled)?.codec
        } find: { name throws(CodecError) in
            try registry.codec(named: name)
        }
    }
}
