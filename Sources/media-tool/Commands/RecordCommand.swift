import ArgumentParser
import MediaEngine

/// Records a card into a WAV file.
struct RecordCommand: ParsableCommand {
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
    }

    func run() throws {
        common.startLogging()
        Interruption.catchSignals()
        let cards = try CardList(bindings: try roles.bindings())
        let card = try DeviceName.card(device, role: .call, in: cards)
        let format = CallEngine.cardFormat
        let capture = CardCaptureFilter(card, CardRole.call.configuration(format))
        try capture.open(at: MonotonicClock.current)
        DeviceName.noteFallback(card)
        let recorder = try FileRecorderFilter(path: file, format: format)
        try record(from: capture, recorder, frameCount: format.frameCount(in: .seconds(fraction: seconds)))
        let recorded = format.duration(ofFrames: recorder.sink.frameCount).roundedSeconds
        let statistics = capture.statistics.value
        let name = card.description.name
        common.show(
            [
                "file": .string(file),
                "device": .string(name),
                "seconds": .number(recorded),
                "xruns": .integer(statistics.xruns),
                "framesLost": .integer(statistics.framesLost),
            ],
            text: "recorded \(recorded) s of \(name) into \(file); \(statistics.xruns) xruns\n"
        )
    }

    /// Runs the card, a tick per period, until enough frames are in the file.
    private func record(from capture: CardCaptureFilter, _ recorder: FileRecorderFilter, frameCount: Int) throws {
        let (files, supervision) = (ServiceThread(), ServiceThread())
        try files.start()
        try supervision.start()
        files.add(recorder.sink)
        supervision.add(capture.supervisor)
        let runner = GraphRunner()
        var graph = Graph()
        try graph.connect(capture, to: recorder)
        runner.install(try GraphPlan(graph))
        let driver = TimerDriver(runner, pacer: CardPacer(capture), name: "media")
        try driver.start()
        var progress = ProgressLine(total: seconds)
        while recorder.statistics.value.frames < frameCount, recorder.sink.failure == nil,
            Interruption.wait(.milliseconds(10))
        {
            progress.show(Double(recorder.statistics.value.frames) / Double(CallEngine.cardFormat.sampleRate))
        }
        progress.clear()
        driver.stop()
        files.stop()
        supervision.stop()
        try recorder.sink.close(keeping: frameCount)
    }
}
