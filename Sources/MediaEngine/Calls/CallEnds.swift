import CallBasics

/// What stands behind a `CallSource`: the filter to link, and what must be served, listened to and closed with it.
final class CallSourceEnd: Sendable {
    private enum Part: Sendable {
        case nothing
        /// The engine's call card.
        case callCard
        case card(CardRoute)
        case file(WAVFeed, PipeService?)
        case stream(StreamSource)
    }

    /// The filter to link; nil for the engine's call card.
    let filter: Filter?
    private let part: Part
    private let player: ControlledFilter<Never, PlayerEvent>?

    /// The end of `source`.
    ///
    /// - Parameters:
    ///   - source: Where sound comes from.
    ///   - format: The format that is wanted, where the source can give any.
    ///   - cards: Opens cards.
    /// - Throws: `EngineError` when the file cannot be read, or the stream has ended with another call.
    init(_ source: CallSource, format: AudioFormat, cards: EngineCards) async throws(EngineError) {
        switch source {
        case .silence: (filter, part, player) = (SilenceFilter(format: format), .nothing, nil)
        case .callCard: (filter, part, player) = (nil, .callCard, nil)
        case .card(let card):
            let route = cards.makeRoute(to: card, .capture)
            (filter, part, player) = (route.filter, .card(route), nil)
        case .file(let path, let repetition):
            let file = try await EngineError.wrappingAsync {
                try await BlockingWork.run {
                    FilePlayerFilter(WAVFeed(try WAVReader(path: path), format: format, repetition: repetition))
                }
            }
            guard file.feed.isPipe else {
                (filter, part, player) = (file, .file(file.feed, nil), file)
                return
            }
            // Other files do not wait for whoever writes into it, nor does the end of the call.
            guard let pipe = PipeService(file.feed, until: { file.feed.isComplete }) else {
                throw .state(.noThread, "There is no room for the thread of \(path). End other programs.")
            }
            (filter, part, player) = (file, .file(file.feed, pipe), file)
        case .samples(let samples, let format):
            let memory = try await Self.player(of: samples, format)
            (filter, part, player) = (memory, .nothing, memory)
        case .stream(let stream):
            guard !stream.isClosed else { throw .streamEnded }
            (filter, part, player) = (stream.filter, .stream(stream), nil)
        case .filter(let given): (filter, part, player) = (given, .nothing, nil)
        }
    }

    /// A player of `samples`; those that must be converted first are off the concurrency pool.
    private static func player(
        of samples: [Int16],
        _ format: AudioFormat
    ) async throws(EngineError) -> SamplePlayerFilter {
        guard format.portFormat != format else { return SamplePlayerFilter(samples, format: format) }
        return try await EngineError.wrappingAsync {
            try await BlockingWork.run { SamplePlayerFilter(samples, format: format) }
        }
    }

    /// Whether it is the engine's call card.
    var isCallCard: Bool {
        if case .callCard = part { true } else { false }
    }

    /// The card's route, for a card of the call's own.
    var route: CardRoute? {
        if case .card(let route) = part { route } else { nil }
    }

    /// Begins to serve and listen; `ended` hears that all has been played.
    func begin(_ timebase: EngineTimebase, _ loop: MediaLoop, ended: @escaping @Sendable () -> Void) {
        switch part {
        case .file(let feed, nil): timebase.add(feed)
        case .stream(let stream):
            loop.listen(to: stream.filter) { event, _ in
                stream.handle(event)
                if case .ended = event { ended() }
            }
        case .nothing, .callCard, .card, .file: break
        }
        if let player { loop.listen(to: player) { _, _ in ended() } }
    }

    /// Lets go of what it has, but for cards; the media thread no longer touches it.
    ///
    /// - Parameters:
    ///   - timebase: What serves files.
    ///   - loop: What listens.
    ///   - keepsStream: Whether another call may still use the application's stream: this one was never made.
    func close(_ timebase: EngineTimebase, _ loop: MediaLoop, keepsStream: Bool = false) async {
        if let filter { loop.forget([filter]) }
        switch part {
        case .nothing, .callCard, .card: break
        case .file(let feed, nil): await BlockingWork.run { timebase.remove(feed) }
        case .file(_, let pipe?): pipe.stop()
        case .stream(let stream): if !keepsStream { stream.close() }
        }
    }
}

extension EngineError {
    /// A stream is used once more after the end of its call.
    fileprivate static var streamEnded: EngineError {
        .state(.streamEnded, "The stream has ended with the call that used it. Make another for this call.")
    }
}

/// What stands behind a `CallSink`.
final class CallSinkEnd: Sendable {
    private enum Part: Sendable {
        case nothing
        case callCard
        case card(CardRoute)
        case file(WAVSink)
        case playout(WAVSink, PlayoutRecorderFilter)
        case stream(StreamSink)
    }

    /// The filter to link; nil for the engine's call card, and where sound goes nowhere.
    let filter: Filter?
    private let part: Part

    /// The end of `sink`.
    ///
    /// - Parameters:
    ///   - sink: Where sound goes.
    ///   - stream: The stream that is heard.
    ///   - cards: Opens cards.
    /// - Throws: `EngineError` when the file cannot be written, or the stream has ended with another call.
    init(_ sink: CallSink, of stream: AudioStream, cards: EngineCards) async throws(EngineError) {
        switch sink {
        case .none: (filter, part) = (nil, .nothing)
        case .callCard: (filter, part) = (nil, .callCard)
        case .card(let card):
            let route = cards.makeRoute(to: card, .playback)
            (filter, part) = (route.filter, .card(route))
        case .file(let path):
            let file = try await Self.open(path, stream.heardFormat)
            (filter, part) = (FileRecorderFilter(file), .file(file))
        case .playout(let path):
            let file = try await Self.open(path, stream.heardFormat)
            let recorder = PlayoutRecorderFilter(file, of: stream.playout)
            (filter, part) = (recorder, .playout(file, recorder))
        case .stream(let stream):
            guard !stream.isClosed else { throw .streamEnded }
            (filter, part) = (stream.filter, .stream(stream))
        case .filter(let given): (filter, part) = (given, .nothing)
        }
    }

    /// Creates the WAV file at `path`, off the concurrency pool.
    static func open(_ path: String, _ format: AudioFormat) async throws(EngineError) -> WAVSink {
        try await EngineError.wrappingAsync {
            try await BlockingWork.run { WAVSink(try WAVWriter(path: path, format: format)) }
        }
    }

    /// Whether it is the engine's call card.
    var isCallCard: Bool {
        if case .callCard = part { true } else { false }
    }

    /// The card's route, for a card of the call's own.
    var route: CardRoute? {
        if case .card(let route) = part { route } else { nil }
    }

    /// Begins to serve and listen; `failed` hears that sound is lost.
    func begin(
        _ timebase: EngineTimebase,
        _ loop: MediaLoop,
        failed: @escaping @Sendable (EngineError) -> Void
    ) {
        switch part {
        case .file(let file), .playout(let file, _):
            file.whenFailing { failed(.file($0)) }
            timebase.add(file)
        case .stream(let stream): loop.listen(to: stream.filter) { event, _ in stream.handle(event) }
        case .nothing, .callCard, .card: break
        }
    }

    /// Waits no longer than need be for who reads the file: it is to be closed.
    func hurry() {
        switch part {
        case .file(let file), .playout(let file, _): file.hurry()
        case .nothing, .callCard, .card, .stream: break
        }
    }

    /// Another playout is heard from now on.
    func follow(_ playout: PlayoutFilter) -> [GraphRunner.Order] {
        guard case .playout(_, let recorder) = part else { return [] }
        return [.command(.follow(.passUnretained(playout)), to: recorder)]
    }

    /// Lets go of what it has, but for cards; the media thread no longer touches it.
    ///
    /// - Parameters:
    ///   - timebase: What serves files.
    ///   - loop: What listens.
    ///   - keepsStream: Whether another call may still use the application's stream: this one was never made.
    /// - Throws: `EngineError` when some samples could not be written.
    func close(
        _ timebase: EngineTimebase,
        _ loop: MediaLoop,
        keepsStream: Bool = false
    ) async throws(EngineError) {
        if let filter { loop.forget([filter]) }
        switch part {
        case .nothing, .callCard, .card: break
        case .file(let file): try await Self.close(file, timebase)
        case .playout(let file, let recorder):
            try await Self.close(file, timebase, keeping: recorder.endFrame.value)
        case .stream(let stream): if !keepsStream { stream.close() }
        }
    }

    /// Completes a WAV file, off the concurrency pool.
    static func close(
        _ file: WAVSink,
        _ timebase: EngineTimebase,
        keeping frameCount: Int? = nil
    ) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await BlockingWork.run {
                timebase.remove(file)
                try file.close(keeping: frameCount)
            }
        }
    }
}
