import ArgumentParser
import MediaEngine

/// Finds DTMF digits in a WAV file.
struct DetectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "detect",
        abstract: "Finds DTMF digits in a WAV file, with start and length.",
        discussion: """
            Any usual rate; several channels are heard as their mean. Digits of 40 ms and more are found (ITU-T Q.24).

            EXAMPLES
              media-tool detect keys.wav
              media-tool detect call.wav --json
            """
    )

    @Argument(help: "The WAV file.", completion: .file(extensions: ["wav"]))
    var file: String

    @OptionGroup var common: CommonOptions

    private struct Found {
        let digit: DTMFDigit
        let start: Duration
        let duration: Duration
    }

    func run() throws {
        common.startLogging()
        Interruption.catchSignals()
        let found = try detect()
        let digits = found.map(\.digit.description).joined()
        common.show(
            [
                "digits": .string(digits),
                "events": .array(
                    found.map { event in
                        [
                            "digit": .string(event.digit.description),
                            "startMs": .milliseconds(event.start),
                            "durationMs": .milliseconds(event.duration),
                        ]
                    }
                ),
            ],
            text: found.isEmpty ? "no digits\n" : Self.text(digits, found)
        )
    }

    private func detect() throws -> [Found] {
        let reader = try WAVReader(path: file)
        if reader.isTruncated {
            StandardError.write("Note: \(file) is shorter than its header says; what is there is heard.\n")
        }
        // Below 8000 Hz the detector does not go; above, every rate is heard as it is.
        let isResampled = !(8000...192_000).contains(reader.format.sampleRate)
        let format = isResampled ? AudioFormat(sampleRate: 16000) : reader.format
        let detector = try DTMFDetector(sampleRate: format.sampleRate)
        var found: [Found] = []
        func take() {
            while let event = detector.nextDetection() {
                guard event.phase == .ended else { continue }
                found.append(
                    Found(
                        digit: event.digit,
                        start: format.duration(ofFrames: event.startFrame),
                        duration: format.duration(ofFrames: event.frameCount)
                    )
                )
            }
        }
        if isResampled {
            try Self.forEachBlock(of: WAVFeed(reader, format: format)) { samples in
                detector.process(samples)
                take()
            }
        } else {
            let channelCount = format.channelCount
            var block = [Int16](repeating: 0, count: 1024 * channelCount)
            while true {
                var target = block.mutableSpan
                let count = try reader.read(into: &target)
                guard count > 0, !Interruption.hasCome else { break }
                detector.process(block.span.extracting(0..<count * channelCount), channelCount: channelCount)
                take()
            }
        }
        detector.finish()
        take()
        return found
    }

    private static func forEachBlock(of feed: WAVFeed, _ body: (Span<Int16>) -> Void) throws {
        var block = [Int16](repeating: 0, count: 1024)
        while !feed.isEnded, !Interruption.hasCome {
            feed.serve()
            var target = block.mutableSpan
            let count = feed.read(into: &target)
            body(block.span.extracting(0..<count))
        }
        if let failure = feed.failure { throw failure }
    }

    private static func text(_ digits: String, _ found: [Found]) -> String {
        func rounded(_ duration: Duration) -> String { "\((duration.milliseconds * 10).rounded() / 10)" }
        let rows = found.map { [$0.digit.description, rounded($0.start), rounded($0.duration)] }
        return "\(digits)\n" + Table.text([["DIGIT", "START MS", "LENGTH MS"]] + rows)
    }
}
