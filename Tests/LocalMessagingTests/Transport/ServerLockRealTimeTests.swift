import Foundation
import Glibc
import TestSupport
import Testing

@testable import LocalMessaging

@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine)
struct ServerLockRealTimeTests {
    let scratch: Scratch
    let group: GroupContainer

    init() throws {
        scratch = try Scratch()
        group = try GroupContainer(directory: scratch.path)
    }

    private func start(_ name: String) async throws -> MessageServer {
        try await MessageServer.start(name: name, in: group, handlers: .sums)
    }

    @Test func `a held lock says so, with its process; a released one does not`() throws {
        #expect(!ServerLock.state(of: "core", in: group).isLive)
        let lock = try ServerLock(of: "core", in: group)
        #expect(ServerLock.state(of: "core", in: group) == (true, getpid()))
        let error = #expect(throws: ServerError.self) { try ServerLock(of: "core", in: group) }
        #expect(error?.code == .taken)
        #expect(error?.message.contains("process \(getpid())") ?? false)
        lock.release()
        #expect(ServerLock.state(of: "core", in: group) == (false, nil))
        try ServerLock(of: "core", in: group).release()
    }

    @Test func `a link at the lock's name is not followed`() throws {
        try #require(symlink(scratch.path + "/elsewhere", scratch.path + "/.core.lock") == 0)
        #expect(throws: ServerError.self) { try ServerLock(of: "core", in: group) }
        #expect(!FileManager.default.fileExists(atPath: scratch.path + "/elsewhere"))
    }

    @Test func `of eight that start at once exactly one serves, every time`() async throws {
        for _ in 0..<100 {
            let servers = await withTaskGroup(of: Result<MessageServer, any Error>.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        do { return .success(try await start("core")) } catch { return .failure(error) }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            let winners = servers.compactMap { try? $0.get() }
            try #require(winners.count == 1)
            for case .failure(let error) in servers { try #require((error as? ServerError)?.code == .taken) }
            let client = try await MessageClient.connect(to: "core", in: group)
            try #require(try await client.request(Sum(terms: [1])) == 1)
            await client.close()
            await winners[0].stop()
        }
    }

    @Test func `of processes that start at once exactly one serves`() async throws {
        let peers = try (0..<6).map { _ in try PeerProcess("contend", scratch.path, "core") }
        for peer in peers { peer.say("go") }
        var answers: [String] = []
        for peer in peers { answers.append(await peer.line()) }
        #expect(answers.sorted() == Array(repeating: "taken", count: 5) + ["won"])
        let winner = try #require(zip(peers, answers).first { $0.1 == "won" }?.0)
        let client = try await MessageClient.connect(to: "core", in: group)
        #expect(client.server?.process == winner.processID)
        await client.close()
    }

    @Test func `a socket whose server was killed is replaced, every time`() async throws {
        for _ in 0..<5 {
            let peer = try PeerProcess("serve", scratch.path, "core")
            #expect(await peer.line() == "ready")
            #expect(ServerLock.state(of: "core", in: group) == (true, peer.processID))
            await peer.kill()
            #expect(FileManager.default.fileExists(atPath: scratch.path + "/core"), "the stale socket")
            #expect(!ServerLock.state(of: "core", in: group).isLive)
            await #expect(throws: Invalidation.noServer("core")) {
                try await MessageClient.connect(to: "core", in: group)
            }
        }
        let server = try await start("core")
        let client = try await MessageClient.connect(to: "core", in: group)
        #expect(try await client.request(Sum(terms: [4, 4])) == 8)
        await client.close()
        await server.stop()
    }

    @Test func `a stopped server takes its sockets away and leaves its name free`() async throws {
        let first = try await start("core")
        await first.stop()
        let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
        #expect(left == [".core.lock"])
        let second = try await start("core")
        // A second end of the first one must not touch what is the second's now.
        await first.stop()
        let client = try await MessageClient.connect(to: "core", in: group)
        #expect(try await client.request(Sum(terms: [1, 1])) == 2)
        await client.close()
        await second.stop()
    }

    @Test(arguments: ["core", ".core.files"])
    func `something else at the name is refused and left alone`(name: String) async throws {
        let path = scratch.path + "/" + name
        try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
        let error = await #expect(throws: ServerError.self) { try await start("core") }
        #expect(error?.code == .notASocket)
        #expect(error?.message.contains(path) ?? false)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
        try FileManager.default.removeItem(atPath: path)
        await (try await start("core")).stop()
    }

    @Test func `sockets are their owner's alone`() async throws {
        let server = try await start("core")
        for name in ["core", ".core.files", ".core.lock"] {
            var status = stat()
            try #require(stat(scratch.path + "/" + name, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
        }
        await server.stop()
    }

    @Test func `a group that is read-only is an error that says so`() async throws {
        try #require(chmod(scratch.path, 0o500) == 0)
        defer { chmod(scratch.path, 0o700) }
        let peer = try PeerProcess("contend", scratch.path, "core", mayWriteAnywhere: false)
        peer.say("go")
        #expect(await peer.line() == "system")
        #expect(await peer.line().contains("Permission denied"))
    }
}
