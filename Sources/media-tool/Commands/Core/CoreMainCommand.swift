import ArgumentParser
import CallCore
import DesktopNotifications
import LocalMessaging
import Logging
import MediaEngine
import SharedCore
import SharedPhone

/// Runs the application's core.
struct CoreMainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "main",
        abstract: "Runs the main core of a group: the application in the foreground.",
        discussion: """
            An executor that runs is asked to give way, and ended when it does not. What arrives is printed and put into \
            the group's store, where `core notify` finds it. Replies and marks as seen that people make on the desktop's \
            notifications are performed. Ctrl-C ends it in order.

            With --calls it is called, too: `provider serve` is its screen, in a shell of its own. Without, calls are answered \
            480. While `core calls` has a call on, it waits for the end of that, and prints meanwhile what a screen is told.

            EXAMPLES
              media-tool core main --group /tmp/group
              media-tool core main --group /tmp/group --calls --json
              media-tool core main --group /tmp/group --mailbox 127.0.0.1:5070 --seconds 10
            """
    )

    @OptionGroup var groupOption: GroupOption
    @OptionGroup var from: CoreServiceOptions

    @Flag(help: "Take calls, whose screen is `provider serve`.")
    var calls = false

    @OptionGroup var security: MediaSecurityOptions

    @OptionGroup var roles: BindingOptions

    @Option(help: ArgumentHelp("Ends after so many seconds instead of at Ctrl-C.", valueName: "n"))
    var seconds: Double?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        if let seconds, !(seconds > 0 && seconds <= 1e9) {
            throw ValidationError("--seconds takes a number above 0, not \(seconds).")
        }
        if !calls, let wrong = (roles.given + [("--srtp", security.srtp != .off)]).first(where: \.1)?.0 {
            throw ValidationError("'\(wrong)' is about the sound of calls. Give '--calls', or leave it out.")
        }
        guard !calls || from.mailbox == nil else {
            throw ValidationError("A mailbox has no calls. Leave out '--calls', or '--mailbox'.")
        }
    }

    func run() async throws {
        common.startLogging()
        try security.secrets.begin()
        Interruption.catchSignals()
        StandardOutput.watch()
        let begin = ContinuousClock.now
        let group = try groupOption.container()
        guard calls else {
            let phone = from.mailbox == nil ? try from.phone(of: group, refusesCalls: true) : nil
            return try await run(in: group, phone, since: begin)
        }
        try await CallEngine.session(try roles.engineConfiguration()) { engine in
            try await run(in: group, from.phone(of: group, engine: engine, security), since: begin)
        }
    }

    private func run(in group: GroupContainer, _ phone: SIPService?, since begin: ContinuousClock.Instant) async throws
    {
        let core = try MainCore(group: group, service: phone ?? from.service(of: group)) { [common] arrival in
            common.show(arrival.json, text: arrival.text)
        }
        try await from.check(core.store, group.path)
        let telling = phone.map { phone in
            Task { for await event in phone.events { event.tell(common) } }
        }
        defer { telling?.cancel() }
        let started = try await Interruption.orValue { [common] in
            try await core.start(duringCall: { await Self.attend(group, common) })
        }
        guard let epoch = started else { return await core.stop() }
        let waited = ContinuousClock.now - begin
        common.show(
            ["event": "running", "epoch": .integer(Int(epoch.rawValue)), "waitMs": .number(waited.milliseconds)],
            text: "running as epoch \(epoch) after \(waited.milliseconds) ms\n"
        )
        // What people do with notifications on the desktop, whoever showed them.
        let acting = Task { [group, from] in
            guard let desktop = await desktop(of: group) else { return }
            for await action in desktop.actions {
                do {
                    try from.check(action)
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

    /// Prints what a screen is told of the call that another process has.
    private static func attend(_ group: GroupContainer, _ common: CommonOptions) async {
        guard let screen = try? await ScreenClient.connect(to: group, waitingForCore: .seconds(5)) else { return }
        let shell = ScreenShell(screen, SIPTeller(isJSON: common.json, hasEvents: true), nil, isSilent: true)
        // That the core has gone is what this one waits for.
        for await event in screen.events where event != .interrupted { await shell.show(event) }
        await screen.close()
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
        case .refused(let action):
            [
                "event": "actionRefused", "id": .string(action.id), "callID": .string(action.callID),
                "reason": .string(action.reason),
            ]
        }
    }

    fileprivate var text: String {
        switch self {
        case .message(let message):
            "message \(message.callID.printable) from \(message.sender.printable): \(message.text.printable)\n"
        case .invitation(let invitation):
            "invitation to \(invitation.address.printable) from \(invitation.invitedBy.printable)\n"
        case .refused(let action):
            "action \(action.id.printable) on \(action.callID.printable) was refused: \(action.reason.printable)\n"
        }
    }
}
