import CMeasure
import EngineBenchmarks
import Foundation
import Glibc
import LocalMessaging
import Synchronization

/// Typed messages between two processes, beside the bare socket pair that nothing on sockets can beat.
enum Messaging {
    private static let warmUpCount = 2000
    private static let batchCount = 20
    private static let batch = 500
    private static let chunkByteCount = 64 << 10
    private static let chunkCount = 16_384
    private static let blobByteCount = 16 << 20
    private static let blobCount = 200
    private static let clientCount = 200
    private static let messagesPerClient = 1000
    private static let rounds = 20

    static func measure(_ options: Options) async throws -> [Figure] {
        let directory = "/tmp/messaging-\(getpid())"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let pong = measure_start_pong()
        guard pong >= 0 else { throw Options.Wrong(description: "no socket pair") }
        defer { close(pong) }
        let peer = try MessagingPeer.start(in: directory)
        defer { measure_stop(peer) }
        let group = try GroupContainer(directory: directory)
        let pooled = try await MessageClient.connect(
            to: MessagingPeer.serverName,
            in: group,
            waitingForServer: .seconds(10)
        )
        let prompt = try await MessageClient.connect(
            to: MessagingPeer.promptServerName,
            in: group,
            waitingForServer: .seconds(10)
        )
        var figures = try await roundTrips(pooled, prompt, pong, options)
        figures += try await throughput(pooled, options)
        figures += try await blobs(prompt)
        figures += try await manyClients(group, peer)
        await pooled.close()
        await prompt.close()
        return figures
    }

    // MARK: There and back

    /// The two ways of messages and the floor take turns, so that all meet the same machine.
    private static func roundTrips(
        _ pooled: MessageClient,
        _ prompt: MessageClient,
        _ pong: CInt,
        _ options: Options
    ) async throws -> [Figure] {
        var medians: [[Double]] = [[], [], [], []]
        var notes = ["", "", "", ""]
        for _ in 0..<options.repetitions {
            var (floor, promptly, byPool): ([Int64], [Int64], [Int64]) = ([], [], [])
            for round in -1..<batchCount {
                // The first round is for warming up.
                let count = round < 0 ? warmUpCount : batch
                var bare = [Int64](repeating: 0, count: count)
                guard measure_ping(pong, CInt(count), &bare) == 0 else {
                    throw Options.Wrong(description: "the process at the socket pair has ended")
                }
                let onThread = try await withTaskExecutorPreference(MessagingExecutor.shared) {
                    try await requests(count, prompt)
                }
                let onPool = try await requests(count, pooled)
                guard round >= 0 else { continue }
                floor += bare
                promptly += onThread
                byPool += onPool
            }
            for (index, (times, fraction)) in [(promptly, 0.5), (promptly, 0.99), (byPool, 0.5), (byPool, 0.99)]
                .enumerated()
            {
                let (bare, typed) = (percentile(floor, fraction), percentile(times, fraction))
                medians[index].append(typed / bare)
                notes[index] = "last \(Report.number(typed)) / \(Report.number(bare)) us"
            }
        }
        let ratio = medians.map { $0.sorted()[$0.count / 2] }
        let name = "messaging: request and reply / bare ping-pong"
        return [
            Figure("\(name), p50", ratio[0], "", .atMost(4), note: notes[0]),
            Figure("\(name), p99", ratio[1], "", .atMost(6), note: notes[1]),
            Figure("\(name), by the pool, p50", ratio[2], note: notes[2]),
            Figure("\(name), by the pool, p99", ratio[3], note: notes[3]),
        ]
    }

    private static func requests(_ count: Int, _ client: MessageClient) async throws -> [Int64] {
        let ping = Ping(text: String(repeating: "x", count: 64 - #"{"text":""}"#.utf8.count))
        var times: [Int64] = []
        times.reserveCapacity(count)
        for _ in 0..<count {
            let start = measure_now()
            let answer = try await client.request(ping)
            times.append(measure_now() - start)
            guard answer == ping.text else { throw Options.Wrong(description: "an answer that was not asked for") }
        }
        return times
    }

    // MARK: One way

    private static func throughput(_ client: MessageClient, _ options: Options) async throws -> [Figure] {
        let attachments = Attachments(blob: Blob([UInt8](repeating: 7, count: chunkByteCount)))
        var best = 0.0
        for _ in 0..<options.repetitions {
            let before = try await client.request(ChunkTally())
            let start = measure_now()
            for _ in 0..<chunkCount { try await client.send(Chunk(), attachments: attachments) }
            let after = try await client.request(ChunkTally(), timeout: .seconds(60))
            guard after - before == chunkCount * chunkByteCount else {
                throw Options.Wrong(description: "\(after - before) bytes arrived")
            }
            best = max(best, Double(after - before) / Double(measure_now() - start))
        }
        return [Figure("messaging: frames of 64 KiB, one way", best, "GB/s", .atLeast(1.5))]
    }

    private static func blobs(_ client: MessageClient) async throws -> [Figure] {
        let memory = try SealedMemory(count: blobByteCount) { bytes in
            bytes.initializeMemory(as: UInt8.self, repeating: 1)
        }
        let attachments = Attachments(blob: Blob(memory))
        let times = try await withTaskExecutorPreference(MessagingExecutor.shared) {
            var times: [Int64] = []
            for _ in 0..<blobCount {
                times.append(try await client.request(Landing(sentAt: measure_now()), attachments: attachments))
            }
            return times
        }
        let (p50, p99) = (percentile(times, 0.5) / 1000, percentile(times, 0.99) / 1000)
        return [
            Figure(
                "messaging: 16 MiB of sealed memory, sent until read, p50",
                p50,
                "ms",
                .atMost(0.1),
                note: "p99 \(Report.number(p99)) ms"
            )
        ]
    }

    // MARK: Many

    private static func manyClients(_ group: GroupContainer, _ peer: CInt) async throws -> [Figure] {
        let announcements = Mutex([Int](repeating: 0, count: clientCount))
        var clients: [MessageClient] = []
        for index in 0..<clientCount {
            var handlers = MessageHandlers()
            handlers.on(Announcement.self) { message, _ in
                announcements.withLock { $0[index] = $0[index] == message.index ? message.index + 1 : .min }
            }
            clients.append(
                try await MessageClient.connect(to: MessagingPeer.serverName, in: group, handlers: handlers)
            )
        }
        let idle = measure_memory(peer, "VmRSS")
        let start = measure_now()
        try await talk(clients, round: 0)
        let seconds = Double(measure_now() - start) / 1e9
        let first = measure_memory(peer, "VmHWM")
        for round in 1..<rounds / 2 { try await talk(clients, round: round) }
        let half = measure_memory(peer, "VmRSS")
        for round in rounds / 2..<rounds { try await talk(clients, round: round) }
        let last = measure_memory(peer, "VmRSS")
        // What was announced last may be behind an answer on another connection, but not behind the next one on its own.
        for client in clients { _ = try await client.request(NumberedTally()) }
        let expected = rounds * clientCount * messagesPerClient / MessagingPeer.announcementInterval
        let heard = announcements.withLock { $0 }
        guard heard.allSatisfy({ $0 == expected }) else {
            throw Options.Wrong(description: "announcements were lost, doubled or out of order: \(heard)")
        }
        for client in clients { await client.close() }
        let note = "\(clientCount) clients, \(messagesPerClient) messages each, \(expected / rounds) broadcasts to all"
        return [
            Figure("messaging: many clients, each message once and in order", seconds, "s", note: note),
            Figure("messaging: many clients, server's peak above idle", Double(first - idle) / 1024, "MiB"),
            Figure(
                "messaging: many clients, server's memory after twice as much",
                Double(last - half) / 1024,
                "MiB more",
                .atMost(4),
                note: "\(rounds / 2) such rounds, then as many again"
            ),
        ]
    }

    /// Has each client send its messages of a round, and asks whether all have come in order.
    private static func talk(_ clients: [MessageClient], round: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for client in clients {
                tasks.addTask {
                    let begin = round * messagesPerClient
                    for index in begin..<begin + messagesPerClient { try await client.send(Numbered(index: index)) }
                    let count = try await client.request(NumberedTally(), timeout: .seconds(60))
                    guard count == begin + messagesPerClient else {
                        throw Options.Wrong(description: "messages were lost, doubled or out of order: \(count)")
                    }
                }
            }
            try await tasks.waitForAll()
        }
    }

    /// In microseconds.
    private static func percentile(_ times: [Int64], _ fraction: Double) -> Double {
        let sorted = times.sorted()
        return Double(sorted[min(Int(Double(sorted.count) * fraction), sorted.count - 1)]) / 1000
    }
}
