import ArgumentParser
import SIP

/// Reads messages as the stack reads them.
struct SIPParseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "parse",
        abstract: "Reads SIP messages, and says what is wrong with them and which answer that gets.",
        discussion: """
            Each file is one datagram. What is wrong with a message is what a stack here refuses: methods, extensions and \
            types of body, which users choose, are not looked at. It fails when anything is wrong.

            With --json, each message is one JSON object on a line.

            EXAMPLES
              media-tool sip parse invite.sip
              media-tool sip parse invite.sip --print canonical
              media-tool sip parse invite.sip --strict --print json
              media-tool sip parse --stream dump.bin --json
              media-tool sip parse --uri 'sip:alice@example.org;transport=tcp'
              media-tool sip parse --sdp offer.sdp
              media-tool sip parse --push-params '<sip:a@192.0.2.1;pn-provider=apns;pn-param=T.b.voip;pn-prid=00fc:voip>'
              media-tool sip parse --cpim message.cpim
              media-tool sip parse --story story.json
            """
    )

    /// Whether messages are written as this stack would, or header by header.
    enum Printing: String, ExpressibleByArgument, CaseIterable {
        case canonical, json, none
    }

    @Argument(
        help: ArgumentHelp(
            "The files, or URIs with --uri, or Contacts with --push-params. \(InputPath.help)",
            valueName: "file"
        ),
        completion: .file()
    )
    var files: [String]

    @Flag(help: "Read each file as a stream: message after message, with keep-alives between them.")
    var stream = false

    @Flag(help: "Read the arguments themselves as URIs.")
    var uri = false

    @Flag(help: "Read session descriptions (SDP).")
    var sdp = false

    @Flag(
        help:
            "Read the arguments themselves as Contacts, for what they say of push (RFC 8599); of tokens the end is shown."
    )
    var pushParams = false

    @Flag(help: "Read messages in their envelopes (CPIM, RFC 3862).")
    var cpim = false

    @Flag(help: "Read stories, as --story writes them, and tell them step by step.")
    var story = false

    @Flag(help: "Complain of what is forgiven, too, such as lines that end with LF alone.")
    var strict = false

    @Option(help: "Write each as it is written here, or header by header: canonical, json or none.")
    var print = Printing.none

    @OptionGroup var common: CommonOptions

    /// A stream of more is not read.
    private static let longestStream = 1 << 26

    func validate() throws {
        let chosen = [
            ("--stream", stream), ("--uri", uri), ("--sdp", sdp), ("--story", story), ("--push-params", pushParams),
            ("--cpim", cpim),
        ]
        .filter(\.1).map(\.0)
        guard chosen.count < 2 else {
            throw ValidationError("'\(chosen[0])' and '\(chosen[1])' exclude each other. Leave out one.")
        }
        if let other = chosen.first, strict || print == .json, other != "--stream" {
            throw ValidationError("'--strict' and '--print json' are about messages. Leave them out, or '\(other)'.")
        }
    }

    func run() throws {
        common.startLogging()
        var failureCount = 0
        if story { return try files.forEach(tell) }
        for file in files {
            for finding in try findings(in: file) {
                if finding.problem != nil { failureCount += 1 }
                common.show(finding.json(file, print), text: finding.text(file, print))
            }
        }
        if failureCount > 0 { throw ExitCode.failure }
    }

    /// Tells a story in the order in which it happened, its outcome at the end.
    private func tell(_ file: String) throws {
        let bytes = try InputContent.read(InputPath.path(of: file), limit: Self.longestStream).bytes
        let story = try Story(parsing: bytes)
        common.show(story.json, text: story.lines.map(\.printable).joined(separator: "\n"))
    }

    private func findings(in file: String) throws -> [SIPFinding] {
        if uri { return [SIPFinding(uri: file)] }
        if pushParams { return [SIPFinding(contact: file)] }
        let limit = stream ? Self.longestStream : MessageLimits.byteCount
        let bytes = try InputContent.read(InputPath.path(of: file), limit: limit).bytes
        guard bytes.count <= limit || !stream else {
            throw ToolFailure("\(InputPath.name(of: file)) has more than \(limit) bytes. Cut the stream.")
        }
        if sdp { return [SIPFinding(sdp: bytes)] }
        if cpim { return [SIPFinding(cpim: bytes)] }
        return stream
            ? SIPFinding.all(inStream: bytes, isStrict: strict) : [SIPFinding(datagram: bytes, isStrict: strict)]
    }
}
