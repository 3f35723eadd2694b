import MediaEngine

/// What a leg sends: a WAV file, played once, or the built-in test signal.
struct AudioInput {
    /// Seconds of the test signal where nothing else says how long.
    static let defaultSeconds = 10.0

    private let path: String?
    private let format: AudioFormat
    /// How long the sound is; nil where the file does not say.
    let length: Duration?

    /// The file at `path`, or the test signal for `seconds`, as `format`.
    ///
    /// - Throws: `WAVError` when the file cannot be read.
    init(path: String?, seconds: Double?, format: AudioFormat) throws(WAVError) {
        let path = path.map { InputPath.path(of: $0) }
        self.path = path
        self.format = format
        guard let path else {
            length = .seconds(fraction: seconds ?? Self.defaultSeconds)
            return
        }
        // Who plays a pipe reads its header, too, and nobody can read that twice.
        guard !InputPath.isPipe(path) else {
            length = nil
            return
        }
        let reader = try WAVReader(path: path)
        if reader.isTruncated {
            let name = InputPath.name(of: path)
            StandardError.write("Note: \(name) is shorter than its header says; what is there is played.\n")
        }
        length = reader.frameCount.map { reader.format.duration(ofFrames: $0) }
    }

    /// Plays it from the beginning; each call gives another.
    func makePlayback() -> Playback {
        if let path { return Playback(source: .file(path), length: length, signal: nil) }
        let signal = TestSignalFilter(format: format, frameCount: format.frameCount(in: length ?? .zero))
        return Playback(source: .filter(signal), length: length, signal: signal)
    }

    /// The input as one call's source.
    struct Playback {
        let source: CallSource
        /// How long the sound is; nil where the file does not say.
        let length: Duration?
        fileprivate let signal: TestSignalFilter?

        /// Whether `call`, whose source it is, has sent the last of it.
        func hasEnded(in call: Call) -> Bool { signal?.isFinished ?? call.isSourceEnded }

        /// Whether the test signal has been given to its end; true of a file, which a limit may cut.
        var hasGivenSignal: Bool { signal?.isFinished ?? true }
    }
}
