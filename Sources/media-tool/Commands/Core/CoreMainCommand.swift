import ArgumentParser
import DesktopNotifications
import Logging
import Mailbox
import MediaEngine
import SharedCore

/// Runs the application's core.
struct CoreMainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "main",
        abstract: "Runs the main core of a group: the application in the foreground.",
        discussion: """
            An executor that runs is asked to give way, and ended when it does not. What arrives is printed and put into \
            the group's store, where `core notify` finds it. Replies and marks as seen that people make on the desktop's \
            notifications are performed. Ctrl-C ends it in order.

            EXAMPLES
              media-tool core main --group /tmp/group --mailbox 127.0.0.1:5070
              media-tool core main --group /tmp/group --mailbox 127.0.0.1:5070 --seconds 10 --json
            """
    )

    @OptionGroup var groupOption: GroupOption
    @OptionGroup var mailboxOption: MailboxOption

    @Option(help: ArgumentHelp("Ends after so many seconds instead of at Ctrl-C.", valueName: "n"))
    var seconds: Double?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        if let seconds, !(seconds > 0 && seconds <= 1e9) {
            throw ValidationError("--seconds takes a number above 0, not \(seconds).")
        }
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let begin = ContinuousClock.now
        let group = try groupOption.container()
        let core = try MainCore(group: group, service: mailboxOption.service()) { [common] arrival in
            common.show(arrival.json, text: arrival.text)
        }
        let epoch = try await core.start()
        let waited = ContinuousClock.now - begin
        common.show(
            ["event": "running", "epoch": .integer(Int(epoch.rawValue)), "waitMs": .number(waited.milliseconds)],
            text: "running as epoch \(epoch) after \(waited.milliseconds) ms\n"
        )
        // What people do with notifications on the desktop, whoever showed them.
        let acting = Task { [group] in
            guard let desktop = await desktop(of: group) else { return }
            for await action in desktop.actions {
                do {
                    try MailboxService.check(action)
                    try await core.perform(action)
                } catch {
                    Logger(label: "desktop").warning("An action on \(action.callID) is not performed: \(error)")
                }
            }
        }
        defer { acting.cancel() }
        let failure = await withTaskGroup(of: (any Error)?.self) { group in
            group.addTask { await core.failed() }
            group.addTask { [seconds] in
                await Interruption.wait(for: seconds.map { .seconds($0) })
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        await core.stop()
        if let failure { throw failure }
        let counts = try await core.store.counts()
        common.show(
            ["event": "stopped", "pending": .integer(counts.pending), "acknowledged": .integer(counts.acknowledged)],
            text: "stopped, pending \(counts.pending), acknowledged \(counts.acknowledged)\n"
        )
    }
}

extension CoreArrival {
    fileprivate var json: JSONValue {
        switch self {
        case .message(let message):
            [
                "event": "message", "callID": .string(message.callID), "from": .string(message.sender),
                "room": message.room.map(JSONValue.string) ?? .null, "text": .string(message.text),
            ]
        case .invitation(let invitation):
            [
                "event": "invitation", "room": .string(invitation.address), "from": .string(invitation.invitedBy),
                "subject": invitation.subject.map(JSONValue.string) ?? .null,
            ]
        }
    }

    fileprivate var text: String {
        switch self {
        case .message(let message):
            "message \(message.callID.printable) from \(message.sender.printable): \(message.text.printable)\n"
        case .invitation(let invitation):
            "invitation to \(invitation.address.printable) from \(invitation.invitedBy.printable)\n"
        }
    }
}
