import ArgumentParser
import Mailbox
import SharedCore

/// Serves a mailbox until a signal comes.
struct CoreMailboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mailbox",
        abstract: "Serves a mailbox over TCP, which holds each message until it is acknowledged.",
        discussion: """
            The file has a JSON object on each line: {"callID", "from", "text", "delayMs"} for a message, with "room" \
            when it was written in a chat room, or {"room", "from", "subject"} for an invitation to a chat room. \
            "delayMs" counts from the start of the server. "duplicates": N sends it N more times; \
            "disconnectAfter": true drops the connection after it was sent for the first time.

            It prints what happens, one event a line; at Ctrl-C what is held and what was acknowledged.

            EXAMPLES
              media-tool core mailbox --port 5070 --messages pushes.jsonl
              media-tool core mailbox --port 0 --messages pushes.jsonl --json
            """
    )

    @Option(help: ArgumentHelp("The TCP port to listen on; 0 takes one that is free and prints it.", valueName: "n"))
    var port: UInt16

    @Option(help: ArgumentHelp("What it holds.", valueName: "file"), completion: .file(extensions: ["jsonl"]))
    var messages: String

    @Option(
        help: ArgumentHelp("The address to listen on; whoever can reach it may read all.", valueName: "address")
    )
    var host = "127.0.0.1"

    @OptionGroup var common: CommonOptions

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        StandardOutput.watch()
        let posts = try MailboxPost.parse(lines: try Self.text(of: messages))
        let server = try await MailboxServer.start(host: host, port: Int(port), posts: posts) { [common] event in
            common.show(event.json, text: event.text)
        }
        common.show(
            [
                "event": "listening", "host": .string(host), "port": .integer(server.port),
                "held": .integer(posts.count),
            ],
            text: "listening on \(host):\(server.port), held \(posts.count)\n"
        )
        await Interruption.wait()
        let counts = await server.counts
        await server.stop()
        common.show(
            [
                "event": "closed", "held": .integer(counts.held), "acknowledged": .integer(counts.acknowledged),
                "sent": .integer(counts.sent), "actions": .integer(counts.actions),
                "connections": .integer(counts.connections),
            ],
            text: "closed, held \(counts.held), acknowledged \(counts.acknowledged), sent \(counts.sent), "
                + "actions \(counts.actions), connections \(counts.connections)\n"
        )
    }

    private static func text(of path: String) throws -> String {
        let bytes = try TextFile.read(path, limit: mostBytes)
        guard bytes.count <= mostBytes else {
            throw ToolFailure("\(path) has more than \(mostBytes >> 20) MiB. Hand in fewer messages.")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ToolFailure("\(path) is not UTF-8. Write one JSON object on each line.")
        }
        return text
    }

    private static var mostBytes: Int { 64 << 20 }
}

extension MailboxEvent {
    fileprivate var json: JSONValue {
        switch self {
        case .connected: ["event": "connected"]
        case .sent(let content): ["event": "sent", content.keyName: .string(content.key)]
        case .acknowledged(let content): ["event": "acknowledged", content.keyName: .string(content.key)]
        case .performed(let action):
            switch action.kind {
            case .reply(let text):
                [
                    "event": "performed", "id": .string(action.id), "callID": .string(action.callID), "kind": "reply",
                    "text": .string(text),
                ]
            case .markAsSeen:
                [
                    "event": "performed", "id": .string(action.id), "callID": .string(action.callID),
                    "kind": "markAsSeen",
                ]
            }
        case .disconnected(let isByScript): ["event": "disconnected", "byScript": .bool(isByScript)]
        }
    }

    fileprivate var text: String {
        switch self {
        case .connected: "connected\n"
        case .sent(let content): "sent \(content.key.printable)\n"
        case .acknowledged(let content): "acknowledged \(content.key.printable)\n"
        case .performed(let action):
            switch action.kind {
            case .reply(let text): "performed reply to \(action.callID.printable): \(text.printable)\n"
            case .markAsSeen: "performed mark as seen of \(action.callID.printable)\n"
            }
        case .disconnected(let isByScript): isByScript ? "disconnected by script\n" : "disconnected\n"
        }
    }
}

extension MailboxContent {
    fileprivate var keyName: String {
        switch self {
        case .message: "callID"
        case .invitation: "room"
        }
    }
}
