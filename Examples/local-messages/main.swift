// Processes of one group that talk to each other: a request and its answer, a message with an open file and a megabyte of
// memory beside it, and news for those who listen to a topic.
//
// Alone it is both in one process. In two shells: `local-messages serve DIR` and `local-messages talk DIR`.
import Foundation
import LocalMessaging

/// How many words a text has.
struct WordCount: LocalRequest {
    typealias Reply = Int
    static let messageType = MessageType(name: "example.word-count")
    let text: String
}

/// A picture, whose pixels come beside it.
struct Picture: LocalMessage {
    static let messageType = MessageType(name: "example.picture")
    let caption: String
}

/// What the server says to those who listen.
struct Headline: LocalMessage {
    static let messageType = MessageType(name: "example.headline")
    let text: String
}

/// Starts the server; it runs until it is stopped.
func serve(_ group: GroupContainer) async throws -> MessageServer {
    var handlers = MessageHandlers()
    handlers.reply(to: WordCount.self) { request, _ in request.text.split(separator: " ").count }
    handlers.on(Picture.self) { picture, context in
        let blob = context.attachments.blob
        let sum = blob?.withUnsafeBytes { $0.reduce(0) { $0 + Int($1) } } ?? 0
        let notes = context.attachments.files.first.flatMap { file in
            try? FileHandle(fileDescriptor: file.descriptor, closeOnDealloc: false).readToEnd()
        }
        // What the kernel says of the sender, not what it says of itself.
        let isThisProgram = context.connection.peer.executable == PeerIdentity.current.executable
        print("server: \(picture.caption), \(blob?.count ?? 0) bytes with the sum \(sum)")
        print("server: its notes: \(String(decoding: notes ?? Data(), as: UTF8.self))")
        print("server: sent by \(isThisProgram ? "this program" : "another program")")
    }
    return try await MessageServer.start(name: "pictures", in: group, handlers: handlers)
}

/// Tells the time to those who listen, until the task is cancelled.
func tellTime(_ server: MessageServer) async throws {
    while true {
        try await server.broadcast(Headline(text: "it is \(Date.now)"), topic: "time")
        try await Task.sleep(for: .milliseconds(100))
    }
}

/// A client's visit.
func talk(_ group: GroupContainer) async throws {
    let (headlines, arrived) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingNewest(1))
    var handlers = MessageHandlers()
    handlers.on(Headline.self) { headline, context in arrived.yield("\(context.topic): \(headline.text)") }
    let client = try await MessageClient.connect(
        to: "pictures",
        in: group,
        handlers: handlers,
        waitingForServer: .seconds(10)
    )
    try client.subscribe(to: "time")

    // The server maps the same pages; nothing is copied, and nobody can change them any more.
    let pixels = try SealedMemory(count: 1 << 20) { $0.initializeMemory(as: UInt8.self, repeating: 1) }
    let notes = FileManager.default.temporaryDirectory.appending(path: "notes-\(getpid()).txt")
    try Data("taken at noon".utf8).write(to: notes)
    defer { try? FileManager.default.removeItem(at: notes) }
    let attachments = Attachments(blob: Blob(pixels), files: [try OpenFile(readingFrom: notes.path)])
    try await client.send(Picture(caption: "a white wall"), attachments: attachments)

    // What one sender sends is handled in its order: when this is answered, the picture was looked at.
    let count = try await client.request(WordCount(text: "to be or not to be"), timeout: .seconds(2))
    print("client: \(count) words")
    print("client: heard of \(await headlines.first { _ in true } ?? "nothing")")
    await client.close()
}

switch CommandLine.arguments.dropFirst().map(\.self) {
case []:
    let directory = FileManager.default.temporaryDirectory.appending(path: "group-\(getpid())")
    defer { try? FileManager.default.removeItem(at: directory) }
    let group = try GroupContainer(directory: directory.path)
    let server = try await serve(group)
    let clock = Task { try await tellTime(server) }
    try await talk(group)
    clock.cancel()
    await server.stop()
case let words where words.count == 2 && words[0] == "serve":
    try await tellTime(try await serve(GroupContainer(directory: words[1])))
case let words where words.count == 2 && words[0] == "talk":
    try await talk(GroupContainer(directory: words[1]))
default:
    print("usage: local-messages [serve|talk DIR]")
    exit(64)
}
