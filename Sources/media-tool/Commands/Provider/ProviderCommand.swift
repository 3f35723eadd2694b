import ArgumentParser
import CallCore
import LocalMessaging
import SharedPhone

/// The call screen of a group's phone, in a process of its own.
struct ProviderCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "provider",
        abstract:
            "The call screen of `core main --calls`, `core calls` or `sip answer --provider`: shows calls, acts on them.",
        discussion: """
            A screen is told of calls, and says what becomes of them, as CallKit does. It may end and come back: calls and \
            their sound go on, and the next is told what is on first. Several may be there at once.

            EXAMPLES
              media-tool provider serve --group /tmp/group
              media-tool provider act --group /tmp/group answer
              media-tool provider status --group /tmp/group --json
            """,
        subcommands: [ProviderServeCommand.self, ProviderActCommand.self, ProviderStatusCommand.self]
    )

    /// Connects to the core of a group.
    ///
    /// - Throws: `ToolFailure` when none takes calls
    static func connect(_ group: GroupContainer, waiting limit: Duration? = nil, isScreen: Bool = false) async throws
        -> ScreenClient
    {
        do {
            return try await ScreenClient.connect(to: group, waitingForCore: limit, isScreen: isScreen)
        } catch let error as Invalidation {
            guard case .noServer = error else { throw error }
            throw ToolFailure(
                "Nothing takes calls in \(group.path). Start what does: media-tool core main --group \(group.path) --calls, or "
                    + "media-tool sip answer --provider \(group.path)"
            )
        }
    }
}

/// Does one thing.
struct ProviderActCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "act",
        abstract: "Does one thing with a call, as a screen does.",
        discussion: """
            What can be done: \(ScreenOrder.help). The exit code is 1 when it fails.

            EXAMPLES
              media-tool provider act --group /tmp/group answer
              media-tool provider act --group /tmp/group call sip:bob@example.org --json
              media-tool provider act --group /tmp/group keys 123#
            """
    )

    @OptionGroup var place: GroupOption

    @Argument(help: "What to do, in words.")
    var words: [String]

    @OptionGroup var common: CommonOptions

    func validate() throws { _ = try order() }

    private func order() throws -> ScreenOrder {
        do throws(PhoneOrderFault) {
            let order = try ScreenOrder(words: words)
            guard order.kind != .quit else { throw PhoneOrderFault("'quit' ends a screen that is served.") }
            return order
        } catch {
            throw ValidationError(error.message)
        }
    }

    func run() async throws {
        common.startLogging()
        let order = try order()
        let screen = try await ProviderCommand.connect(place.container(isCreated: false))
        let begin = ContinuousClock.now
        var outcomes: [(String, CallUUID?, ActionOutcome)] = []
        switch order.kind {
        case .steps(let steps):
            let actions: [(call: CallUUID, kind: ProviderAction.Kind)]
            let shown = try await screen.calls().calls
            do throws(PhoneOrderFault) { actions = try shown.actions(steps) } catch { throw ToolFailure(error.message) }
            for (action, outcome) in zip(actions, try await screen.perform(actions)) {
                outcomes.append((action.kind.word, action.call, outcome))
            }
        case .audio(let isActive):
            try await screen.setAudioActive(isActive)
            outcomes = [(isActive ? "activate" : "deactivate", nil, .fulfilled)]
        case .reset:
            try await screen.resetCalls()
            outcomes = [("reset", nil, .fulfilled)]
        case .quit: break
        }
        await screen.close()
        let waited = (ContinuousClock.now - begin).milliseconds
        for (word, call, outcome) in outcomes {
            common.show(
                [
                    "action": .string(word), "uuid": call.map { .string("\($0)") } ?? .null,
                    "result": .string(outcome.word), "fault": JSONValue(outcome.fault), "ms": .number(waited),
                ],
                text: "\(word): \(outcome.fault ?? outcome.word)\n"
            )
        }
        if let failed = outcomes.first(where: { $0.2 != .fulfilled }) {
            var failure = ToolFailure("\(failed.0) failed: \(failed.2.fault ?? "").")
            failure.isReported = true
            throw failure
        }
    }
}

/// Says what is on.
struct ProviderStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Says which calls are on.",
        discussion: """
            EXAMPLES
              media-tool provider status --group /tmp/group --json
            """
    )

    @OptionGroup var place: GroupOption
    @OptionGroup var common: CommonOptions

    func run() async throws {
        common.startLogging()
        let screen = try await ProviderCommand.connect(place.container(isCreated: false))
        let (calls, isAudioActive) = try await screen.calls()
        await screen.close()
        common.show(
            ["calls": .array(calls.map(\.json)), "audioActive": .bool(isAudioActive)],
            text: calls.isEmpty ? "No call is on.\n" : calls.map(\.text).joined()
        )
    }
}
