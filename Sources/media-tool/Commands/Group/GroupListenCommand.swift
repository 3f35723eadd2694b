import ArgumentParser
import LocalMessaging

/// Prints what a server sends to all.
struct GroupListenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen",
        abstract: "Prints the messages that a server of a group sends to all.",
        discussion: """
            It waits for a server that is not there yet, and for the next one when that has ended. With --topic come \
            messages of that topic and those without one, otherwise all. The process that is printed is the server's.

            EXAMPLES
              media-tool group listen --group /run/user/1000/phone --name news
              media-tool group listen --group /run/user/1000/phone --name news --topic calls --json
            """
    )

    @OptionGroup var server: ServerOptions

    @Option(help: ArgumentHelp("Of the messages with a topic, those with this one alone.", valueName: "topic"))
    var topic: String?

    @OptionGroup var common: CommonOptions

    private static let forever = Duration.seconds(Quantity.seconds.upperBound)

    func validate() throws {
        if let topic, !(1...255).contains(topic.utf8.count) {
            throw ValidationError("The value '\(topic.prefix(80))' of '--topic' has not 1 to 255 bytes.")
        }
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        StandardOutput.watch()
        let (name, common) = (server.name, self.common)
        var handlers = MessageHandlers()
        handlers.on(GroupMessage.self) { message, context in
            let printed = PrintedMessage("message", message.body, context)
            common.show(printed.json, text: printed.text)
        }
        let group = try GroupContainer(directory: server.place.group)
        let client: MessageClient?
        do {
            client = try await Interruption.orValue { [handlers] in
                try await MessageClient.connect(
                    to: name,
                    in: group,
                    handlers: handlers,
                    waitingForServer: Self.forever,
                    reconnection: .backingOff
                ) { change in
                    switch change {
                    case .interrupted(let reason): StandardError.write("Waiting for \(name): \(reason)\n")
                    case .reconnected(let connection):
                        StandardError.write("Listening to \(name), \(connection.peer).\n")
                    case .invalidated: break
                    }
                }
            }
        } catch let reason as Invalidation {
            throw ToolFailure("\(name) in \(group.path): \(reason)")
        }
        guard let client else { return }
        try client.subscribe(to: topic ?? MessageConnection.everyTopic)
        if let peer = client.server { StandardError.write("Listening to \(name), \(peer).\n") }
        let closing = Task {
            await Interruption.wait()
            await client.close()
        }
        let reason = await client.invalidated()
        closing.cancel()
        guard Interruption.hasCome else { throw ToolFailure("\(name) in \(group.path): \(reason)") }
    }
}
