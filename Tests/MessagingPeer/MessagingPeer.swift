import Glibc
import LocalMessaging

/// A process at the other end of a test.
///
///     MessagingPeer serve DIR NAME [DESCRIPTORS]   serves, with no more descriptors than that; "ready"
///     MessagingPeer connect DIR NAME               connects and says hello; "ready"
///     MessagingPeer listen DIR NAME                connects and takes notes; "ready"
///     MessagingPeer exhausted DIR NAME             connects without a descriptor left; prints the error
///     MessagingPeer contend DIR NAME               serves after a line on standard input; "won", or the error's code
///                                                  and its message
@main enum MessagingPeer {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4 else { exit(64) }
        let group = try GroupContainer(directory: arguments[2])
        let name = arguments[3]
        switch arguments[1] {
        case "serve":
            if arguments.count > 4, let count = rlim_t(arguments[4]) { limitDescriptors(to: count) }
            let server = try await MessageServer.start(name: name, in: group, handlers: handlers)
            say("ready")
            await forever(server)
        case "connect":
            let client = try await MessageClient.connect(to: name, in: group, handlers: handlers)
            try await client.send(Hello(text: "hello"))
            say("ready")
            await forever(client)
        case "listen":
            var handlers = MessageHandlers()
            handlers.on(Note.self) { _, _ in }
            let client = try await MessageClient.connect(to: name, in: group, handlers: handlers)
            say("ready")
            await forever(client)
        case "exhausted":
            // Threads and timers of the process do not start without a descriptor: they are there after a first attempt.
            _ = try? await MessageClient.connect(to: "nobody", in: group)
            // Dispatch opens a file to look at its threads, at once and then each second, and traps where it cannot.
            // The first look is over once its timers have gone off twice.
            for _ in 0..<2 { try await Task.sleep(for: .milliseconds(1)) }
            limitDescriptors(to: 64)
            while dup(0) >= 0 {}
            do {
                _ = try await MessageClient.connect(to: name, in: group)
                say("connected")
            } catch {
                say("\(error)")
            }
        case "contend":
            _ = readLine()
            do {
                let server = try await MessageServer.start(name: name, in: group, handlers: handlers)
                say("won")
                await forever(server)
            } catch let error as ServerError {
                say("\(error.code)")
                say(error.message)
            }
        default: exit(64)
        }
    }

    private static var handlers: MessageHandlers {
        var handlers = MessageHandlers()
        handlers.reply(to: WhoAreYou.self) { _, _ in getpid() }
        handlers.reply(to: NeverAnswered.self) { _, _ in
            for await _ in AsyncStream<Never>.makeStream().stream {}
            throw CancellationError()
        }
        return handlers
    }

    private static func limitDescriptors(to count: rlim_t) {
        var limit = rlimit(rlim_cur: count, rlim_max: count)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }

    private static func forever(_ held: some Sendable) async {
        await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
        withExtendedLifetime(held) {}
    }
}
