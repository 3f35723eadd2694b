import Foundation
import LocalMessaging
import Testing

struct Note: LocalMessage {
    static let messageType = MessageType(name: "test.note")
    let text: String
}

struct Sum: LocalRequest {
    static let messageType = MessageType(name: "test.sum")
    typealias Reply = Int
    let terms: [Int]
}

/// A directory that goes away with the value.
final class Scratch: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "messaging-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct MessageServerTests {
    let scratch: Scratch
    let group: GroupContainer

    init() throws {
        scratch = try Scratch()
        group = try GroupContainer(directory: scratch.path)
    }

    @Test func `a request is answered, with attachments both ways`() async throws {
        var handlers = MessageHandlers()
        handlers.reply(to: Sum.self) { request, _ in request.terms.reduce(0, +) }
        let server = try await MessageServer.start(name: "sums", in: group, handlers: handlers)
        let client = try await MessageClient.connect(to: "sums", in: group)
        #expect(try await client.request(Sum(terms: [1, 2, 3])) == 6)
        #expect(client.server?.process == getpid())
        await client.close()
        await server.stop()
    }

    @Test func `a blob and an open file arrive with their message`() async throws {
        let (arrived, continuation) = AsyncStream<(Int, String)>.makeStream()
        var handlers = MessageHandlers()
        handlers.on(Note.self) { note, context in
            let text = context.attachments.files.first.map { file in
                var buffer = [UInt8](repeating: 0, count: 100)
                let count = read(file.descriptor, &buffer, 100)
                return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
            }
            continuation.yield((context.attachments.blob?.count ?? -1, text ?? "none"))
        }
        let server = try await MessageServer.start(name: "notes", in: group, handlers: handlers)
        let client = try await MessageClient.connect(to: "notes", in: group)
        let path = scratch.path + "/file"
        try Data("hello".utf8).write(to: URL(fileURLWithPath: path))
        for size in [0, 1000, 1 << 20] {
            let attachments = Attachments(
                blob: Blob([UInt8](repeating: 7, count: size)), files: [try OpenFile(readingFrom: path)])
            try await client.send(Note(text: "x"), attachments: attachments)
        }
        var iterator = arrived.makeAsyncIterator()
        for size in [-1, 1000, 1 << 20] {
            let next = try #require(await iterator.next())
            #expect(next == (size, "hello"))
        }
        await client.close()
        await server.stop()
    }
}
