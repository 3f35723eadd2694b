import ArgumentParser

/// What can be done with voice agents from the shell.
struct AgentToolCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent",
        abstract: "Talks to voice agents that listen and speak by a socket.",
        discussion: """
            Agents are servers: WebSocket with Twilio's format (ws://, wss://), or Asterisk's AudioSocket (audiosocket:HOST:PORT, \
            audiosocket:/PATH).

            EXAMPLES
              media-tool agent try --to ws://127.0.0.1:8765/ws
              media-tool agent try --to audiosocket:127.0.0.1:9092 --input speech.wav --output heard.wav
            """,
        subcommands: [AgentTryCommand.self, AgentServeCommand.self, AgentCallCommand.self]
    )
}
