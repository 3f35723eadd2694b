import ArgumentParser
import CallBasics
import MediaEngine
import SDP

/// Where descriptions are read from and written to.
enum DescriptionFile {
    /// The description in the file that was named.
    ///
    /// - Throws: `ToolFailure` when it cannot be read, `SDPError` when it is none
    static func read(_ argument: String) throws -> SessionDescription {
        let bytes = try TextFile.read(InputPath.path(of: argument), limit: SessionDescription.Limits.byteCount)
        do {
            return try SessionDescription(parsing: String(decoding: bytes, as: UTF8.self))
        } catch {
            throw ToolFailure("\(InputPath.name(of: argument)): \(error.message)")
        }
    }

    /// Writes it to `path`; without one, to standard output.
    ///
    /// - Throws: `ToolFailure` when it cannot be written
    static func write(_ description: SessionDescription, as name: String, to path: String?, _ teller: SIPTeller) throws
    {
        let text = description.description
        if let path { return try TextFile.write(text, to: path) }
        teller.tell(name, [("sdp", .string(text))], text: text.replacing("\r\n", with: "\n"))
    }
}

/// Answers an offer of a browser.
struct WebRTCAnswerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "answer",
        abstract: "Answers the session description of a browser.",
        discussion: """
            The descriptions travel as you like: by files, a clipboard, a socket of your own. It is over when the browser closes its \
            connection, or is gone for 30 s.

            EXAMPLES
              media-tool webrtc answer --offer offer.sdp --answer answer.sdp --echo
              media-tool webrtc answer --input greeting.wav --output heard.wav --json < offer.sdp
            """
    )

    @Option(
        help: ArgumentHelp("The file with the offer. \(InputPath.help) Default: that.", valueName: "file"),
        completion: .file()
    )
    var offer = "-"

    @Option(
        help: ArgumentHelp("The file to write the answer to. Default: standard output.", valueName: "file"),
        completion: .file()
    )
    var answer: String?

    @OptionGroup var options: WebRTCOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        var files = FileArguments()
        try files.read("--offer", InputPath.path(of: offer))
        try options.audio.check(&files)
        try files.write("--answer", answer)
    }

    func run() async throws {
        common.startLogging()
        try options.secrets.begin()
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        let offered = try DescriptionFile.read(offer)
        Interruption.catchSignals()
        try await CallEngine.session(try options.audio.engineConfiguration()) { engine in
            let (call, answered) = try await WebRTCCall.answering(offered, by: engine, options, ice: options.way())
            try DescriptionFile.write(answered, as: "answer", to: answer, teller)
            try await call.finish(teller)
        }
    }
}

/// Offers a call to a browser.
struct WebRTCOfferCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "offer",
        abstract: "Offers a browser a call, and takes its answer.",
        discussion: """
            The answer is read once the offer is written: from standard input, or from a named pipe.

            EXAMPLES
              media-tool webrtc offer --offer offer.sdp --answer answer.fifo --echo
            """
    )

    @Option(
        help: ArgumentHelp("The file to write the offer to. Default: standard output.", valueName: "file"),
        completion: .file()
    )
    var offer: String?

    @Option(
        help: ArgumentHelp("The file with the answer. \(InputPath.help) Default: that.", valueName: "file"),
        completion: .file()
    )
    var answer = "-"

    @OptionGroup var options: WebRTCOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        var files = FileArguments()
        try files.read("--answer", InputPath.path(of: answer))
        try options.audio.check(&files)
        try files.write("--offer", offer)
    }

    func run() async throws {
        common.startLogging()
        try options.secrets.begin()
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        try await CallEngine.session(try options.audio.engineConfiguration()) { engine in
            let call = try await WebRTCCall.offering(by: engine, options, ice: options.way()) { offered in
                try DescriptionFile.write(offered, as: "offer", to: offer, teller)
                return try await BlockingWork.run { [answer] in try DescriptionFile.read(answer) }
            }
            // A signal ended it while it waited for the answer.
            Interruption.catchSignals()
            try await call.finish(teller)
        }
    }
}

extension WebRTCCall {
    /// Follows it to its end, and tells what it came to.
    ///
    /// - Throws: `ToolFailure` when there was no sound
    func finish(_ teller: SIPTeller) async throws {
        let report = try await run(teller)
        teller.tell("ended", report.members, text: report.text)
        if let failure = report.failure { throw ToolFailure(failure) }
    }
}
