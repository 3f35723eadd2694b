import ArgumentParser
import DesktopNotifications
import LocalMessaging
import MediaEngine
import SharedCore

/// Handles one push as an extension does.
struct CoreNotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify",
        abstract: "Handles one push for a message or a chat room: finds it, shows it, acknowledges a message.",
        discussion: """
            The message comes from a core that this process runs (source executor), from the main that runs (main), or \
            from the group's store (store). When it does not come before the deadline a general text is shown (fallback) \
            and the message stays for who asks next. "repeated" says that a process which died may have shown it before.

            A message is shown on the desktop, too, when there is a session bus with a service of notifications. With --room \
            it is the invitation to that chat room that is found, and printed.

            EXAMPLES
              media-tool core notify --group /tmp/group --call-id 1234@example.org
              media-tool core notify --group /tmp/group --room sip:tea@conference.example.org
              media-tool core notify --group /tmp/group --mailbox 127.0.0.1:5070 --call-id 1234@example.org --json
            """
    )

    @OptionGroup var groupOption: GroupOption
    @OptionGroup var from: CoreServiceOptions

    @Option(parsing: .unconditional, help: ArgumentHelp("The call-id that the push holds.", valueName: "id"))
    var callID: String?

    @Option(
        help: ArgumentHelp("The address of a chat room that the push holds, in place of a call-id.", valueName: "uri")
    )
    var room: String?

    @Option(help: ArgumentHelp("After so many seconds the general text is shown.", valueName: "s"))
    var deadline = 30.0

    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard deadline > 0, deadline <= 1e6 else {
            throw ValidationError("--deadline takes a number of seconds above 0, not \(deadline).")
        }
        guard (callID == nil) != (room == nil) else {
            throw ValidationError("A push is about a message or a chat room. Give '--call-id' or '--room'.")
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
        let told: Void? = try await Interruption.orValue {
            if let room { try await tell(room: room, core, begin) }
            if let callID { try await tell(callID, core, group, begin) }
        }
        _ = try await Interruption.orValue { await core.stop() }
        guard told != nil else {
            throw ToolFailure("Interrupted before anything was shown. The message stays for who asks next.")
        }
    }

    /// Shows the message that the push named.
    private func tell(
        _ callID: String,
        _ core: ExecutorCore,
        _ group: GroupContainer,
        _ begin: ContinuousClock.Instant
    ) async throws {
        let variables = ProcessEnvironment.variables
        let texts = NotificationTexts.localized(environment: variables)
        let outcome = try await core.notify(callID: callID, texts: texts) { shown, source in
            show(
                callID,
                shown.sender,
                shown.text,
                source,
                isRepeated: shown.isRepeated,
                (ContinuousClock.now - begin).milliseconds
            )
            try? await desktop(of: group)?.present(shown)
        }
        if case .shownElsewhere = outcome {
            show(callID, nil, nil, .store, isRepeated: false, (ContinuousClock.now - begin).milliseconds)
        }
    }

    /// Shows the invitation to the chat room that the push named, or that it has not come in time.
    private func tell(room: String, _ core: ExecutorCore, _ begin: ContinuousClock.Instant) async throws {
        var (invitation, source): (RoomInvitation?, MessageSource) = (nil, .fallback)
        if case .room(let found, let way) = try await core.newChatRoom(address: room) {
            (invitation, source) = (found.invitation, way)
        }
        let waited = (ContinuousClock.now - begin).milliseconds
        common.show(
            [
                "room": .string(room), "from": JSONValue(invitation?.invitedBy),
                "subject": JSONValue(invitation?.subject), "source": .string(source.rawValue),
                "waitMs": .number(waited),
            ],
            text: (invitation == nil ? "no invitation yet to " : "invitation to ") + room.printable
                + (invitation.map { " from \($0.invitedBy.printable)" } ?? "") + " (\(source.rawValue), \(waited) ms)\n"
        )
    }

    private func show(
        _ callID: String,
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
