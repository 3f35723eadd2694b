import ArgumentParser
import LocalMessaging

/// Serves a name: prints messages, answers requests, and passes messages on to listeners.
struct GroupServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serves a name in a group, and prints each message with who sent it.",
        discussion: """
            Process, user and executable are what the kernel says of the sender, not what it says itself. Requests are \
            answered with {"received":true}, or with their own body under --echo. Other messages are passed on, with \
            their topic and attachments, to those who listen.

            EXAMPLES
              media-tool group serve --group /run/user/1000/phone --name news
              media-tool group serve --group /tmp/g --name echo --echo --json
            """
    )

    @OptionGroup var server: ServerOptions

    @Flag(help: "Answer each request with its own body.")
    var echo = false

    @OptionGroup var common: CommonOptions

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        StandardOutput.watch()
        let (isEchoing, common) = (echo, self.common)
        let (starts, started) = AsyncStream<MessageServer>.makeStream()
        // Handlers wait for the server that they are part of.
        let running = Task { await starts.first { _ in true } }
        var handlers = MessageHandlers()
        handlers.on(GroupMessage.self) { message, context in
            let printed = PrintedMessage("message", message.body, context)
            common.show(printed.json, text: printed.text)
            do {
                _ = try await running.value?.broadcast(message, topic: context.topic, attachments: context.attachments)
            } catch {
                StandardError.write("A message was not passed on: \(error)\n")
            }
        }
        handlers.reply(to: GroupRequest.self) { request, context in
            let printed = PrintedMessage("request", request.body, context)
            common.show(printed.json, text: printed.text)
            return isEchoing ? request.body : ["received": .bool(true)]
        }
        let group = try GroupContainer(directory: server.place.group)
        let serving = try await MessageServer.start(name: server.name, in: group, handlers: handlers)
        started.yield(serving)
        StandardError.write("Serving \(server.name) in \(group.path); Ctrl-C ends.\n")
        await Interruption.wait()
        await serving.stop()
    }
}
