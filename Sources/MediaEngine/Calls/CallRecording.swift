import Synchronization

/// The recorders of a call, for what is sent and what is heard.
struct CallRecording {
    /// What is recorded into which file.
    enum Files: Sendable {
        /// Each side into a file of its own; nil records it not.
        case sides(near: String?, far: String?)
        /// Both sides into one, a channel each.
        case stereo(String)
    }

    /// The recorder of both sides, and the way of what is heard into a plan of its own for what is sent.
    struct Stereo {
        let recorder: StereoRecorderFilter
        let heardWriter: SharedBlockWriter
        let heardReader: SharedBlockReader

        var filters: [Filter] { [recorder, heardWriter, heardReader] }

        init(_ sink: WAVSink, tickDuration: Duration) {
            recorder = StereoRecorderFilter(sink, tickDuration: tickDuration)
            let heard = SharedBlock(
                format: AudioFormat(sampleRate: sink.format.sampleRate),
                tickDuration: tickDuration
            )
            heardWriter = SharedBlockWriter(heard, purpose: "what is heard, for the recording")
            heardReader = SharedBlockReader(heard, purpose: "what is heard")
        }
    }

    let near: FileRecorderFilter?
    let far: FileRecorderFilter?
    let stereo: Stereo?

    var filters: [Filter] { [near, far].compactMap(\.self) + (stereo?.filters ?? []) }

    /// The files' sides.
    var sinks: [WAVSink] { [near?.sink, far?.sink, stereo?.recorder.sink].compactMap(\.self) }

    /// Recorders of `stream` into WAV files.
    init(_ stream: AudioStream, _ files: Files, tickDuration: Duration) async throws(EngineError) {
        let (sent, heard) = (stream.format, stream.heardFormat)
        switch files {
        case .sides(let near, let far):
            let nearFile: WAVSink?
            if let near { nearFile = try await CallSinkEnd.open(near, sent) } else { nearFile = nil }
            self.near = nearFile.map(FileRecorderFilter.init)
            let farFile: WAVSink?
            if let far { farFile = try await CallSinkEnd.open(far, heard) } else { farFile = nil }
            self.far = farFile.map(FileRecorderFilter.init)
            stereo = nil
        case .stereo(let path):
            let rate = max(sent.sampleRate, heard.sampleRate)
            let file = try await CallSinkEnd.open(path, AudioFormat(sampleRate: rate, channelCount: 2))
            (near, far) = (nil, nil)
            stereo = Stereo(file, tickDuration: tickDuration)
        }
    }

    /// Adds the recorders to the graphs of `stream`, as far as they are not there.
    func link(to stream: AudioStream, _ receiving: inout Graph, _ sending: inout Graph?) throws(GraphError) {
        if let far { try receiving.link(stream.heard, to: far, converting: true) }
        let recorders = [near, stereo?.recorder].compactMap { $0 as Filter? }
        if var apart = sending.take() {
            for recorder in recorders { try apart.link(stream.sent, to: recorder, converting: true) }
            if let stereo {
                try receiving.link(stream.heard, to: stereo.heardWriter, converting: true)
                try apart.link(stereo.heardReader, to: stereo.recorder, input: 1)
            }
            sending = apart
        } else {
            for recorder in recorders { try receiving.link(stream.sent, to: recorder, converting: true) }
            if let stereo { try receiving.link(stream.heard, to: stereo.recorder, input: 1, converting: true) }
        }
    }

    /// Completes the files, all of them.
    ///
    /// - Throws: `EngineError` of the first file that some samples could not be written to.
    func close(_ timebase: EngineTimebase) async throws(EngineError) {
        var failure: EngineError?
        for sink in sinks { sink.hurry() }
        for sink in sinks {
            do throws(EngineError) {
                try await CallSinkEnd.close(sink, timebase)
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
        try await startRecording(.sides(near: near, far: far))
    }

    /// Records both sides into one WAV file, from the next tick on: what is sent on the left, what is heard on the right.
    ///
    /// The file keeps the higher of the rates that the sides have now, whatever is agreed on later; a side in stereo is
    /// mixed to one channel.
    /// - Parameter path: The file.
    /// - Throws: `EngineError` when the file cannot be written, a recording goes on, or the call has ended.
    public func startRecording(stereo path: String) async throws(EngineError) {
        try await startRecording(.stereo(path))
    }

    private func startRecording(_ files: CallRecording.Files) async throws(EngineError) {
        let number = try beginRecording()
        defer { finishOpening(number) }
        // A file may take as long to open as it likes: a pipe waits for its reader. The call can end meanwhile.
        let recording = try await CallRecording(stream, files, tickDuration: engine.loop.tickDuration)
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
        for sink in recording.sinks {
            sink.whenFailing { [weak self] in self?.tell(.recordingFailed(.file($0))) }
            engine.timebase.add(sink)
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
