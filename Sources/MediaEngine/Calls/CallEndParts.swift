/// The filter behind a `CallSource` or `CallSink`, and what must be served and closed with it.
struct CallEndParts {
    /// The filter to link; nil for an end that has none.
    var filter: Filter?
    /// What to serve in the background: files, and cards.
    var services: [(service: any BackgroundService, isCard: Bool)] = []
    /// The file to close at the end.
    private var sink: WAVSink?
    /// What knows where the file is to end; nil for one that ends with the call.
    private var playoutRecorder: PlayoutRecorderFilter?

    /// What `source` gives, as filters; `.callCard` is the engine's own.
    ///
    /// - Parameters:
    ///   - source: Where sound comes from.
    ///   - format: The format that is wanted, where the source can give any.
    ///   - now: The time, for cards that are opened.
    /// - Throws: The error of the file or card that cannot be had.
    init(_ source: CallSource, format: AudioFormat, at now: MediaTime) throws {
        switch source {
        case .silence: filter = SilenceFilter(format: format)
        case .callCard: filter = nil
        case .card(let card):
            let capture = CardCaptureFilter(card, CardRole.call.configuration(CallEngine.cardFormat))
            try capture.open(at: now)
            filter = capture
            services = [(capture.supervisor, true)]
        case .file(let path, let repetition):
            let player = try FilePlayerFilter(path: path, format: format, repetition: repetition)
            filter = player
            services = [(player.feed, false)]
        case .samples(let samples, let format): filter = SamplePlayerFilter(samples, format: format)
        case .filter(let given): filter = given
        }
    }

    /// Where `sink` takes sound, as filters; `.callCard` is the engine's own.
    ///
    /// - Parameters:
    ///   - sink: Where sound goes.
    ///   - stream: The stream that is heard.
    ///   - now: The time, for cards that are opened.
    /// - Throws: The error of the file or card that cannot be had.
    init(_ sink: CallSink, stream: AudioStream, at now: MediaTime) throws {
        switch sink {
        case .none, .callCard: filter = nil
        case .card(let card):
            let playback = CardPlaybackFilter(card, CardRole.call.configuration(CallEngine.cardFormat))
            try playback.open(at: now)
            filter = playback
            services = [(playback.supervisor, true)]
        case .file(let path):
            let recorder = try FileRecorderFilter(path: path, format: stream.format)
            filter = recorder
            services = [(recorder.sink, false)]
            self.sink = recorder.sink
        case .playout(let path):
            let file = WAVSink(try WAVWriter(path: path, format: stream.format))
            let recorder = PlayoutRecorderFilter(file, of: stream.playout)
            filter = recorder
            services = [(file, false)]
            self.sink = file
            playoutRecorder = recorder
        case .filter(let given): filter = given
        }
    }

    /// Writes what waits and closes the file, if there is one.
    ///
    /// - Throws: `WAVError` when some samples could not be written.
    func close() throws(WAVError) {
        try sink?.close(keeping: playoutRecorder?.endFrame.value)
    }
}
