import ArgumentParser

/// Scores the stack with messages that are hard to read.
struct SIPTortureCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "torture",
        abstract: "Scores how SIP messages that are hard to read, as those of RFC 4475, are answered here.",
        discussion: """
            The table has a line for each message, below one that names the columns, which tabs separate: the file in the \
            folder, the section of the RFC, and what is expected: accept, accept-first, a status code, or two of them such \
            as 400-or-lenient. Further columns are passed over. It fails when any answer does not fit.

            Without --stack the reader of messages is asked, which takes every method and type of body.

            EXAMPLES
              media-tool sip torture rfc4475 --expect rfc4475/expect.tsv
              media-tool sip torture rfc4475 --expect rfc4475/expect.tsv --stack --json
              media-tool sip torture rfc4475 --expect rfc4475/expect.tsv --mutations 1000 --seed 7
            """
    )

    @Argument(help: ArgumentHelp("The folder of the messages.", valueName: "dir"), completion: .directory)
    var folder: String

    @Option(help: ArgumentHelp("The table of what is expected.", valueName: "file"), completion: .file())
    var expect: String

    @Flag(help: "Let the messages through transactions and a user agent's rules.")
    var stack = false

    @Option(help: ArgumentHelp("Read each message so many times more, with one byte changed.", valueName: "n"))
    var mutations = 0

    @Option(help: ArgumentHelp("What the changes are drawn by.", valueName: "n"))
    var seed: UInt64 = 1

    @OptionGroup var common: CommonOptions

    /// The table, and each message, in bytes; a message that is longer is read, and refused.
    private static let limit = 1 << 20

    func validate() throws {
        try Quantity.check("--mutations", mutations, in: 0...1_000_000)
    }

    func run() throws {
        common.startLogging()
        let table = String(decoding: try TextFile.read(expect, limit: Self.limit), as: UTF8.self)
        let expectations = try TortureScore.expectations(table)
        guard !expectations.isEmpty else { throw ToolFailure("\(expect) names no message. Write a line for each.") }
        var score = TortureScore(stack ? .stack : .parser, seed: seed)
        for expectation in expectations {
            let bytes = try TextFile.read("\(folder)/\(expectation.file)", limit: Self.limit)
            score.add(expectation, bytes, mutations: mutations)
        }
        common.show(score.json, text: score.text)
        if !score.isMet { throw ExitCode.failure }
    }
}
