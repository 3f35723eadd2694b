import ArgumentParser
import MediaEngine

/// Plays a WAV file on a card.
struct PlayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "play",
        abstract: "Plays a WAV file on a sound card.",
        discussion: """
            Any usual rate; 8, 16, 24 and 32-bit integers, floats, µ-law and A-law; of more than two channels the \
            first two are heard.

            EXAMPLES
              media-tool play speech.wav
              media-tool play speech.wav --device 'AQ: Audio Queue Device'
            """
    )

    @Argument(help: "The WAV file. \(InputPath.help)", completion: .file(extensions: ["wav"]))
    var file: String

    @Option(help: ArgumentHelp("\(DeviceName.help) Default: the call role."), completion: DeviceName.completion)
    var device: String?

    @OptionGroup var roles: BindingOptions
    @OptionGroup var common: CommonOptions

    func validate() throws { try roles.check(device: device) }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        var format = AudioFormat(sampleRate: 48000, channelCount: 2)
        var length: Double?
        // Who plays a pipe reads its header, too, and nobody can read that twice.
        if !InputPath.isPipe(InputPath.path(of: file)) {
            let reader = try WAVReader(path: InputPath.path(of: file))
            if reader.isTruncated {
                StandardError.write("Note: \(file) is shorter than its header says; what is there is played.\n")
            }
            format = AudioFormat(sampleRate: 48000, channelCount: min(reader.format.channelCount, 2))
            length = reader.frameCount.map { reader.format.duration(ofFrames: $0).roundedSeconds }
        }
        let (played, total) = (format, length)
        try await CallEngine.session(try roles.engineConfiguration()) { engine in
            try await play(engine, played, length: total)
        }
    }

    private func play(_ engine: CallEngine, _ format: AudioFormat, length: Double?) async throws {
        let opening = try await DeviceName.open(device, role: .call, .playback, in: engine.cards) { card in
            try await engine.makeToneStream(on: [card], format: format)
        }
        let stream = opening.result
        let start = engine.now
        try await stream.play(file: InputPath.path(of: file))
        var progress = ProgressLine(total: length)
        while !stream.isFileEnded, await Interruption.wait(.milliseconds(10)) {
            progress.show((engine.now - start).roundedSeconds)
        }
        progress.clear()
        let duration = engine.now - start
        // The card's buffer plays out.
        if !Interruption.hasCome { _ = await Interruption.wait(.milliseconds(100)) }
        let cards = stream.cardStatistics
        let xruns = cards.reduce(0) { $0 + $1.xruns }
        await stream.stop()
        common.show(
            [
                "file": .string(file),
                "device": .string(opening.name),
                "seconds": .number(duration.roundedSeconds),
                "xruns": .integer(xruns),
                "disappearances": .integer(cards.reduce(0) { $0 + $1.disappearances }),
            ],
            text: "played \(InputPath.name(of: file)) for \(duration.roundedSeconds) s on \(opening.name); "
                + "\(English.count(xruns, "xrun"))\n"
        )
    }
}
