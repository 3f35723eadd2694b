import ArgumentParser
import DesktopNotifications
import LocalMessaging
import MediaEngine
import SharedCore

/// Handles one push as an extension does.
struct CoreNotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify",
        abstract: "Handles one push for a message: finds it, shows it, acknowledges it.",
        discussion: """
            The message comes from a core that this process runs (source executor), from the main that runs (main), or \
            from the group's store (store). When it does not come before the deadline a general text is shown (fallback) \
            and the message stays for who asks next. "repeated" says that a process which died may have shown it before.

            It is shown on the desktop, too, when there is a session bus with a service of notifications.

            EXAMPLES
              media-tool core notify --group /tmp/group --call-id 1234@example.org
              media-tool core notify --group /tmp/group --mailbox 127.0.0.1:5070 --call-id 1234@example.org
              media-tool core notify --group /tmp/group --mailbox 127.0.0.1:5070 --call-id 1234@example.org --json
            """
    )

    @OptionGroup var groupOption: GroupOption
    @OptionGroup var from: CoreServiceOptions

    @Option(help: ArgumentHelp("The call-id that the push holds.", valueName: "id"))
    var callID: String

    @Option(help: ArgumentHelp("After so many seconds the general text is shown.", valueName: "s"))
    var deadline = 30.0

    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard deadline > 0, deadline <= 1e6 else {
            throw ValidationError("--deadline takes a number of seconds above 0, not \(deadline).")
        }
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let begin = ContinuousClock.now
        var configuration = CoreConfiguration()
        configuration.budget = .seconds(deadline)
        let group = try groupOption.container()
        let core = try ExecutorCore(group: group, service: from.service(of: group), configuration: configuration)
        try await from.check(core.store, group.path)
        let variables = ProcessEnvironment.variables
        let outcome = try await Interruption.orValue {
            try await core.notify(callID: callID, texts: .localized(environment: variables)) { shown, source in
                show(
                    shown.sender,
                    shown.text,
                    source,
                    isRepeated: shown.isRepeated,
                    (ContinuousClock.now - begin).milliseconds
                )
                try? await desktop(of: group)?.present(shown)
            }
        }
        if case .shownElsewhere = outcome {
            show(nil, nil, .store, isRepeated: false, (ContinuousClock.now - begin).milliseconds)
        }
        _ = try await Interruption.orValue { await core.stop() }
        guard outcome != nil else {
            throw ToolFailure("Interrupted before anything was shown. The message stays for who asks next.")
        }
    }

    private func show(
        _ sender: String?,
        _ text: String?,
        _ source: MessageSource,
        isRepeated: Bool,
        _ waited: Double
    ) {
        common.show(
            [
                "callID": .string(callID),
                "from": sender.map(JSONValue.string) ?? .null,
                "text": text.map(JSONValue.string) ?? .null,
                "source": .string(source.rawValue),
                "repeated": .bool(isRepeated),
                "waitMs": .number(waited),
            ],
            text: "\(callID.printable): \(sender.map { "\($0.printable): " } ?? "")"
                + "\(text?.printable ?? "shown by another process") "
                + "(\(source.rawValue)\(isRepeated ? ", repeated" : ""), \(waited) ms)\n"
        )
    }
}
