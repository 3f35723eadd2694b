import ArgumentParser

/// The tool: one verb per command, each in a file of its own.
@main
struct MediaTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "media-tool",
        abstract: "Sound cards, tones, codecs, RTP calls and messages between processes, from the shell.",
        discussion: """
            Every command takes --json, which prints one JSON object on standard output (`core` and `group`: one on each line) and \
            nothing else there; logs, notices and progress go to standard error. Ctrl-C ends a command cleanly: files are valid, the report is \
            printed.

            Exit codes: 0 success, 64 wrong usage, 1 failure.

            EXAMPLES
              media-tool devices
              media-tool dtmf '159#'
              media-tool loopback --virtual --loss 5 --output heard.wav
              media-tool --generate-completion-script bash > media-tool.bash
            """,
        subcommands: [
            DevicesCommand.self, CodecsCommand.self, PluginsCommand.self,
            DTMFCommand.self, RingCommand.self, PlayCommand.self, RecordCommand.self,
            LoopbackCommand.self, SendCommand.self, ReceiveCommand.self,
            GraphDrawingCommand.self, DetectCommand.self,
            ReplayCommand.self, ReportCommand.self, DoctorCommand.self,
            GroupCommand.self, CoreCommand.self,
        ]
    )
}
