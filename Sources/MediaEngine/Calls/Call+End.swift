import Synchronization

extension Call {
    /// Puts the call into the graph; answers what runs it.
    ///
    /// Thread: under the engine's lock.
    func join(_ shared: inout CardSections, _ loop: MediaLoop) throws -> [GraphRunner.Order] {
        var orders: [GraphRunner.Order] = []
        var place = CallSections.Place(source: source.filter, sink: sink.filter, held: held?.filter)
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
        do {
            orders += try join(&shared, &place, loop)
        } catch {
            if let input = place.mixerInput { shared.mixer.removeInput(input) }
            throw error
        }
        return orders
    }

    /// Makes the call's own sections; answers what runs them, with what is captured for them.
    private func join(
        _ shared: inout CardSections,
        _ place: inout CallSections.Place,
        _ loop: MediaLoop
    ) throws(GraphError) -> [GraphRunner.Order] {
        var orders: [GraphRunner.Order] = []
        place.voice = ownVoice
        if source.isCallCard {
            let captured = try shared.addCapture(ownVoice, loop)
            place.captured = captured.block
            place.isProcessed = captured.voice != nil
            place.voice = captured.voice ?? ownVoice
            orders += captured.orders
        }
        let sections = try CallSections(stream, place, name: name, loop)
        orders += sections.insertOrders
        state.withLock { state in
            state.sections = sections
            state.life = .running
        }
        return orders
    }

    /// What takes the call out of the graph, after a goodbye.
    ///
    /// Thread: under the engine's lock.
    func leave(_ shared: inout CardSections, _ loop: MediaLoop) throws -> [GraphRunner.Order] {
        guard let sections = state.withLock({ $0.sections }) else { return [] }
        var orders: [GraphRunner.Order] = [.command(.leave(at: engine.now), to: stream.sender)]
        orders += conference?.closeOrders(for: self) ?? []
        orders += sections.removeOrders
        if sink.isCallCard {
            if let input = sections.place.mixerInput { orders.append(.command(.close(input), to: shared.mixer)) }
            orders += shared.removePlayback()
        }
        if source.isCallCard { orders += try shared.removeCapture(sections.place.voice, loop) }
        return orders
    }

    /// Serves, and listens to, what the call has, and begins to open its cards; `end` or `discard` undo it.
    func begin() {
        listen(to: stream)
        source.begin(engine.timebase, engine.loop) { [weak self] in self?.sourceEnded() }
        held?.begin(engine.timebase, engine.loop) {}
        sink.begin(engine.timebase, engine.loop) { [weak self] in self?.tell(.recordingFailed($0)) }
        if let capture {
            capture.whenFailing { [weak self] in self?.tell(.recordingFailed(.capture($0))) }
            engine.timebase.add(capture)
        }
        for route in routes { route.use() }
    }

    /// The cards that the call uses.
    var routes: [CardRoute] {
        [
            source.isCallCard ? engine.cards.capture : source.route,
            sink.isCallCard ? engine.cards.playback : sink.route,
        ].compactMap(\.self)
    }

    /// Says goodbye (RTCP BYE), takes the call out of the graph and closes its files and ports.
    ///
    /// A call that has ended stays so: to end it once more does nothing.
    /// - Throws: `EngineError` when a file could not be completed; the call has ended all the same.
    public func end() async throws(EngineError) {
        try await end { [engine] in await engine.loop.settled(try engine.takeOut(self)) }
    }

    /// As `end()`, once the media thread has ended, so that nothing is to be taken out of the graph.
    func endWithoutThread() async throws(EngineError) {
        try await end {}
    }

    private func end(_ takeOut: @Sendable () async throws -> Void) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await changes.withLock {
                let isRunning = state.withLock { state in
                    defer { if state.life == .running { state.life = .ending } }
                    return state.life == .running
                }
                guard isRunning else { return }
                do {
                    try await takeOut()
                } catch {
                    // Nothing has been taken out: it can be ended again.
                    state.withLock { $0.life = .running }
                    throw error
                }
                for route in routes { await route.release() }
                defer { closePorts() }
                try await close(keepsStreams: false)
            }
        }
    }

    /// Closes what was opened for a call that never got into the graph; streams and reserved ports are free for another.
    func discard() async {
        for route in routes { await route.release() }
        // Why it did not begin is told; files that hold nothing have nothing to tell.
        do { try await close(keepsStreams: true) } catch {}
        giveBackPorts()
    }

    /// Gives reserved ports back to their reservation, and closes those that are the call's own.
    private func giveBackPorts() {
        guard case .reserved(let reservation) = configuration.network else { return closePorts() }
        reservation.giveBack(sockets)
    }

    /// Closes the ports, unless they are the application's, so that others may take them while the call is kept for its
    /// report.
    private func closePorts() {
        if case .link = configuration.network { return }
        sockets.close()
    }

    /// Closes everything, whatever fails.
    private func close(keepsStreams: Bool) async throws(EngineError) {
        let (timebase, loop) = (engine.timebase, engine.loop)
        loop.serve()
        var failure: EngineError?
        func attempt(_ body: () async throws(EngineError) -> Void) async {
            do throws(EngineError) { try await body() } catch { failure = failure ?? error }
        }
        // All at once, so that one reader who has stopped is waited for once.
        sink.hurry()
        capture?.hurry()
        for sink in state.withLock({ $0.recording?.sinks ?? [] }) { sink.hurry() }
        await source.close(timebase, loop, keepsStream: keepsStreams)
        await held?.close(timebase, loop)
        await attempt { () throws(EngineError) in
            try await sink.close(timebase, loop, keepsStream: keepsStreams)
        }
        let (recording, input, conference) = state.withLock { state in
            defer {
                state.phase = nil
                state.life = .ended
            }
            return (state.recording.take(), state.sections?.place.mixerInput, state.conference.take())
        }
        conference?.forget(self)
        if let recording {
            await attempt { () throws(EngineError) in try await recording.close(timebase) }
        }
        if let capture {
            await attempt { () throws(EngineError) in
                try await EngineError.wrappingAsync {
                    try await BlockingWork.run {
                        timebase.remove(capture)
                        try capture.close()
                    }
                }
            }
        }
        loop.forget(stream.filters)
        finishEvents()
        // Last: an engine that is shut down waits for the calls that it still has.
        engine.state.withLock { state in
            if let input { state.sections.mixer.removeInput(input) }
            state.calls[number] = nil
        }
        if let failure { throw failure }
    }
}
