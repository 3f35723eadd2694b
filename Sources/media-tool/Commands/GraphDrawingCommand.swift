import ArgumentParser
import MediaEngine

/// Draws the graphs that other commands run.
struct GraphDrawingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "graph",
        abstract: "Draws the graph of filters behind a command, as text or for Graphviz.",
        discussion: """
            loopback: two legs over a simulated network. call: one leg on the call card. dtmf: the tone stream on the \
            ringer card. ring: the tone stream with a file. The null card stands for all cards, and no time passes, so \
            the counters are zero.

            EXAMPLES
              media-tool graph loopback
              media-tool graph call --format dot | dot -Tsvg > call.svg
            """
    )

    enum Subject: String, ExpressibleByArgument, CaseIterable {
        case loopback, dtmf, ring, call
    }

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, dot
    }

    @Argument(help: "What to draw.")
    var subject: Subject

    @Option(help: "How to draw it.")
    var format = Format.text

    @OptionGroup var common: CommonOptions

    func run() async throws {
        common.startLogging()
        var configuration = CallEngineConfiguration.virtual()
        configuration.cardBindings = try CardBindings(flags: ["au": "null", "aq": "null"], environment: [:])
        let drawing = try await CallEngine.session(configuration) { engine in try await draw(engine) }
        common.show(
            [
                "graph": .string(subject.rawValue),
                "format": .string(format.rawValue),
                "drawing": .string(drawing),
            ],
            text: drawing.hasSuffix("\n") ? drawing : drawing + "\n"
        )
    }

    private func draw(_ engine: CallEngine) async throws -> String {
        let isDOT = format == .dot
        switch subject {
        case .dtmf:
            let stream = try await engine.makeToneStream(on: [engine.cards.ringerCard])
            return try stream.drawing(asDOT: isDOT)
        case .ring:
            let player = FilePlayerFilter(WAVFeed(try WAVReader(bytes: Self.bell), format: CallEngine.cardFormat))
            let tones = ToneFilter(format: CallEngine.cardFormat)
            let session = try CardSession()
            let card = session.route(to: engine.cards.ringerCard, .playback, .ringer).filter
            var graph = Graph(tickDuration: ToneStream.tickDuration)
            try graph.connect(player, to: tones)
            try graph.connect(tones, to: card)
            await session.stop()
            return isDOT ? graph.dot() : try graph.text()
        case .call:
            var call = CallConfiguration(network: .link(MemoryLink.pair().0, local: .loopback(port: 5004)))
            call.agreement.remote = .loopback(port: 5006)
            _ = try await engine.makeCall(call)
        case .loopback:
            let (left, right) = MemoryLink.pair()
            var a = CallConfiguration(network: .link(left, local: left.localAddress))
            a.name = "A"
            a.agreement.remote = right.localAddress
            a.source = .filter(TestSignalFilter(format: CallEngine.cardFormat, frameCount: 0))
            a.sink = .none
            var b = CallConfiguration(network: .link(right, local: right.localAddress))
            b.name = "B"
            b.agreement.remote = left.localAddress
            b.source = .filter(TestSignalFilter(format: CallEngine.cardFormat, frameCount: 0))
            b.sink = .none
            _ = try await engine.makeCalls([a, b])
        }
        return try engine.drawing(asDOT: isDOT)
    }

    /// A WAV file of 8000 Hz mono without a sample: what stands for the file to ring with.
    private static let bell: [UInt8] =
        Array("RIFF".utf8) + [36, 0, 0, 0] + Array("WAVEfmt ".utf8) + [16, 0, 0, 0, 1, 0, 1, 0]
        + [0x40, 0x1F, 0, 0, 0x80, 0x3E, 0, 0, 2, 0, 16, 0] + Array("data".utf8) + [0, 0, 0, 0]
}
