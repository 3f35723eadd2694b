import Synchronization

/// The recorders of a call, for what is sent and what is heard.
struct CallRecording {
    let near: FileRecorderFilter?
    let far: FileRecorderFilter?

    var filters: [FileRecorderFilter] { [near, far].compactMap(\.self) }

    /// Recorders into WAV files at the given paths.
    init(_ stream: AudioStream, near: String?, far: String?) async throws(EngineError) {
        let (sent, heard) = (stream.format, stream.heardFormat)
        let nearFile: WAVSink?
        if let near { nearFile = try await CallSinkEnd.open(near, sent) } else { nearFile = nil }
        self.near = nearFile.map(FileRecorderFilter.init)
        let farFile: WAVSink?
        if let far { farFile = try await CallSinkEnd.open(far, heard) } else { farFile = nil }
        self.far = farFile.map(FileRecorderFilter.init)
    }

    /// Completes the files, all of them.
    ///
    /// - Throws: `EngineError` of the first file that some samples could not be written to.
    func close(_ timebase: EngineTimebase) async throws(EngineError) {
        var failure: EngineError?
        for filter in filters { filter.sink.hurry() }
        for filter in filters {
            do throws(EngineError) {
                try await CallSinkEnd.close(filter.sink, timebase)
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }
}

extension Call {
    /// Records each side into a WAV file of its own, from the next tick on.
    ///
    /// The files keep the rates that the sound has now, whatever is agreed on later.
    /// - Parameters:
    ///   - near: The file for what is sent; nil records it not.
    ///   - far: The file for what is heard; nil records it not.
    /// - Throws: `EngineError` when a file cannot be written, a recording goes on, or the call has ended.
    public func startRecording(near: String?, far: String?) async throws(EngineError) {
        let number = try beginRecording()
        defer { finishOpening(number) }
        // A file may take as long to open as it likes: a pipe waits for its reader. The call can end meanwhile.
        let recording = try await CallRecording(stream, near: near, far: far)
        do {
            let isWanted = try await EngineError.wrappingAsync {
                try await changes.withLock { try record(recording, number) }
            }
            if !isWanted { try await recording.close(engine.timebase) }
        } catch {
            // What is told is why it does not record, not what becomes of the empty files.
            do { try await recording.close(engine.timebase) } catch {}
            throw error
        }
    }

    /// Makes sure that one recording at a time is opened or goes on; answers its number.
    private func beginRecording() throws(EngineError) -> Int {
        guard !hasEnded else { throw endedError }
        let number = state.withLock { state -> Int? in
            guard state.recording == nil, state.openingRecording == nil else { return nil }
            state.recordingCount += 1
            state.openingRecording = state.recordingCount
            return state.recordingCount
        }
        guard let number else {
            throw .state(.recording, "\(name) is being recorded. Stop the recording first.")
        }
        return number
    }

    private func finishOpening(_ number: Int) {
        state.withLock { state in
            if state.openingRecording == number { state.openingRecording = nil }
        }
    }

    /// Begins to record; answers false when the recording has been stopped already.
    ///
    /// Thread: under the lock of changes.
    private func record(_ recording: CallRecording, _ number: Int) throws -> Bool {
        guard !hasEnded else { throw endedError }
        guard state.withLock({ $0.openingRecording }) == number else { return false }
        let stream = stream
        _ = try edit { (sections) throws(GraphError) in
            try sections.add(recording, to: stream, engine.loop)
        }
        for filter in recording.filters {
            filter.sink.whenFailing { [weak self] in self?.tell(.recordingFailed(.file($0))) }
            engine.timebase.add(filter.sink)
        }
        state.withLock { $0.recording = recording }
        return true
    }

    /// Ends the recording; the files are whole when it returns.
    ///
    /// - Throws: `EngineError` when some samples could not be written.
    public func stopRecording() async throws(EngineError) {
        // One whose files are still being opened does not begin, and another may.
        state.withLock { $0.openingRecording = nil }
        try await EngineError.wrappingAsync {
            try await changes.withLock {
                guard let recording = state.withLock({ $0.recording }), !hasEnded else { return }
                let settled = try edit { (sections) throws(GraphError) in
                    try sections.remove(recording, engine.loop)
                }
                state.withLock { $0.recording = nil }
                await engine.loop.settled(settled)
                try await recording.close(engine.timebase)
            }
        }
    }
}
