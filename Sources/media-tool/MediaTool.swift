import ArgumentParser
internal import Glibc

/// The tool: one verb per command, each in a file of its own.
@main
struct MediaTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "media-tool",
        abstract: "Sound cards, tones, codecs, RTP calls and messages between processes, from the shell.",
        discussion: """
            Every command takes --json, which prints one JSON object on standard output (`agent`, `core`, `group`, `phone`, \
            `provider`, `sip` and `webrtc`: one on each line) and nothing else there; logs, notices and progress go to standard \
            error. Ctrl-C ends a command cleanly: files are valid, the report is printed.

            Exit codes: 0 success, 64 wrong usage, 1 failure.

            EXAMPLES
              media-tool devices
              media-tool dtmf '159#'
              media-tool loopback --virtual --loss 5 --output heard.wav
              media-tool --generate-completion-script bash > media-tool.bash
            """,
        version: version,
        subcommands: [
            DevicesCommand.self, CodecsCommand.self, PluginsCommand.self,
            DTMFCommand.self, RingCommand.self, PlayCommand.self, RecordCommand.self,
            LoopbackCommand.self, SendCommand.self, ReceiveCommand.self,
            GraphDrawingCommand.self, DetectCommand.self,
            ReplayCommand.self, ReportCommand.self, DoctorCommand.self,
            GroupCommand.self, CoreCommand.self, ProviderCommand.self, SIPCommand.self, PhoneCommand.self,
            WebRTCCommand.self, AgentToolCommand.self,
        ]
    )

    /// The version, the commit that was built, and the traits it was built with.
    private static var version: String {
        var traits: [String] = []
        #if GSM
        traits.append("GSM")
        #endif
        #if G729
        traits.append("G729")
        #endif
        #if WebRTC
        traits.append("WebRTC")
        #endif
        #if FaultPoints
        traits.append("FaultPoints")
        #endif
        let list = traits.isEmpty ? "none" : traits.joined(separator: ", ")
        return "unreleased, commit \(builtCommit), traits: \(list)"
    }

    /// Refuses `help` about a command that there is none of.
    private static func checkHelp(_ arguments: ArraySlice<String>) throws {
        guard arguments.first == "help" else { return }
        var known = configuration
        for name in arguments.dropFirst() where !name.hasPrefix("-") && name != "help" {
            guard let next = known.subcommands.first(where: { $0.configuration.commandName == name }) else {
                let all = known.subcommands.compactMap { $0.configuration.commandName }.joined(separator: ", ")
                let remedy = all.isEmpty ? "'\(known.commandName ?? "")' has no commands." : "Name one of \(all)."
                throw ValidationError("There is no command '\(name)' to help with. \(remedy)")
            }
            known = next.configuration
        }
    }

    /// Prints what failed as JSON, too, where scripts read it.
    private static func tellScripts(_ error: any Error, _ code: ExitCode) {
        let arguments = CommandLine.arguments.dropFirst()
        let commands =
            [
                SIPCommand.self, PhoneCommand.self, ProviderCommand.self, CoreCommand.self, AgentToolCommand.self,
            ] as [any ParsableCommand.Type]
        let names = commands.map { $0.configuration.commandName }
        let failure = error as? ToolFailure ?? ToolFailure("\(error)")
        // Who ends by a code alone has said why.
        guard names.contains(arguments.first), arguments.contains("--json"), code == .failure,
            !failure.isReported, !(error is ExitCode)
        else { return }
        StandardOutput.write(failure.json.text + "\n")
    }

    static func main() async {
        // A reader that goes is an error like another.
        signal(SIGPIPE, SIG_IGN)
        var code = ExitCode.success
        do {
            try checkHelp(CommandLine.arguments.dropFirst())
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            let message: String
            // ArgumentParser makes the usage of the command before it prints any error, which a failure of its work does not need.
            (code, message) =
                (error as? ToolFailure).map { (.failure, "Error: \($0)") } ?? (
                    exitCode(for: error), fullMessage(for: error)
                )
            tellScripts(error, code)
            if !message.isEmpty {
                // Help and version are no errors.
                let write = code == .success ? StandardOutput.write : StandardError.write
                write(message + "\n")
            }
        }
        guard let failure = StandardOutput.failure else { Glibc.exit(code.rawValue) }
        // Who stopped reading knows that; who lacks what was written is told.
        if failure != EPIPE {
            let reason = String(cString: strerror(failure))
            StandardError.write(
                "Error: Standard output could not be written: \(reason). Free space, or write elsewhere.\n"
            )
        }
        Glibc.exit(ExitCode.failure.rawValue)
    }
}
