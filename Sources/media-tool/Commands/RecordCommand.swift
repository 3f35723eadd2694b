import ArgumentParser
import MediaEngine

/// Records a card into a WAV file.
struct RecordCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record",
        abstract: "Records a sound card into a WAV file of 48000 Hz mono.",
        discussion: """
            Ctrl-C ends the recording early; the file is valid at every moment.

            EXAMPLES
              media-tool record note.wav --seconds 10
              media-tool record note.wav --device 'alsa:plughw:1' --seconds 3600
            """
    )

    @Argument(help: "The WAV file to write.", completion: .file(extensions: ["wav"]))
    var file: String

    @Option(help: ArgumentHelp("\(DeviceName.help) Default: the call role."), completion: DeviceName.completion)
    var device: String?

    @Option(help: ArgumentHelp("How long to record.", valueName: "n"))
    var seconds: Double

    @OptionGroup var roles: BindingOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try roles.check(device: device)
        var files = FileArguments()
        try files.write("the recording", file)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let cards = try CardList(bindings: try roles.bindings())
        let session = try CardSession()
        do {
            let capture = try await DeviceName.open(device, role: .call, .capture, in: cards) { card in
                try await session.open(card, .capture)
            }
            try await record(from: capture.result, of: capture.name, session)
        } catch {
            await session.stop()
            throw error
        }
    }

    private func record(from capture: CardSession.Opened, of name: String, _ session: CardSession) async throws {
        let format = CallEngine.cardFormat
        let recorder = try FileRecorderFilter(path: file, format: format)
        let frameCount = format.frameCount(in: .seconds(fraction: seconds))
        try await run(capture, recorder, session, frameCount: frameCount)
        let recorded = format.duration(ofFrames: recorder.sink.frameCount).roundedSeconds
        let statistics = capture.statistics
        common.show(
            [
                "file": .string(file),
                "device": .string(name),
                "seconds": .number(recorded),
                "xruns": .integer(statistics.xruns),
                "framesLost": .integer(statistics.framesLost),
                "disappearances": .integer(statistics.disappearances),
            ],
            text: "recorded \(recorded) s of \(name) into \(file); \(English.count(statistics.xruns, "xrun"))\n"
        )
        if let failure = session.watch.failure(at: MonotonicClock.current) { throw failure }
    }

    /// Runs the card, a tick per period, until enough frames are in the file.
    private func run(
        _ capture: CardSession.Opened,
        _ recorder: FileRecorderFilter,
        _ session: CardSession,
        frameCount: Int
    ) async throws {
        let files = ServiceThread()
        try files.start()
        files.add(recorder.sink)
        var graph = Graph()
        try graph.connect(capture.filter, to: recorder)
        try session.run(graph, pacer: CardPacer(capture: capture.filter, playback: nil), name: "media")
        var progress = ProgressLine(total: seconds)
        // What was dropped is silent in a file.
        while recorder.statistics.value.frameCount < frameCount, recorder.sink.failure == nil,
            await Interruption.wait(.milliseconds(10))
        {
            progress.show(Double(recorder.statistics.value.frameCount) / Double(CallEngine.cardFormat.sampleRate))
        }
        progress.clear()
        await session.stop()
        recorder.sink.hurry()
        files.stop()
        try recorder.sink.close(keeping: frameCount)
    }
}
