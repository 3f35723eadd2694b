import ArgumentParser
import MediaEngine

/// Plays DTMF digits on a card, or writes them into a file.
struct DTMFCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dtmf",
        abstract: "Dials digits on a sound card, or into a WAV file.",
        discussion: """
            The card is opened first and kept warm, so that each key sounds within a few milliseconds; --cold opens it \
            with the first key, whose time then counts from the opening. keyToSampleMs is, for each key, the time from \
            the press to the hand-over of its first sample to the card. `,` is a pause of 2 s, blanks mean nothing.

            --output replaces the card and takes no time: the first digit begins with the first frame, and each digit \
            and gap has its length to the frame.

            EXAMPLES
              media-tool dtmf '159#'
              media-tool dtmf '0,123' --duration 80 --gap 60 --device 'alsa:plughw:1'
              media-tool dtmf '159#' --output keys.wav --rate 8000
            """
    )

    @Argument(help: "Digits 0-9 * # A-D, `,` for a pause of 2 s, and blanks.")
    var digits: Digits

    @Option(help: ArgumentHelp("\(DeviceName.help) Default: the ringer role."), completion: DeviceName.completion)
    var device: String?

    @Option(help: ArgumentHelp("How long each digit sounds, 20 to 60000 ms.", valueName: "ms"))
    var duration = 100

    @Option(help: ArgumentHelp("The silence after each digit, 0 to 60000 ms.", valueName: "ms"))
    var gap = 100

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The level of each of the two sines, -60 to 3.17 dBm0.", valueName: "dBm0")
    )
    var level = -10.0

    @Option(
        help: ArgumentHelp("Write a WAV file in place of using a card.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var output: String?

    @Option(help: ArgumentHelp("The sample rate of file or card, 8000 to 192000 Hz.", valueName: "Hz"))
    var rate = 48000

    @Flag(help: "Open the card with the first key only.")
    var cold = false

    @OptionGroup var roles: BindingOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try digits.validate(limit: output == nil ? 256 : nil)
        try Quantity.check("--duration", duration, in: 20...60_000, "ms")
        try Quantity.check("--gap", gap, in: 0...60_000, "ms")
        try Quantity.check("--level", level, in: -60...3.17, "dBm0")
        try Quantity.check("--rate", rate, in: 8000...192_000, "Hz")
        try roles.check(device: device, beside: "--output", output)
        try roles.check(device: device)
        var files = FileArguments()
        try files.write("--output", output)
        if cold, output != nil {
            throw ValidationError("'--cold' concerns a card and cannot be used with '--output'. Leave out one.")
        }
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        if let output {
            let written = try write(output)
            show(device: output, played: written, delays: written.map { _ in .zero }, 0)
        } else {
            try await CallEngine.session(try roles.engineConfiguration()) { engine in try await dial(engine) }
        }
    }

    // MARK: File

    /// Writes the file; answers the keys in it, which a signal makes fewer.
    private func write(_ path: String) throws -> [DTMFDigit] {
        let format = AudioFormat(sampleRate: rate)
        let writer = try WAVWriter(path: path, format: format)
        let generator = ToneGenerator(format: format)
        generator.digitLevel = Decibels(level)
        var written: [DTMFDigit] = []
        for element in digits.sequence.elements {
            guard !Interruption.hasCome else { break }
            let length: Int
            switch element {
            case .digit(let digit):
                length = format.frameCount(in: digitDuration) + format.frameCount(in: digitGap)
                generator.play(digit, for: digitDuration, gap: digitGap)
                written.append(digit)
            case .pause(let pause):
                length = format.frameCount(in: pause)
                generator.pause(for: pause)
            }
            _ = try RenderedBlocks.write(length, to: writer) { generator.render(into: &$0) }
        }
        try writer.close()
        return written
    }

    // MARK: Card

    private func dial(_ engine: CallEngine) async throws {
        var asked = engine.now
        let opening = try await DeviceName.open(device, role: .ringer, .playback, in: engine.cards) { card in
            try await engine.makeToneStream(on: [card], format: AudioFormat(sampleRate: rate))
        }
        let stream = opening.result
        try stream.setDigitLevel(Decibels(level))
        if !cold {
            // Warm is a card that has taken sound for a while.
            let warm = rate / 10
            let limit = engine.now + .seconds(2)
            _ = await Interruption.wait(until: { stream.cardStatistics[0].frames >= warm || engine.now >= limit })
        }
        let openingTime = cold ? engine.now - asked : .zero
        asked = engine.now
        let played = try await press(on: stream, from: asked)
        // The card's buffer plays out after the last hand-over.
        _ = await Interruption.wait(.milliseconds(100))
        var delays = stream.keyToSample
        if !delays.isEmpty { delays[0] += openingTime }
        let xruns = stream.cardStatistics.reduce(0) { $0 + $1.xruns }
        await stream.stop()
        show(device: opening.name, played: played, delays: delays, xruns)
    }

    /// Presses each key at its time; answers those that were pressed before Ctrl-C.
    private func press(on stream: ToneStream, from start: MediaTime) async throws -> [DTMFDigit] {
        var next = start
        var played: [DTMFDigit] = []
        var progress = ProgressLine(total: digits.length(duration: digitDuration, gap: digitGap).roundedSeconds)
        defer { progress.clear() }
        for element in digits.sequence.elements {
            guard await Interruption.wait(until: next) else { break }
            progress.show((next - start).roundedSeconds)
            switch element {
            case .digit(let digit):
                // The next key is pressed when the gap is over; a shorter one here lets it sound at once.
                try stream.play(digit, for: digitDuration, gap: max(.zero, digitGap - .milliseconds(10)))
                played.append(digit)
                next += digitDuration + digitGap
            case .pause(let pause): next += pause
            }
        }
        _ = await Interruption.wait(until: { !stream.isDialling }, deadline: next)
        return played
    }

    private var digitDuration: Duration { .milliseconds(duration) }
    private var digitGap: Duration { .milliseconds(gap) }

    private func show(device: String, played: [DTMFDigit], delays: [Duration], _ xruns: Int) {
        let keys = played.map(\.description).joined()
        common.show(
            [
                "digits": .string(keys),
                "device": .string(device),
                "keyToSampleMs": .array(delays.map { .milliseconds($0) }),
                "xruns": .integer(xruns),
            ],
            text: Self.text(keys, device, output == nil ? delays : [], xruns)
        )
    }

    private static func text(_ keys: String, _ device: String, _ delays: [Duration], _ xruns: Int) -> String {
        guard let longest = delays.max() else { return "dialled \(keys) into \(device)\n" }
        let mean = delays.reduce(0) { $0 + $1.milliseconds } / Double(delays.count)
        func rounded(_ value: Double) -> Double { (value * 10).rounded() / 10 }
        return "dialled \(keys) on \(device): key to sample \(rounded(mean)) ms in the mean, "
            + "\(rounded(longest.milliseconds)) ms at most; \(English.count(xruns, "xrun"))\n"
    }
}
