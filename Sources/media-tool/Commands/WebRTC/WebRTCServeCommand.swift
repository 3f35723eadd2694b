import ArgumentParser
import CallBasics
import MediaEngine
import SDP

/// Serves a page by which a browser calls.
struct WebRTCServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serves a page: open it in a browser and press Call.",
        discussion: """
            The page calls by WHIP (RFC 9725), and so may any program: POST /call with an offer (application/sdp) is answered with \
            201, the answer and the call's place, which DELETE ends. PATCH with another whole offer, which is not of WHIP, is answered \
            likewise: that is how the page holds, and finds a new way when the network changes. Browsers give no microphone to a page of another machine \
            without HTTPS: have a proxy of your own in front, and name it by --origin, to serve others than this one. Anybody who \
            reaches the port may call. With #call behind its address the page calls at once, with #call=5 for 5 s.

            With --json each thing that happens is a line, "listening" first, and each call ends with its report; "browser" there is what \
            the page says that it has heard.

            EXAMPLES
              media-tool webrtc serve --echo
              media-tool webrtc serve --local 127.0.0.1:9000 --input greeting.wav --output heard.wav --calls 1
            """
    )

    @Option(help: ArgumentHelp("Where the page is: ADDRESS:PORT. Default: 127.0.0.1:8080.", valueName: "address"))
    var local: LocalAddress?

    @Option(
        help: ArgumentHelp(
            "Another address of the page that browsers may call from: https://phone.example.",
            valueName: "origin"
        )
    )
    var origin: String?

    @Option(help: ArgumentHelp("End after so many calls.", valueName: "n"))
    var calls: Int?

    @OptionGroup var options: WebRTCOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--calls", calls, in: 1...1_000_000)
        guard options.audio.pcap == nil || calls == 1 else {
            throw ValidationError("'--pcap' is the capture of one call. Give '--calls 1', or leave it out.")
        }
        if let origin, PageGate.host(of: origin) == nil {
            throw ValidationError(
                "The value '\(origin)' of '--origin' is no origin. Write https://NAME or https://NAME:PORT."
            )
        }
        var files = FileArguments()
        try options.audio.check(&files)
    }

    func run() async throws {
        common.startLogging()
        try options.secrets.begin()
        Interruption.catchSignals()
        StandardOutput.watch()
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        let address = local?.address ?? .loopback(port: 8080)
        try await CallEngine.session(try options.audio.engineConfiguration()) { engine in
            try options.audio.check(by: engine.registry)
            let way = try await options.way()
            let desk = WebRTCDesk(engine, options, ice: way, PageGate(origin: origin), limit: calls ?? .max, teller)
            let serving = Task {
                do {
                    try await PageServer.serve(at: address, listening: { Self.tell($0, teller) }) { request in
                        await desk.answer(request)
                    }
                } catch is CancellationError {
                    // All calls have ended.
                } catch {
                    await desk.close()
                    throw error
                }
            }
            let watch = Task { [seconds = options.seconds] in
                await Interruption.wait(for: seconds.map { .seconds(fraction: $0) })
                await desk.close()
            }
            await desk.finished()
            serving.cancel()
            watch.cancel()
            try await serving.value
            try await desk.check()
        }
    }

    private static func tell(_ address: SocketAddress, _ teller: SIPTeller) {
        let host = address.isIPv4 ? address.host : "[\(address.host)]"
        let url = "http://\(host):\(address.port)/"
        teller.tell("listening", [("url", .string(url))], text: "Open \(url) in a browser.")
    }
}
