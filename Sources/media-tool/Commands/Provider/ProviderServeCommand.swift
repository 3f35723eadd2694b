internal import CallBasics
import ArgumentParser
import CallCore
import DesktopNotifications
import LocalMessaging
import MediaEngine
import SharedPhone

/// A call screen, by lines on standard input.
struct ProviderServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "A call screen: shows what happens, and does what lines on standard input say.",
        discussion: """
            Lines are words, or JSON: {"action": "answer", "uuid": "...", "id": 7}, end, setHeld with "held", setMuted with \
            "muted", playDTMF with "digits", setGroup with "with", start with "to"; {"transaction": [...]} for several, all or \
            none; {"audio": "activate"} or "deactivate"; {"reset": true}. "uuid" may be left out where one call alone can be \
            meant. Words: \(ScreenOrder.help).

            With --desktop each call is a notification with buttons, too, where the session's bus has a service that shows them.

            The sound is activated while a call of this side or an answered one is on, unless --silent. It waits for the core, \
            and for the next one when that ends.

            EXAMPLES
              media-tool provider serve --group /tmp/group
              media-tool provider serve --group /tmp/group --accept-after 1 --json
            """
    )

    @OptionGroup var place: GroupOption

    @Option(help: ArgumentHelp("Answers each call that comes after so long.", valueName: "s"))
    var acceptAfter: Double?

    @Flag(help: "Asks for each line by a prompt, for people at a terminal.")
    var interactive = false

    @Flag(help: "Shows calls on the desktop, too, with buttons to answer, decline and hang up.")
    var desktop = false

    @Flag(help: "Leaves the sound to others, or to lines.")
    var silent = false

    @Option(help: ArgumentHelp("How long to wait for a core that takes calls. Default: 30.", valueName: "s"))
    var wait = 30.0

    @Option(help: ArgumentHelp("Ends after so many seconds instead of at Ctrl-C.", valueName: "n"))
    var seconds: Double?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--accept-after", acceptAfter, in: 0...3600, "s")
        guard !interactive || !common.json && acceptAfter == nil else {
            throw ValidationError("'--interactive' is for people. Leave it out, or '--json' and '--accept-after'.")
        }
        try Quantity.check("--wait", wait, in: Quantity.seconds, "s")
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        StandardOutput.watch()
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        let group = try place.container()
        let buttons: DesktopCalls?
        do {
            let variables = ProcessEnvironment.variables
            buttons = desktop ? try await .connect(applicationName: "media-tool", environment: variables) : nil
        } catch {
            throw ToolFailure("\(error)")
        }
        let found = try await Interruption.orValue {
            try await ProviderCommand.connect(group, waiting: .seconds(fraction: wait), isScreen: true)
        }
        guard let screen = found else { return }
        teller.tell("listening", [("group", .string(group.path))], text: "The screen is on. Say: \(ScreenOrder.help)")
        let shell = ScreenShell(screen, teller, buttons, acceptAfter: acceptAfter, isSilent: silent)
        let pressing = Task {
            guard let buttons else { return }
            for await press in buttons.presses { await shell.obey(press) }
        }
        defer { pressing.cancel() }
        let showing = Task { for await event in screen.events { await shell.show(event) } }
        _ = try await Interruption.orValue { [seconds, interactive] in
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    let input = InputLines()
                    if interactive { StandardError.write("> ") }
                    for await line in input.lines {
                        guard await shell.obey(line) else { return }
                        input.take()
                        if interactive { StandardError.write("> ") }
                    }
                    // A screen without a keyboard stays.
                    await Interruption.wait()
                }
                group.addTask { await Interruption.wait(for: seconds.map { .seconds(fraction: $0) }) }
                await group.next()
                group.cancelAll()
            }
        }
        await screen.close()
        await showing.value
        await shell.close()
        teller.tell("closed", text: "The screen is off.")
    }
}

/// What a screen shows and wants.
actor ScreenShell {
    private let screen: ScreenClient
    private let teller: SIPTeller
    private let buttons: DesktopCalls?
    private let acceptAfter: Double?
    private let isSilent: Bool
    private var calls: [ShownCall] = []
    /// What the desktop shows, and whether as a call that is on.
    private var onDesktop: [CallUUID: Bool] = [:]

    init(
        _ screen: ScreenClient,
        _ teller: SIPTeller,
        _ buttons: DesktopCalls?,
        acceptAfter: Double? = nil,
        isSilent: Bool
    ) {
        (self.screen, self.teller, self.buttons) = (screen, teller, buttons)
        (self.acceptAfter, self.isSilent) = (acceptAfter, isSilent)
    }

    // MARK: What happens

    func show(_ event: ScreenClient.Event) async {
        switch event {
        case .snapshot(let shown, let isAudioActive):
            calls = shown
            teller.tell(
                "snapshot",
                [("calls", .array(shown.map(\.json))), ("audioActive", .bool(isAudioActive))],
                text: shown.isEmpty ? "No call is on." : shown.map(\.text).joined()
            )
            for call in shown where !call.isOutgoing && !call.isConnected { accept(call.call) }
        case .incoming(let uuid, let update):
            tell("incoming", uuid, members(of: update), "\(update.remote.printable) calls. Say answer, or end.")
            accept(uuid)
        case .outgoing(let uuid, let update, let stage):
            tell(
                "outgoing",
                uuid,
                [("to", .string(update.remote)), ("stage", .string(stage.rawValue))],
                "\(update.remote.printable): \(stage.rawValue)."
            )
        case .updated(let uuid, let update):
            tell("updated", uuid, members(of: update), "\(update.remote.printable)\(update.isHeld ? ", held" : "").")
        case .ended(let uuid, let reason):
            tell("ended", uuid, [("reason", .string(reason.rawValue))], "The call has ended: \(reason.rawValue).")
        case .performed(let action, let outcome):
            tell(
                "acted",
                action.call,
                [
                    ("action", .string(action.kind.word)), ("result", .string(outcome.word)),
                    ("fault", JSONValue(outcome.fault)),
                ],
                "\(action.kind.word): \(outcome.fault ?? outcome.word)."
            )
        case .audio(let isActive):
            teller.tell("audio", [("active", .bool(isActive))], text: "The sound is \(isActive ? "on" : "off").")
        case .interrupted: teller.tell("interrupted", text: "The core has gone. Waiting for the next.")
        }
        if event != .interrupted { await follow() }
    }

    /// Brings what is on up to date, and the sound with it.
    private func follow() async {
        guard let (now, isAudioActive) = try? await screen.calls() else { return }
        calls = now
        await showOnDesktop()
        let isWanted = now.contains { $0.isConnected || $0.isOutgoing }
        guard !isSilent, isWanted != isAudioActive else { return }
        try? await screen.setAudioActive(isWanted)
    }

    /// Brings the desktop up to date; what it does not show is on the screen all the same.
    private func showOnDesktop() async {
        guard let buttons else { return }
        for uuid in onDesktop.keys where !calls.contains(where: { $0.call == uuid }) {
            onDesktop[uuid] = nil
            try? await buttons.withdraw("\(uuid)")
        }
        for call in calls where onDesktop[call.call] != (call.isOutgoing || call.isConnected) {
            let isOn = call.isOutgoing || call.isConnected
            onDesktop[call.call] = isOn
            let caller = call.update.displayName ?? call.update.remote
            try? await buttons.show("\(call.call)", caller: caller, isOn: isOn)
        }
    }

    /// Takes what is shown off the desktop.
    func close() async {
        calls = []
        await showOnDesktop()
    }

    /// A button was pressed on the desktop.
    func obey(_ press: DesktopCalls.Press) async {
        guard let call = CallUUID(press.call) else { return }
        _ = try? await screen.perform(press.action == .answer ? .answer : .end, on: call)
    }

    private func accept(_ uuid: CallUUID) {
        guard let acceptAfter else { return }
        Task {
            try? await Task.sleep(for: .seconds(acceptAfter))
            _ = try? await screen.perform(.answer, on: uuid)
        }
    }

    private func members(of update: CallUpdate) -> [(String, JSONValue)] {
        [
            ("from", .string(update.remote)), ("displayName", JSONValue(update.displayName)),
            ("hasVideo", .bool(update.hasVideo)), ("placeholder", .bool(update.isPlaceholder)),
            ("held", .bool(update.isHeld)), ("grouped", .bool(update.isGrouped)),
        ]
    }

    private func tell(_ event: String, _ uuid: CallUUID, _ members: [(String, JSONValue)], _ text: String) {
        teller.tell(event, [("uuid", .string("\(uuid)"))] + members, text: "[\(uuid)] \(text)")
    }

    // MARK: What lines say

    /// Does what a line says; false when it ends the screen.
    func obey(_ line: String) async -> Bool {
        let order: ScreenOrder
        do throws(PhoneOrderFault) {
            guard let parsed = try ScreenOrder(parsing: line) else { return true }
            order = parsed
        } catch {
            refuse(error, id: error.id)
            return true
        }
        let begin = ContinuousClock.now
        do {
            switch order.kind {
            case .quit: return false
            case .reset: try await screen.resetCalls()
            case .audio(let isActive): try await screen.setAudioActive(isActive)
            case .steps(let steps):
                calls = try await screen.calls().calls
                let actions = try calls.actions(steps)
                let outcomes = try await screen.perform(actions)
                for outcome in outcomes { report(outcome, id: order.id, since: begin) }
                return true
            }
            report(.fulfilled, id: order.id, since: begin)
        } catch let fault as PhoneOrderFault {
            refuse(fault, id: order.id)
        } catch {
            refuse(PhoneOrderFault("\(error)"), id: order.id)
        }
        return true
    }

    private func report(_ outcome: ActionOutcome, id: Int?, since begin: ContinuousClock.Instant) {
        guard teller.isJSON else { return }
        teller.tell(
            "performed",
            [
                ("id", id.map { .integer($0) } ?? .null), ("result", .string(outcome.word)),
                ("fault", JSONValue(outcome.fault)), ("ms", .number((ContinuousClock.now - begin).milliseconds)),
            ],
            text: ""
        )
    }

    private func refuse(_ fault: PhoneOrderFault, id: Int?) {
        teller.tell(
            "refused",
            [("id", id.map { .integer($0) } ?? .null), ("reason", .string(fault.message))],
            text: fault.message
        )
    }
}
