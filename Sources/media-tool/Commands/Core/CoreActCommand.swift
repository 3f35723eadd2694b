import ArgumentParser
import LocalMessaging
import MediaEngine
import SharedCore

/// Performs what a person did with a notification, as an extension does.
struct CoreActCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "act",
        abstract: "Performs an action on a message: a reply, or that it was seen.",
        discussion: """
            The main performs it when one runs, else this process does. What is not performed before the deadline stays \
            queued for the next core, and the exit code is 1. A refusal of the other side is final, but for 408 and 503; what \
            cannot be performed for three days ends, too.

            EXAMPLES
              media-tool core act --group /tmp/group --call-id 1234@example.org --reply 'On my way'
              media-tool core act --group /tmp/group --mailbox 127.0.0.1:5070 --call-id 1234@example.org --reply 'On my way'
              media-tool core act --group /tmp/group --mailbox 127.0.0.1:5070 --call-id 1234@example.org --seen
            """
    )

    @OptionGroup var groupOption: GroupOption
    @OptionGroup var from: CoreServiceOptions

    @Option(parsing: .unconditional, help: ArgumentHelp("The call-id of the message.", valueName: "id"))
    var callID: String

    @Option(parsing: .unconditional, help: ArgumentHelp("Answers with this text.", valueName: "text"))
    var reply: String?

    @Flag(help: "Tells the sender that the message was seen.")
    var seen = false

    @Option(help: ArgumentHelp("Waits for so many seconds.", valueName: "s"))
    var deadline = 30.0

    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard (reply != nil) != seen else { throw ValidationError("Give either --reply or --seen.") }
        guard deadline > 0, deadline <= 1e6 else {
            throw ValidationError("--deadline takes a number of seconds above 0, not \(deadline).")
        }
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let identifier = "\(callID)-\(UInt64.random(in: 0...(.max)))"
        let action = MessageAction(id: identifier, callID: callID, kind: reply.map { .reply($0) } ?? .markAsSeen)
        try from.check(action)
        var configuration = CoreConfiguration()
        configuration.budget = .seconds(deadline)
        let group = try groupOption.container()
        let core = try ExecutorCore(group: group, service: from.service(of: group), configuration: configuration)
        try await from.check(core.store, group.path)
        if from.mailbox == nil, try await core.store.message(callID: callID) == nil {
            throw ToolFailure(
                "No message of the call-id \(callID) has come, or it was forgotten. See what `core notify` showed."
            )
        }
        var refusal: ActionRefusal?
        var isDone: Bool? = false
        do {
            isDone = try await Interruption.orValue { try await core.perform(action) }
        } catch let error as ActionRefusal {
            refusal = error
        }
        _ = try await Interruption.orValue { await core.stop() }
        if let refusal { throw ToolFailure("It was refused, and is not tried again: \(refusal.message)") }
        guard let isDone else { throw ToolFailure("Interrupted. What was queued is performed by the next core.") }
        guard isDone else {
            throw ToolFailure(
                "Nobody performed it within \(deadline) s. It is queued; run a core to have it performed."
            )
        }
        common.show(["id": .string(identifier), "performed": .bool(true)], text: "performed\n")
    }
}
