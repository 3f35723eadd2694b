import Foundation
import LocalMessaging
import LocalMessagingTesting
import Synchronization
import TestSupport
import Testing

/// Servers over real sockets.
@Suite(.serialized, .timeLimit(.minutes(4)), .tags(.realtime), .onSteadyMachine)
struct MessageServerRealTimeTests {
    let scratch: Scratch
    let group: GroupContainer

    init() throws {
        scratch = try Scratch()
        group = try GroupContainer(directory: scratch.path)
    }

    @Test func `a request is answered`() async throws {
        let server = try await MessageServer.start(name: "sums", in: group, handlers: .sums)
        let client = try await MessageClient.connect(to: "sums", in: group)
        #expect(try await client.request(Sum(terms: [1, 2, 3])) == 6)
        #expect(client.server?.process == getpid())
        await client.close()
        await server.stop()
    }

    @Test func `a blob and an open file arrive with their message`() async throws {
        let arrived = Record<[String]>()
        var handlers = MessageHandlers()
        handlers.on(Note.self) { note, context in
            arrived.add([note.text, "\(context.attachments.blob?.count ?? -1)", text(of: context.attachments.files)])
        }
        let server = try await MessageServer.start(name: "notes", in: group, handlers: handlers)
        let client = try await MessageClient.connect(to: "notes", in: group)
        // In the stream, as sealed memory, none.
        for (name, size) in [("a", 1000), ("b", 1 << 20), ("c", 0)] {
            let attachments = Attachments(
                blob: Blob([UInt8](repeating: 7, count: size)),
                files: [try file(saying: name)]
            )
            try await client.send(Note(text: name), attachments: attachments)
        }
        try await client.send(Note(text: "d"))
        #expect(
            await arrived.values(4) == [
                ["a", "1000", "a"], ["b", "1048576", "b"], ["c", "-1", "c"], ["d", "-1", ""],
            ]
        )
        await client.close()
        await server.stop()
    }

    @Test func `a server sends open files, too, and answers with them`() async throws {
        let path = try path(saying: "secret")
        var handlers = MessageHandlers()
        handlers.replyWithAttachments(to: Sum.self) { request, _ in
            (
                0,
                Attachments(
                    blob: Blob(repeatElement(1, count: request.terms[0])),
                    files: [try OpenFile(readingFrom: path)]
                )
            )
        }
        let server = try await MessageServer.start(name: "core", in: group, handlers: handlers)
        let heard = Record<String>()
        var clientHandlers = MessageHandlers()
        clientHandlers.on(Note.self) { _, context in heard.add(text(of: context.attachments.files)) }
        let client = try await MessageClient.connect(to: "core", in: group, handlers: clientHandlers)
        for size in [5, 200_000] {
            let (_, attachments) = try await client.exchange(Sum(terms: [size]))
            #expect(attachments.blob?.count == size)
            #expect(text(of: attachments.files) == "secret")
        }
        #expect(
            try await server.broadcast(Note(text: ""), attachments: Attachments(files: [try file(saying: "to all")]))
                == 1
        )
        #expect(await heard.values(1) == ["to all"])
        await client.close()
        await server.stop()
    }

    @Test func `more open files than fit a message are refused`() async throws {
        let server = try await MessageServer.start(name: "notes", in: group, handlers: .notes(into: Record()))
        let client = try await MessageClient.connect(to: "notes", in: group)
        let files = try (0..<9).map { _ in try OpenFile(readingFrom: "/dev/null") }
        await #expect(throws: MessagingError.attachments("9 descriptors; 8 are the most.")) {
            try await client.send(Note(text: ""), attachments: Attachments(files: files))
        }
        await client.close()
        await server.stop()
    }

    @Test func `a refused client hears why, and is no client`() async throws {
        let clients = ClientRecord()
        let server = try await MessageServer.start(
            name: "core",
            in: group,
            handlers: .sums,
            shouldAccept: { $0.process == getpid() ? "not this process" : nil },
            clientChanged: clients.note
        )
        for _ in 0..<10 {
            await #expect(throws: Invalidation.refused("not this process")) {
                try await MessageClient.connect(to: "core", in: group)
            }
        }
        #expect(server.clients.isEmpty)
        await server.stop()
        #expect(clients.joined.values.isEmpty)
    }

    @Test func `one client more than the most is refused, and accepted once another has left`() async throws {
        var configuration = MessagingConfiguration()
        configuration.maximumClients = 2
        let clients = ClientRecord()
        let server = try await MessageServer.start(
            name: "core",
            in: group,
            handlers: .sums,
            configuration: configuration,
            clientChanged: clients.note
        )
        let first = try await MessageClient.connect(to: "core", in: group)
        let second = try await MessageClient.connect(to: "core", in: group)
        await #expect(throws: Invalidation.refused("2 clients are connected, which is the most.")) {
            try await MessageClient.connect(to: "core", in: group)
        }
        await first.close()
        _ = await clients.left.values(1)
        let third = try await MessageClient.connect(to: "core", in: group, waitingForServer: .seconds(5))
        #expect(try await third.request(Sum(terms: [3])) == 3)
        await second.close()
        await third.close()
        await server.stop()
    }

    @Test func `of many clients that come at once as many are accepted as there are places`() async throws {
        var configuration = MessagingConfiguration()
        configuration.maximumClients = 8
        let server = try await MessageServer.start(
            name: "core",
            in: group,
            handlers: .sums,
            configuration: configuration
        )
        let accepted = await withTaskGroup { tasks in
            for _ in 0..<64 { tasks.addTask { [group] in try? await MessageClient.connect(to: "core", in: group) } }
            return await tasks.reduce(into: [MessageClient]()) { clients, client in
                if let client { clients.append(client) }
            }
        }
        #expect(accepted.count == 8)
        for client in accepted { await client.close() }
        await server.stop()
    }

    @Test func `topics reach those who want them, and the star everything`() async throws {
        let server = try await MessageServer.start(name: "core", in: group, handlers: .sums)
        let heard = (0..<3).map { _ in Record<String>() }
        var clients: [MessageClient] = []
        for (record, topics) in zip(heard, [["calls"], ["*"], []]) {
            var handlers = MessageHandlers()
            handlers.on(Note.self) { note, context in record.add("\(context.topic):\(note.text)") }
            let client = try await MessageClient.connect(to: "core", in: group, handlers: handlers)
            for topic in topics { try client.subscribe(to: topic) }
            // An answer says that what was sent before it is known.
            _ = try await client.request(Sum(terms: []))
            clients.append(client)
        }
        #expect(try await server.broadcast(Note(text: "1"), topic: "calls") == 2)
        #expect(try await server.broadcast(Note(text: "2"), topic: "rooms") == 1)
        #expect(try await server.broadcast(Note(text: "3")) == 3)
        clients[0].unsubscribe(from: "calls")
        _ = try await clients[0].request(Sum(terms: []))
        #expect(try await server.broadcast(Note(text: "4"), topic: "calls") == 1)
        #expect(try await server.broadcast(Note(text: "5")) == 3)
        #expect(await heard[0].values(3) == ["calls:1", ":3", ":5"])
        #expect(await heard[1].values(5) == ["calls:1", "rooms:2", ":3", "calls:4", ":5"])
        #expect(await heard[2].values(2) == [":3", ":5"])
        #expect(throws: MessagingError.self) { try clients[0].subscribe(to: String(repeating: "t", count: 256)) }
        for client in clients { await client.close() }
        await server.stop()
    }

    @Test func `a message to one client reaches that one alone`() async throws {
        let server = try await MessageServer.start(name: "core", in: group, handlers: .sums)
        let heard = (0..<3).map { _ in Record<String>() }
        var clients: [MessageClient] = []
        for record in heard {
            clients.append(try await MessageClient.connect(to: "core", in: group, handlers: .notes(into: record)))
        }
        for (index, connection) in server.clients.enumerated() { try await connection.send(Note(text: "\(index)")) }
        for (index, record) in heard.enumerated() { #expect(await record.values(1) == ["\(index)"]) }
        for client in clients { await client.close() }
        await server.stop()
    }

    @Test func `a broadcast goes to those that accept its type and size, whoever came first`() async throws {
        let server = try await MessageServer.start(name: "core", in: group, handlers: .sums)
        let heard = Record<String>()
        var small = MessagingConfiguration()
        small.maximumFrameByteCount = 500
        let deaf = try await MessageClient.connect(to: "core", in: group)
        let narrow = try await MessageClient.connect(
            to: "core",
            in: group,
            handlers: .notes(into: heard),
            configuration: small
        )
        let wide = try await MessageClient.connect(to: "core", in: group, handlers: .notes(into: heard))
        #expect(try await server.broadcast(Note(text: "short")) == 2)
        #expect(try await server.broadcast(Note(text: String(repeating: "x", count: 600))) == 1)
        #expect(await heard.values(3).map(\.count).sorted() == [5, 5, 600])
        for client in [deaf, narrow, wide] { await client.close() }
        await server.stop()
    }

    @Test func `stopping tells every client, after what was sent before`() async throws {
        let server = try await MessageServer.start(name: "core", in: group, handlers: .sums)
        let heard = Record<String>()
        var clients: [MessageClient] = []
        for _ in 0..<5 {
            clients.append(try await MessageClient.connect(to: "core", in: group, handlers: .notes(into: heard)))
        }
        for number in 0..<100 { try await server.broadcast(Note(text: "\(number)")) }
        await server.stop()
        for client in clients { #expect(await client.invalidated() == .closedByPeer) }
        #expect(await heard.values(500).count == 500)
    }

    // MARK: Load

    @Test func `200 clients send 1,000 messages each with broadcasts in between: each once, and in order`() async throws
    {
        let (clientCount, messageCount, broadcastCount) = thorough((200, 1000, 20), quick: (50, 200, 20))
        let inOrder = InOrder(senders: clientCount, each: messageCount)
        var handlers = MessageHandlers()
        handlers.on(Numbered.self) { message, _ in inOrder.add(message) }
        let server = try await MessageServer.start(name: "core", in: group, handlers: handlers)
        let broadcasts = InOrder(senders: clientCount, each: broadcastCount)
        let before = try residentByteCount()
        try await withThrowingTaskGroup(of: MessageClient.self) { tasks in
            for sender in 0..<clientCount {
                tasks.addTask {
                    var handlers = MessageHandlers()
                    handlers.on(Numbered.self) {
                        broadcasts.add(Numbered(sender: sender, number: $0.number)); _ = $1
                    }
                    let client = try await MessageClient.connect(
                        to: "core",
                        in: group,
                        handlers: handlers,
                        waitingForServer: .seconds(30)
                    )
                    return client
                }
            }
            var clients: [MessageClient] = []
            for try await client in tasks { clients.append(client) }
            for (sender, client) in clients.enumerated() {
                tasks.addTask {
                    for number in 0..<messageCount { try await client.send(Numbered(sender: sender, number: number)) }
                    return client
                }
            }
            for number in 0..<broadcastCount {
                #expect(try await server.broadcast(Numbered(sender: -1, number: number)) == clientCount)
            }
            try await tasks.waitForAll()
            await inOrder.isComplete.passed()
            await broadcasts.isComplete.passed()
            #expect(inOrder.errors.isEmpty)
            #expect(broadcasts.errors.isEmpty)
            // 200,000 messages of some 60 bytes went through; what waits at a time is bounded.
            // The address sanitizer keeps what was freed.
            if dlsym(nil, "__asan_init") == nil { #expect(try residentByteCount() - before < 128 << 20) }
            for client in clients { await client.close() }
        }
        await server.stop()
    }

    @Test func `10,000 messages with an open file, and 500 connections, leave no descriptor behind`() async throws {
        let heard = Record<Int>()
        var handlers = MessageHandlers.sums
        handlers.on(Numbered.self) { message, context in heard.add(message.number + context.attachments.files.count) }
        let server = try await MessageServer.start(name: "core", in: group, handlers: handlers)
        func round(_ messageCount: Int, _ connectionCount: Int) async throws {
            let expected = heard.values.count + messageCount
            let file = try OpenFile(readingFrom: "/dev/null")
            let client = try await MessageClient.connect(to: "core", in: group)
            for number in 0..<messageCount {
                try await client.send(Numbered(sender: 0, number: number), attachments: Attachments(files: [file]))
            }
            _ = await heard.values(expected)
            await client.close()
            for _ in 0..<connectionCount {
                let client = try await MessageClient.connect(to: "core", in: group)
                _ = try await client.request(Sum(terms: []))
                await client.close()
            }
        }
        try await round(10, 10)
        let before = try openDescriptorCount()
        try await round(thorough(10_000, quick: 1000), thorough(500, quick: 50))
        // Other tests of this process have some open, too, so it is not to the one.
        #expect(try openDescriptorCount() - before < 100)
        await server.stop()
    }

    private func path(saying text: String) throws -> String {
        let path = scratch.path + "/\(UUID().uuidString)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func file(saying text: String) throws -> OpenFile { try OpenFile(readingFrom: path(saying: text)) }
}

struct Numbered: LocalMessage {
    static let messageType = MessageType(name: "test.numbered")
    let sender: Int
    let number: Int
}

/// Sees that each of many senders' numbers come from 0 on, one after the other.
final class InOrder: Sendable {
    let isComplete = Gate()
    private let each: Int
    private let state: Mutex<(next: [Int], open: Int, errors: [String])>

    init(senders: Int, each: Int) {
        self.each = each
        state = Mutex((Array(repeating: 0, count: senders), senders, []))
    }

    func add(_ message: Numbered) {
        let isLast = state.withLock { state in
            let expected = state.next[message.sender]
            if message.number != expected { state.errors.append("\(message) instead of \(expected)") }
            state.next[message.sender] += 1
            if state.next[message.sender] == each { state.open -= 1 }
            return state.open == 0
        }
        if isLast { isComplete.open() }
    }

    var errors: [String] { state.withLock { $0.errors } }
}

/// Memory of this process that is in use (proc(5), statm).
private func residentByteCount() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    return try #require(text.split(separator: " ").dropFirst().first.flatMap { Int($0) })
        * Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// What the first of the files holds.
private func text(of files: [OpenFile]) -> String {
    guard let file = files.first else { return "" }
    var buffer = [UInt8](repeating: 0, count: 100)
    let count = pread(file.descriptor, &buffer, buffer.count, 0)
    return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
}
