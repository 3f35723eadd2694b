public import CallBasics
import RTP
import SDP
import Synchronization

extension Call {
    /// Changes what was agreed on, between two ticks: addresses, codecs, payload types, packet time, direction.
    ///
    /// Ports, SSRC, sequence numbers and time stamps go on; nothing is lost but what the change itself removes. What waits
    /// to be played is played, with the codec that it came with.
    /// - Throws: `EngineError` when a codec is not to be had, RTCP is to have a port of its own and none was opened, or the
    ///   call has ended; then nothing has changed.
    public func update(_ agreement: MediaAgreement) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await changes.withLock { try await applyUpdate(agreement) }
        }
    }

    /// Goes to another address of this machine, as when the network has changed; ports, SSRC and sequence numbers stay.
    ///
    /// What is sent leaves from there in the next tick. The other side has to be told where to send to, by signalling. Reports name the
    /// address that the call began at.
    /// - Parameter host: The address; its port does not count.
    /// - Throws: `EngineError` when it is not this machine's, of the other family, or a port is another's there
    public func move(to host: SocketAddress) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await changes.withLock {
                guard !hasEnded else { throw endedError }
                do throws(NetworkError) { try sockets.move(to: host) } catch { throw EngineError.network(error) }
            }
        }
    }

    /// Goes on by other ports, which are its own from then on; SSRC and sequence numbers stay, as above.
    ///
    /// - Parameter reservation: The ports, as many as it has.
    /// - Throws: `EngineError` when another call has them, or they do not fit
    package func move(to reservation: MediaReservation) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await changes.withLock {
                guard !hasEnded else { throw endedError }
                let ports = try reservation.take()
                do throws(NetworkError) { try sockets.move(to: ports) } catch { throw EngineError.network(error) }
            }
        }
    }

    private func applyUpdate(_ agreement: MediaAgreement) async throws {
        let (former, recording) = state.withLock { ($0.stream, $0.recording) }
        guard !hasEnded else { throw endedError }
        guard agreement != former.agreement else { return }
        try configuration.check(agreement, over: sockets)
        let registry = engine.registry
        let formats = try AgreedFormats(agreement, in: registry)
        let phase = takePhase(for: agreement, formats, after: former)
        let stream = try former.updated(agreement, formats, phase: phase.map { engine.loop.tickDuration * $0.tick })
        var orders = stream.takeOverOrders(
            from: former,
            addresses: agreement.addresses(hasControlPort: sockets.controlLink != nil, local: sockets.local),
            at: engine.now
        )
        if stream.playout !== former.playout { orders += sink.follow(stream.playout) }
        if configuration.stream.fec == .auto {
            // An encoder of its own, or other abilities, begin without protection.
            let protection = state.withLock { $0.protection }
            let goesOn = stream.lossAbilities == former.lossAbilities
            orders += stream.orders(for: goesOn ? protection.current : .none)
        }
        let gone = former.filters.filter { filter in !stream.filters.contains { $0 === filter } }
        listen(to: stream)
        let settled: UInt64
        do throws(EngineError) {
            settled = try edit(after: orders) { (sections) throws(GraphError) in
                try sections.replace(with: stream, recording, engine.loop)
            }
        } catch {
            engine.loop.forget(stream.filters.filter { filter in !former.filters.contains { $0 === filter } })
            throw error
        }
        state.withLock { state in
            state.stream = stream
            if let phase { state.phase = phase }
            if stream.lossAbilities != former.lossAbilities { state.protection = LossPolicy(stream.lossAbilities) }
        }
        follow(agreement)
        await engine.loop.settled(settled)
        engine.loop.forget(gone)
    }

    /// The tick in which the call is to encode when packets of another length are agreed on before any was sent; nil leaves
    /// it where it is.
    private func takePhase(
        for agreement: MediaAgreement,
        _ formats: AgreedFormats,
        after former: AudioStream
    ) -> EncodingPhases.Phase? {
        guard agreement.codec != nil, former.hasSentNothing else { return nil }
        let ticks = engine.packetTicks(agreement, formats, configuration.stream)
        guard ticks != state.withLock({ $0.phase?.count }) else { return nil }
        return engine.phases.take(of: ticks)
    }

    /// Changes the sections and runs them, together with `orders` and after these; answers when that is done.
    ///
    /// Thread: under the lock of changes.
    /// - Throws: `EngineError` when it cannot be done; then nothing has changed.
    func edit(
        after orders: [GraphRunner.Order] = [],
        _ body: (inout CallSections) throws(GraphError) -> [GraphRunner.Order]
    ) throws(EngineError) -> UInt64 {
        guard var sections = state.withLock({ $0.sections }) else { throw endedError }
        let edits: [GraphRunner.Order]
        do throws(GraphError) { edits = try body(&sections) } catch { throw EngineError(error) }
        let settled = try engine.loop.give(orders + edits)
        state.withLock { $0.sections = sections }
        return settled
    }

    /// Makes direction, and what is expected of the other side, follow what was agreed.
    func follow(_ agreement: MediaAgreement) {
        let isAgreed = agreement.codec != nil
        controls.sending.set(.notAgreed, !isAgreed || !agreement.direction.sends)
        controls.receiveGain.set(.notAgreed, !isAgreed || !agreement.direction.receives)
        expectMedia()
    }

    /// Stops both directions for `reason`, or no longer; who is held goes on to hear the sound for that, if there is one.
    func set(_ reason: Switches.Reason, _ holds: Bool) {
        if reason == .held, let sound = controls.heldSound {
            sound.isPlaying = holds
        } else {
            controls.sending.set(reason, holds)
        }
        controls.receiveGain.set(reason, holds)
        expectMedia()
    }

    /// Expects packets of the other side, or none while it is to send none.
    private func expectMedia() {
        let isExpecting = controls.receiveGain.isOn
        let timeout = isExpecting ? configuration.stallTimeout?.nanoseconds : nil
        let isOneWay = controls.sending.holds(.notAgreed)
        stream.receiver.expectedMedia.store(
            isExpecting ? (isOneWay ? .maybe : .sound) : .nothing,
            ordering: .releasing
        )
        stream.receiver.patience.store(timeout ?? .max, ordering: .releasing)
    }
}
