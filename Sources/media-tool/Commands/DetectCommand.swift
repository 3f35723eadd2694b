import ArgumentParser
import MediaEngine

/// Finds DTMF digits in a WAV file.
struct DetectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "detect",
        abstract: "Finds DTMF digits in a WAV file, with start and length.",
        discussion: """
            Any usual rate; each channel is heard for itself, as the two sides of a call are in a stereo recording. \
            Digits of 40 ms and more are found (ITU-T Q.24).

            EXAMPLES
              media-tool detect keys.wav
              media-tool detect call.wav --json
              sox call.mp3 -t wav - | media-tool detect -
            """
    )

    @Argument(help: "The WAV file. \(InputPath.help)", completion: .file(extensions: ["wav"]))
    var file: String

    @OptionGroup var common: CommonOptions

    func run() throws {
        common.startLogging()
        Interruption.catchSignals()
        let digits = try ChannelDigits(path: InputPath.path(of: file)) { Interruption.hasCome }
        if digits.isTruncated {
            StandardError.write("Note: \(file) is shorter than its header says; what is there is heard.\n")
        }
        common.show(json(digits), text: Self.text(digits))
    }

    private func json(_ found: ChannelDigits) -> JSONValue {
        [
            "digits": .string(found.digits),
            "channels": .array((0..<found.channelCount).map { .string(found.digits(inChannel: $0)) }),
            "events": .array(
                found.events.map { event in
                    [
                        "digit": .string(event.digit.description),
                        "channel": .integer(event.channel + 1),
                        "startMs": .milliseconds(event.start),
                        "durationMs": .milliseconds(event.duration),
                    ]
                }
            ),
        ]
    }

    private static func text(_ found: ChannelDigits) -> String {
        guard !found.events.isEmpty else { return "no digits\n" }
        func rounded(_ duration: Duration) -> String { "\((duration.milliseconds * 10).rounded() / 10)" }
        let isOne = found.channelCount == 1
        let rows = found.events.map { event in
            [event.digit.description, rounded(event.start), rounded(event.duration)]
                + (isOne ? [] : ["\(event.channel + 1)"])
        }
        let summary =
            isOne
            ? found.digits + "\n"
            : (0..<found.channelCount).map { channel in
                let digits = found.digits(inChannel: channel)
                return "channel \(channel + 1): \(digits.isEmpty ? "no digits" : digits)\n"
            }.joined()
        return summary + Table.text([["DIGIT", "START MS", "LENGTH MS"] + (isOne ? [] : ["CHANNEL"])] + rows)
    }
}
