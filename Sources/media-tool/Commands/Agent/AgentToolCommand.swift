import ArgumentParser

/// What can be done with voice agents from the shell.
struct AgentToolCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent",
        abstract: "Talks to voice agents that listen and speak by a socket.",
        discussion: """
            Agents are servers: WebSocket (ws://, wss://) with the format of Twilio or the one of --format, or Asterisk's AudioSocket \
            (audiosocket:HOST:PORT, audiosocket:/PATH). Those of Asterisk's WebSocket channel may also dial in (--agents-at).

            EXAMPLES
              media-tool agent try --to ws://127.0.0.1:8765/ws
              media-tool agent serve --sip 127.0.0.1:5060 --to ws://127.0.0.1:8765/ws
              media-tool agent call sip:127.0.0.1:5070 --to audiosocket:127.0.0.1:9092
            """,
        subcommands: [AgentTryCommand.self, AgentServeCommand.self, AgentCallCommand.self]
    )
}
