import ArgumentParser
import MediaEngine

/// Rings on a card with a tone or a file, or writes the ring into a file.
struct RingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ring",
        abstract: "Rings with a country's tone or a WAV file.",
        discussion: """
            Tones: dial, ringback, busy, congestion, call-waiting, special-information, confirmation. Countries by \
            their ISO 3166-1 code: AU, CA, DE, ES, FR, GB (or UK), IT, JP, NL, US. A file starts over after a pause of \
            2 s. --output replaces the card and takes no time; a file then keeps its own rate and channels, a tone has \
            48000 Hz mono.

            EXAMPLES
              media-tool ring
              media-tool ring --country FR --seconds 10
              media-tool ring --tone busy --country DE --output busy.wav
              media-tool ring --file bell.wav --device 'alsa:plughw:1'
            """
    )

    @Option(help: ArgumentHelp("\(DeviceName.help) Default: the ringer role."), completion: DeviceName.completion)
    var device: String?

    @Option(
        help: ArgumentHelp(
            "A WAV file to ring with. \(InputPath.help) A pipe cannot start over: with --output alone.",
            valueName: "file"
        ),
        completion: .file(extensions: ["wav"])
    )
    var file: String?

    @Option(
        help: ArgumentHelp("A call-progress tone. Default: ringback.", valueName: "name"),
        completion: .list(CallProgressTone.allCases.map(\.rawValue))
    )
    var tone: String?

    @Option(
        help: ArgumentHelp("The country whose tone it is. Default: US.", valueName: "cc"),
        completion: .list(["AU", "CA", "DE", "ES", "FR", "GB", "IT", "JP", "NL", "UK", "US"])
    )
    var country: String?

    @Option(help: ArgumentHelp("How long it rings.", valueName: "n"))
    var seconds = 6.0

    @Option(
        help: ArgumentHelp("Write a WAV file in place of using a card.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var output: String?

    @OptionGroup var roles: BindingOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try roles.check(device: device, beside: "--output", output)
        try roles.check(device: device)
        if file != nil, tone != nil || country != nil {
            let other = tone != nil ? "--tone" : "--country"
            throw ValidationError("'--file' and '\(other)' exclude each other. Leave out one.")
        }
        var files = FileArguments()
        let path = file.map { InputPath.path(of: $0) }
        if let path, output == nil, InputPath.isPipe(path) {
            throw ValidationError("'--file' is a pipe, which cannot start over. Copy it to a file first.")
        }
        try files.read("--file", path)
        try files.write("--output", output)
        guard file == nil else { return }
        _ = try spec()
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        if let output {
            show(device: output, duration: try write(output), xruns: 0)
        } else {
            try await CallEngine.session(try roles.engineConfiguration()) { engine in try await ring(engine) }
        }
    }

    private func spec() throws -> ToneSpec {
        try ToneSpec(named: tone ?? CallProgressTone.ringback.rawValue, country: country ?? "US")
    }

    /// Writes the file; answers how long it is, which a signal makes shorter.
    private func write(_ path: String) throws -> Duration {
        let source: RingSource
        if let file {
            let (format, samples) = try WAVFile.read(InputPath.path(of: file))
            source = try RingSource(samples: samples, channelCount: format.channelCount, format: format)
        } else {
            source = try RingSource(tone: try spec(), format: CallEngine.cardFormat)
        }
        let writer = try WAVWriter(path: path, format: source.format)
        let frameCount = source.format.frameCount(in: .seconds(fraction: seconds))
        let fadeCount = min(source.format.frameCount(in: .milliseconds(5)), frameCount)
        source.start()
        var written = try RenderedBlocks.write(frameCount - fadeCount, to: writer) { source.render(into: &$0) }
        source.stop()
        written += try RenderedBlocks.write(fadeCount, to: writer) { source.render(into: &$0) }
        try writer.close()
        return source.format.duration(ofFrames: written)
    }

    private func ring(_ engine: CallEngine) async throws {
        let opening = try await DeviceName.open(device, role: .ringer, .playback, in: engine.cards) { card in
            try await engine.makeToneStream(on: [card])
        }
        let stream = opening.result
        let start = engine.now
        if let file {
            try await stream.play(file: InputPath.path(of: file), repetition: .forever(pause: RingSource.defaultPause))
        } else {
            try stream.play(try spec())
        }
        var progress = ProgressLine(total: seconds)
        let end = start + .seconds(fraction: seconds)
        while engine.now < end, await Interruption.wait(until: min(end, engine.now + .milliseconds(250))) {
            progress.show((engine.now - start).roundedSeconds)
        }
        progress.clear()
        let duration = engine.now - start
        try await stream.stopRinging()
        // The fade, and the card's buffer, play out.
        _ = await Interruption.wait(.milliseconds(100))
        let xruns = stream.cardStatistics.reduce(0) { $0 + $1.xruns }
        await stream.stop()
        show(device: opening.name, duration: duration, xruns: xruns)
    }

    private func show(device: String, duration: Duration, xruns: Int) {
        let rung = "\(tone ?? CallProgressTone.ringback.rawValue) (\((country ?? "US").uppercased()))"
        let name = file.map { InputPath.name(of: $0) } ?? rung
        common.show(
            [
                "device": .string(device),
                "file": JSONValue(file),
                "tone": file == nil ? .string(tone ?? CallProgressTone.ringback.rawValue) : .null,
                "country": file == nil ? .string((country ?? "US").uppercased()) : .null,
                "seconds": .number(duration.roundedSeconds),
                "xruns": .integer(xruns),
            ],
            text: "rang with \(name) for \(duration.roundedSeconds) s on \(device); "
                + "\(English.count(xruns, "xrun"))\n"
        )
    }
}
