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
        try await EngineError.wrappingAsync {
            try await changes.withLock { try await record(near: near, far: far) }
        }
    }

    private func record(near: String?, far: String?) async throws {
        let (stream, isRecording) = state.withLock { ($0.stream, $0.recording != nil) }
        guard !isRecording else {
            throw EngineError.state(.recording, "\(name) is being recorded. Stop the recording first.")
        }
        guard !hasEnded else { throw endedError }
        let recording = try await CallRecording(stream, near: near, far: far)
        do {
            _ = try edit { (sections) throws(GraphError) in
                try sections.add(recording, to: stream, engine.loop)
            }
        } catch {
            // What is told is why it does not record, not what becomes of the empty files.
            do { try await recording.close(engine.timebase) } catch {}
            throw error
        }
        for filter in recording.filters { engine.timebase.add(filter.sink) }
        state.withLock { $0.recording = recording }
    }

    /// Ends the recording; the files are whole when it returns.
    ///
    /// - Throws: `EngineError` when some samples could not be written.
    public func stopRecording() async throws(EngineError) {
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
