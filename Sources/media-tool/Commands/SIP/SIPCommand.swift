import ArgumentParser

/// What can be done with SIP from the shell.
struct SIPCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sip",
        abstract:
            "Calls and is called by SIP, registers, sends texts, serves a domain; reads messages, finds where they go.",
        discussion: """
            Messages go by UDP, TCP and TLS; sound is encrypted where --srtp says so. Without --local it listens at the address \
            that leads to the other side, or at 127.0.0.1, never at all addresses.

            With --json, what is found is one JSON object on a line.

            EXAMPLES
              media-tool sip answer --local 127.0.0.1:5070 --echo
              media-tool sip call sip:127.0.0.1:5070 --input speech.wav --output heard.wav
              media-tool sip server --domain example.test
              media-tool sip parse invite.sip
              media-tool sip parse --uri 'sip:alice@example.org;transport=tcp'
              media-tool sip resolve sip:example.org
            """,
        subcommands: [
            SIPCallCommand.self, SIPAnswerCommand.self, SIPRegisterCommand.self, SIPMessageCommand.self,
            SIPOptionsCommand.self, SIPServerCommand.self, SIPResolveCommand.self, SIPParseCommand.self,
            SIPTortureCommand.self, SIPLoadCommand.self, SIPAccountCommand.self, SIPPushCommand.self,
        ]
    )
}
