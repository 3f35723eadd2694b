import ArgumentParser
import CallCore
import LocalMessaging
import MediaEngine
import SharedCore
import SharedPhone

/// Runs a core for the calls that a push tells of.
struct CoreCallsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "calls",
        abstract: "Takes the calls that a push tells of where no main runs; `provider` is the screen.",
        discussion: """
            It is what a push of a call wakes in place of the application: it has the accounts registered, shows calls to \
            `provider serve`, and does what that says. It ends with the last call, or when none comes in 15 s. A main that starts \
            takes its place between calls, and during one waits for the end of that. An executor (`core notify`) gives way \
            to it. Beside a main it ends at once: the push is for that.

            EXAMPLES
              media-tool core calls --group /tmp/group
              media-tool sip push --group /tmp/group --payload push.json --launch 'media-tool core calls --group /tmp/group'
              media-tool core calls --group /tmp/group --json
            """
    )

    @OptionGroup var groupOption: GroupOption
    @OptionGroup var from: CoreServiceOptions
    @OptionGroup var security: MediaSecurityOptions

    @OptionGroup var roles: BindingOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard from.mailbox == nil else { throw ValidationError("A mailbox has no calls. Leave out '--mailbox'.") }
    }

    func run() async throws {
        common.startLogging()
        try security.secrets.begin()
        Interruption.catchSignals()
        StandardOutput.watch()
        let begin = ContinuousClock.now
        let group = try groupOption.container()
        try await CallEngine.session(try roles.engineConfiguration()) { engine in
            let phone = try await from.phone(of: group, engine: engine, security, mayAsk: false)
            let core = try CallExecutorCore(group: group, service: phone)
            try await from.check(core.store, group.path)
            let telling = Task { [common] in for await event in phone.events { event.tell(common) } }
            defer { telling.cancel() }
            let ended: Void? = try await Interruption.orValue { [common] in
                let epoch = try await core.start()
                let waited = (ContinuousClock.now - begin).milliseconds
                common.show(
                    ["event": "running", "epoch": .integer(Int(epoch.rawValue)), "waitMs": .number(waited)],
                    text: "running as epoch \(epoch) after \(waited) ms\n"
                )
                try await core.ended()
            }
            if ended == nil { await core.stop() }
            common.show(["event": "stopped"], text: "stopped\n")
        }
    }
}
