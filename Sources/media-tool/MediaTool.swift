import ArgumentParser
internal import Glibc

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

    static func main() async {
        // A reader that goes is an error like another.
        signal(SIGPIPE, SIG_IGN)
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            exit(withError: error)
        }
        guard let failure = StandardOutput.failure else { return }
        // Who stopped reading knows that; who lacks what was written is told.
        if failure != EPIPE {
            let reason = String(cString: strerror(failure))
            StandardError.write(
                "Error: Standard output could not be written: \(reason). Free space, or write elsewhere.\n"
            )
        }
        exit(withError: ExitCode.failure)
    }
}
