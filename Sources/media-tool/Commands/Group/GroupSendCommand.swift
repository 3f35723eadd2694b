internal import CallBasics
import ArgumentParser
import LocalMessaging

/// Sends one message to a server.
struct GroupSendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Sends one message to a server of a group; with --request prints the reply.",
        discussion: """
            The body is any JSON of at most \(bodyDepth) levels. A file is passed open, not copied: the receiver reads \
            it, whatever its size and wherever it is. A server that is not there yet is waited for, 1 s at most.

            EXAMPLES
              media-tool group send --group /tmp/g --name news --body '{"text":"hello"}'
              media-tool group send --group /tmp/g --name news --body '"late"' --topic calls
              media-tool group send --group /tmp/g --name news --body '{}' --file note.wav
              media-tool group send --group /tmp/g --name echo --body '[1,2]' --request --timeout 500
              media-tool group send --group /tmp/g --name news --body - --json <body.json
            """
    )

    @OptionGroup var server: ServerOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("What is sent; - reads it from standard input.", valueName: "json")
    )
    var body: String

    @Option(help: ArgumentHelp("An open file to pass with it.", valueName: "file"), completion: .file())
    var file: String?

    @Option(help: ArgumentHelp("For those alone who listen to this topic.", valueName: "topic"))
    var topic: String?

    @Flag(help: "Wait for the reply, and print it: JSON, with and without --json.")
    var request = false

    @Option(help: ArgumentHelp("How long the server may take to accept, to read and to reply.", valueName: "ms"))
    var timeout = 5000

    @OptionGroup var common: CommonOptions

    /// One less than a server accepts: the message around the body is a level, too.
    private static let bodyDepth = MessagingConfiguration().maximumDepth - 1
    private static let bodyByteCount = 16 << 20

    func validate() throws {
        try Quantity.check("--timeout", timeout, in: 1...3_600_000, "ms")
        if let topic {
            if request { throw ValidationError("'--topic' and '--request' exclude each other. Leave out one.") }
            if !(1...255).contains(topic.utf8.count) {
                throw ValidationError("The value '\(topic.prefix(80))' of '--topic' has not 1 to 255 bytes.")
            }
        }
        if body != "-" { _ = try parsedBody(Array(body.utf8)) }
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let text = self.body == "-" ? try TextFile.read("/dev/stdin", limit: Self.bodyByteCount) : Array(self.body.utf8)
        let body = try parsedBody(text)
        let group = try await openGroup()
        let files = try file.map { [try OpenFile(readingFrom: $0)] } ?? []
        let sent: JSONValue?
        do {
            sent = try await Interruption.orValue { try await send(body, Attachments(files: files), group) }
        } catch let reason as Invalidation {
            throw ToolFailure("\(server.name) in \(group.path): \(reason)")
        } catch MessagingError.tooLarge(let byteCount, let limit) {
            throw ToolFailure(
                "\(server.name) accepts \(limit) bytes; these are \(byteCount). Pass large data as --file."
            )
        } catch MessagingError.timedOut(let limit) {
            throw ToolFailure("\(server.name) did not answer within \(limit). Give it longer by --timeout.")
        }
        guard let sent else { throw ToolFailure("Interrupted before the message was taken. Send it again.") }
        common.show(sent, text: request ? sent.text + "\n" : "Sent to \(server.name) in \(group.path).\n")
    }

    /// How long a group and its server are waited for: a script starts the server, and sends at once.
    private var startLimit: Duration { min(.milliseconds(timeout), .seconds(1)) }

    private func openGroup() async throws -> GroupContainer {
        let deadline = ContinuousClock.now + startLimit
        while true {
            do throws(GroupError) {
                return try GroupContainer(directory: server.place.group, isCreated: false)
            } catch {
                guard error.code == .missing, .now < deadline, !Interruption.hasCome else { throw error }
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Sends it; answers what is printed.
    private func send(_ body: JSONValue, _ attachments: Attachments, _ group: GroupContainer) async throws -> JSONValue
    {
        let limit = Duration.milliseconds(timeout)
        var configuration = MessagingConfiguration()
        configuration.handshakeLimit = limit
        configuration.stallLimit = limit
        let client = try await MessageClient.connect(
            to: server.name,
            in: group,
            configuration: configuration,
            waitingForServer: startLimit
        )
        guard !request else {
            let reply = try await client.request(GroupRequest(body: body), attachments: attachments, timeout: limit)
            await client.close()
            return reply
        }
        let process = client.server?.process
        try await client.send(GroupMessage(body: body), topic: topic ?? "", attachments: attachments)
        await client.close()
        let end = await client.invalidated()
        guard end == .closed else { throw end }
        return ["sent": .bool(true), "pid": process.map { .integer(Int($0)) } ?? .null]
    }

    private func parsedBody(_ text: [UInt8]) throws -> JSONValue {
        guard text.count <= Self.bodyByteCount else {
            throw ValidationError("A body of more than \(Self.bodyByteCount) bytes. Pass it as --file.")
        }
        guard let value = try? JSONValue(parsing: text) else {
            let shown = String(decoding: text.prefix(80), as: UTF8.self)
            throw ValidationError(
                "The value '\(shown)' of '--body' is no JSON. Quote it for the shell: --body '{\"a\":1}'."
            )
        }
        guard value.depth <= Self.bodyDepth else {
            throw ValidationError("'--body' has \(value.depth) levels. Give \(Self.bodyDepth) at most.")
        }
        return value
    }
}
