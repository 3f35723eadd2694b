import CMeasure
import EngineBenchmarks
import Glibc
import LocalMessaging
import Synchronization

/// 64 bytes there and 64 back, as JSON.
struct Ping: LocalRequest {
    typealias Reply = String
    static let messageType = MessageType(name: "bench.ping")

    /// Makes a payload of 64 bytes, `{"text":"…"}`.
    let text: String
}

/// Carries a blob; the peer counts them.
struct Chunk: LocalMessage {
    static let messageType = MessageType(name: "bench.chunk")
}

/// Asks how many bytes of blobs have come; answered after every chunk that was sent before.
struct ChunkTally: LocalRequest {
    typealias Reply = Int
    static let messageType = MessageType(name: "bench.chunk-tally")
}

/// Comes with a blob; answered with the nanoseconds from `sentAt` until the peer could read it.
struct Landing: LocalRequest {
    typealias Reply = Int64
    static let messageType = MessageType(name: "bench.landing")

    /// By the monotonic clock, which all processes share.
    let sentAt: Int64
}

/// One of a client's messages, counted from 0.
struct Numbered: LocalMessage {
    static let messageType = MessageType(name: "bench.numbered")

    let index: Int
}

/// What the peer says to all clients, counted from 0.
struct Announcement: LocalMessage {
    static let messageType = MessageType(name: "bench.announcement")

    let index: Int
}

/// Asks a client's count of messages that came in their order, and -1 when one did not; answered after all of them.
struct NumberedTally: LocalRequest {
    typealias Reply = Int
    static let messageType = MessageType(name: "bench.numbered-tally")
}

/// The server that the messaging benchmarks talk to, a process of its own.
enum MessagingPeer {
    static let serverName = "bench"
    /// The same handlers, on the thread that moves the bytes.
    static let promptServerName = "bench-prompt"
    /// After how many messages of all clients there is an announcement.
    static let announcementInterval = 10_000
    private static let argument = "messaging-peer"

    /// Starts the peer.
    ///
    /// - Returns: Its process.
    static func start(in directory: String) throws -> CInt {
        let words = ["benchmarks", argument, directory]
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let process = measure_start("/proc/self/exe", &arguments)
        guard process > 0 else {
            throw Options.Wrong(description: "no second process: \(String(cString: strerror(-process)))")
        }
        return process
    }

    /// The directory that this process was started for as the peer.
    static var directory: String? {
        let arguments = CommandLine.arguments
        return arguments.count == 3 && arguments[1] == argument ? arguments[2] : nil
    }

    private struct Counts {
        var chunkBytes = 0
        var numbered: [ObjectIdentifier: Int] = [:]
        var numberedTotal = 0
    }

    /// Serves until it is killed.
    static func run(in directory: String) async -> Never {
        let counts = Mutex(Counts())
        // Of the server whose clients hear announcements.
        let server = Mutex<MessageServer?>(nil)
        var handlers = MessageHandlers()
        handlers.reply(to: Ping.self) { ping, _ in ping.text }
        handlers.on(Chunk.self) { _, context in
            counts.withLock { $0.chunkBytes += context.attachments.blob?.count ?? 0 }
        }
        handlers.reply(to: ChunkTally.self) { _, _ in counts.withLock { $0.chunkBytes } }
        handlers.reply(to: Landing.self) { landing, context in
            guard context.attachments.blob?.withUnsafeBytes({ $0.last }) == 1 else { return .max }
            return measure_now() - landing.sentAt
        }
        handlers.on(Numbered.self) { message, context in
            let total = counts.withLock { counts in
                let client = ObjectIdentifier(context.connection)
                let expected = counts.numbered[client, default: 0]
                counts.numbered[client] = expected == message.index ? expected + 1 : .min
                counts.numberedTotal += 1
                return counts.numberedTotal
            }
            guard total.isMultiple(of: announcementInterval) else { return }
            _ = try? await server.withLock { $0 }?.broadcast(Announcement(index: total / announcementInterval - 1))
        }
        handlers.reply(to: NumberedTally.self) { _, context in
            counts.withLock { max($0.numbered[ObjectIdentifier(context.connection), default: 0], -1) }
        }
        do {
            let group = try GroupContainer(directory: directory)
            let started = try await MessageServer.start(name: serverName, in: group, handlers: handlers)
            server.withLock { $0 = started }
            var configuration = MessagingConfiguration()
            configuration.handlerExecutor = MessagingExecutor.shared
            _ = try await MessageServer.start(
                name: promptServerName,
                in: group,
                handlers: handlers,
                configuration: configuration
            )
        } catch {
            Benchmark.complain("the messaging peer: \(error)")
            exit(1)
        }
        while true { pause() }
    }
}
