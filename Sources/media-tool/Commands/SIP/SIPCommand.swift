import ArgumentParser

/// What can be done with SIP from the shell.
struct SIPCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sip",
        abstract: "Reads SIP messages and URIs, says what is wrong with them, and finds where requests go.",
        discussion: """
            Calls and registrations are not there yet.

            With --json, what is found is one JSON object on a line.

            EXAMPLES
              media-tool sip parse invite.sip
              media-tool sip parse --uri 'sip:alice@example.org;transport=tcp'
              media-tool sip resolve sip:example.org
            """,
        subcommands: [SIPParseCommand.self, SIPTortureCommand.self, SIPResolveCommand.self]
    )
}
