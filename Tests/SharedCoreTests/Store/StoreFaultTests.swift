import Foundation
import GRDB
import Glibc
import LocalMessaging
import TestSupport
import Testing

@testable import SharedCore

@Suite struct StoreFaultTests {
    let directory: TemporaryDirectory
    var database: String { directory.path + "/database/shared.sqlite" }

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Messages of which some are longer than a page.
    static let messages = (0..<40).map { number in
        IncomingMessage.sample("call \(number)", text: String(repeating: "text \(number) ", count: 1 + number * 40))
    }

    /// The bytes of a database that holds `messages`, closed in order.
    private func bytesOfDatabase() async throws -> Data {
        let store = try SharedStore(group: directory.group)
        let epoch = try await store.beginEpoch()
        for message in Self.messages { _ = try await store.insert(message, as: epoch) }
        try store.close()
        return try Data(contentsOf: URL(fileURLWithPath: database))
    }

    /// A group directory with nothing but this database.
    private func group(_ bytes: Data, log: Data? = nil) throws -> TemporaryDirectory {
        let group = try TemporaryDirectory()
        mkdir(group.path + "/database", 0o700)
        try bytes.write(to: URL(fileURLWithPath: group.path + "/database/shared.sqlite"))
        try log?.write(to: URL(fileURLWithPath: group.path + "/database/shared.sqlite-wal"))
        return group
    }

    @Test func `a database cut at any byte is refused as it is, or has lost nothing`() async throws {
        let bytes = try await bytesOfDatabase()
        var generator = SplitMix64(seed: 1)
        var cuts =
            Array(stride(from: 0, to: bytes.count, by: thorough(1, quick: 5) * 4096)) + [
                1, 16, 99, 100, 101, 511, 512, 4095, 4097,
            ]
        cuts += (0..<thorough(30, quick: 5)).map { _ in Int.random(in: 0..<bytes.count, using: &generator) }
        for cut in cuts {
            let group = try group(bytes.prefix(cut))
            do {
                let store = try SharedStore(group: group.group)
                let kept = try await store.pending().map(\.message)
                #expect(kept == Self.messages, "cut at \(cut)")
            } catch {
                #expect(error.code == .damaged, "cut at \(cut): \(error)")
                let left = try Data(contentsOf: URL(fileURLWithPath: group.path + "/database/shared.sqlite"))
                #expect(left == bytes.prefix(cut), "cut at \(cut)")
            }
        }
    }

    @Test func `a log cut at any byte loses whole commits from its end, and never mixes them`() async throws {
        let store = try SharedStore(group: directory.group)
        let epoch = try await store.beginEpoch()
        for message in Self.messages { _ = try await store.insert(message, as: epoch) }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: database))
        let log = try Data(contentsOf: URL(fileURLWithPath: database + "-wal"))
        var generator = SplitMix64(seed: 2)
        let cuts =
            [0, 1, 31, 32, 33]
            + (0..<thorough(30, quick: 8)).map { _ in Int.random(in: 0..<log.count, using: &generator) }
        for cut in cuts {
            let group = try group(bytes, log: log.prefix(cut))
            let kept = try await SharedStore(group: group.group).pending().map(\.message)
            #expect(kept == Array(Self.messages.prefix(kept.count)), "cut at \(cut)")
        }
        let whole = try group(bytes, log: log)
        #expect(try await SharedStore(group: whole.group).pending().map(\.message) == Self.messages)
    }

    @Test func `a database that was cut while its log is in use is refused, or has lost nothing`() async throws {
        let store = try SharedStore(group: directory.group)
        let epoch = try await store.beginEpoch()
        for message in Self.messages.prefix(30) { _ = try await store.insert(message, as: epoch) }
        try await DatabaseQueue(path: database).writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        for message in Self.messages.dropFirst(30) { _ = try await store.insert(message, as: epoch) }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: database))
        let log = try Data(contentsOf: URL(fileURLWithPath: database + "-wal"))
        var refused = 0
        for cut in Array(stride(from: 0, through: bytes.count, by: thorough(1, quick: 5) * 4096))
            + (0..<thorough(20, quick: 5)).map({ bytes.count - 1 - $0 * 997 })
        {
            let group = try group(bytes.prefix(cut), log: log)
            do {
                let kept = try await SharedStore(group: group.group).pending().map(\.message)
                #expect(kept == Self.messages, "cut at \(cut)")
            } catch {
                refused += 1
                #expect(error.code == .damaged, "cut at \(cut): \(error)")
            }
        }
        #expect(refused > 0)
    }

    @Test func `a database with bytes overwritten never ends the process`() async throws {
        let bytes = try await bytesOfDatabase()
        var generator = SplitMix64(seed: 3)
        for _ in 0..<thorough(200, quick: 30) {
            var broken = bytes
            let start = Int.random(in: 0..<bytes.count, using: &generator)
            for index in start..<min(start + Int.random(in: 1...600, using: &generator), bytes.count) {
                broken[index] = UInt8.random(in: 0...255, using: &generator)
            }
            let group = try group(broken)
            do {
                let store = try SharedStore(group: group.group)
                #expect(try await store.pending().count <= Self.messages.count)
                _ = try await store.status()
                _ = try await store.actions()
                _ = try await store.accounts()
                _ = try await store.claim(callID: "call 7", by: .current)
            } catch {
                let isExpected =
                    switch error.code {
                    case .damaged, .foreign: true
                    default: false
                    }
                #expect(isExpected, "\(error)")
            }
        }
    }

    @Test(arguments: [1, 100, 4096, 50_000])
    func `a file of random bytes is refused`(count: Int) throws {
        var generator = SplitMix64(seed: UInt64(count))
        let group = try group(Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }))
        let error = #expect(throws: StoreError.self) { try SharedStore(group: group.group) }
        #expect(error?.code == .damaged)
    }

    @Test func `an empty file is a damaged store, not a new one`() throws {
        let group = try group(Data())
        let error = #expect(throws: StoreError.self) { try SharedStore(group: group.group) }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("0 bytes") == true)
    }

    @Test func `a log without its database is a damaged store, not a new one`() async throws {
        let store = try SharedStore(group: directory.group)
        _ = try await store.beginEpoch()
        let group = try TemporaryDirectory()
        mkdir(group.path + "/database", 0o700)
        try FileManager.default.copyItem(atPath: database + "-wal", toPath: group.path + "/database/shared.sqlite-wal")
        let error = #expect(throws: StoreError.self) { try SharedStore(group: group.group) }
        #expect(error?.code == .damaged)
    }

    @Test func `a table that is missing is damage`() async throws {
        try SharedStore(group: directory.group).close()
        try await DatabaseQueue(path: database).write { try $0.execute(sql: "DROP TABLE message") }
        let store = try SharedStore(group: directory.group)
        let error = await #expect(throws: StoreError.self) { try await store.pending() }
        #expect(error?.code == .damaged)
    }

    @Test func `a database of a later version is refused and not touched`() throws {
        try SharedStore(group: directory.group).close()
        try DatabaseQueue(path: database).write { try $0.execute(sql: "PRAGMA user_version = 99") }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: database))
        let error = #expect(throws: StoreError.self) { try SharedStore(group: directory.group) }
        #expect(error?.code == .foreign(version: 99))
        #expect(try Data(contentsOf: URL(fileURLWithPath: database)) == bytes)
    }

    @Test func `a database of another program is refused and not touched`() throws {
        mkdir(directory.path + "/database", 0o700)
        try DatabaseQueue(path: database).write { try $0.execute(sql: "CREATE TABLE theirs (id INTEGER)") }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: database))
        let error = #expect(throws: StoreError.self) { try SharedStore(group: directory.group) }
        #expect(error?.code == .foreign(version: 0))
        #expect(try Data(contentsOf: URL(fileURLWithPath: database)) == bytes)
    }

    @Test func `a database of an earlier version is brought up to date`() async throws {
        mkdir(directory.path + "/database", 0o700)
        try await DatabaseQueue(path: database).writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA application_id = \(Schema.applicationID)")
        }
        let store = try SharedStore(group: directory.group)
        #expect(try await store.beginEpoch() == Epoch(rawValue: 1))
    }

    @Test func `messages of the first version stay, and their repeats are known`() async throws {
        mkdir(directory.path + "/database", 0o700)
        let queue = try DatabaseQueue(path: database)
        try await queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA application_id = \(Schema.applicationID)")
        }
        try Schema.migrator.migrate(queue, upTo: "1")
        try await queue.write { db in
            for (callID, messageID) in [("a", "m"), ("b", nil)] as [(String, String?)] {
                try db.execute(
                    sql: "INSERT INTO message (callID, messageID, sender, text, receivedAt) VALUES (?, ?, ?, ?, 1.0)",
                    arguments: [
                        callID.bytes, messageID?.bytes, "sip:sender@example.org".bytes, "text of \(callID)".bytes,
                    ]
                )
            }
        }
        // One that was shown, of which neither text nor sender is known any more.
        try await queue.write { db in
            try db.execute(
                sql: """
                    INSERT INTO message (callID, messageID, sender, text, receivedAt, acknowledgedAt, acknowledgedOrder)
                    VALUES (?, ?, x'', x'', 1.0, 1, 1)
                    """,
                arguments: ["shown".bytes, "s".bytes]
            )
        }
        try queue.close()
        let store = try SharedStore(group: directory.group)
        let kept = [IncomingMessage.sample("a", messageID: "m"), .sample("b")]
        #expect(try await store.pending().map(\.message) == kept)
        let epoch = try await store.beginEpoch()
        for message in kept + [.sample("shown", messageID: "s")] {
            #expect(try await !store.insert(message, as: epoch))
        }
        #expect(try await store.insert(.sample("c", messageID: "n"), as: epoch))
        let claim = try #require(try await store.claim(callID: "a", by: .current))
        #expect(try await store.acknowledge(claim))
    }

    @Test func `a database that stays locked is an error after the time-out, and works afterwards`() async throws {
        let store = try SharedStore(group: directory.group, busyTimeout: .milliseconds(50))
        let epoch = try await store.beginEpoch()
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: database, configuration: configuration)
        try other.inDatabase { try $0.beginTransaction(.immediate) }
        let error = await #expect(throws: StoreError.self) { try await store.insert(.sample("a"), as: epoch) }
        #expect(error?.code == .busy)
        // Who only reads is not held up.
        #expect(try await store.pending().isEmpty)
        try other.inDatabase { try $0.rollback() }
        #expect(try await store.insert(.sample("a"), as: epoch))
    }

    @Test func `a store that is full says so, and keeps what it has`() async throws {
        let full = try SharedStore(group: directory.group) { try $0.execute(sql: "PRAGMA max_page_count = 60") }
        let epoch = try await full.beginEpoch()
        var kept: [IncomingMessage] = []
        var failure: StoreError?
        while failure == nil, kept.count < 1000 {
            let message = IncomingMessage.sample("\(kept.count)", text: String(repeating: "x", count: 5000))
            do throws(StoreError) {
                _ = try await full.insert(message, as: epoch)
                kept.append(message)
            } catch {
                failure = error
            }
        }
        #expect(failure?.code == .full)
        #expect(try await full.pending().map(\.message) == kept)
        let roomy = try SharedStore(group: directory.group)
        #expect(try await roomy.insert(.sample("later"), as: epoch))
        #expect(try await full.pending().count == kept.count + 1)
    }

    @Test(.enabled(if: Mount.isPossible, "needs the right to mount"))
    func `a disk that is full is named, and the store goes on when there is room`() async throws {
        let mount = try Mount(directory.path, options: "size=1m")
        // Where there is no room for all of a new store, none is made.
        let ballast = URL(fileURLWithPath: directory.path + "/ballast")
        try Data(count: 700_000).write(to: ballast)
        let error = #expect(throws: StoreError.self) { try SharedStore(group: directory.group) }
        #expect(error?.code == .full)
        try Data(count: 640_000).write(to: ballast)
        let store = try SharedStore(group: directory.group)
        let epoch = try await store.beginEpoch()
        var kept: [IncomingMessage] = []
        var failure: StoreError?
        while failure == nil, kept.count < 1000 {
            let message = IncomingMessage.sample("\(kept.count)", text: String(repeating: "x", count: 9000))
            do throws(StoreError) {
                _ = try await store.insert(message, as: epoch)
                kept.append(message)
            } catch {
                failure = error
            }
        }
        #expect(failure?.code == .full)
        #expect(try await store.pending().map(\.message) == kept)
        unlink(directory.path + "/ballast")
        #expect(try await store.insert(.sample("later"), as: epoch))
        #expect(try await store.pending().count == kept.count + 1)
        try store.close()
        mount.end()
    }

    @Test(.enabled(if: Mount.isPossible || geteuid() != 0, "needs the right to mount"))
    func `a read-only group is refused with its name`() async throws {
        let mount = Mount.isPossible ? try Mount(directory.path, options: "size=1m") : nil
        let store = try SharedStore(group: directory.group)
        _ = try await store.beginEpoch()
        try store.close()
        if let mount { try mount.makeReadOnly() } else { chmod(directory.path + "/database", 0o500) }
        let error = #expect(throws: StoreError.self) { try SharedStore(group: directory.group) }
        #expect(error?.code == .readOnly)
        #expect(error?.message.contains(database) == true)
        chmod(directory.path + "/database", 0o700)
        mount?.end()
    }

    @Test func `a group in which nothing can be created is refused`() throws {
        // Nothing keeps root from creating files but a file system that has none.
        let path = geteuid() == 0 ? "/sys" : directory.path
        if path != "/sys" { chmod(path, 0o500) }
        defer { if path != "/sys" { chmod(path, 0o700) } }
        let error = #expect(throws: StoreError.self) { try SharedStore(group: GroupContainer(directory: path)) }
        #expect(error?.code == .readOnly)
    }

    @Test func `a link in place of the directory or of the database is refused`() throws {
        let elsewhere = try TemporaryDirectory()
        try SharedStore(group: elsewhere.group).close()
        symlink(elsewhere.path + "/database", directory.path + "/database")
        #expect(throws: StoreError.self) { try SharedStore(group: directory.group) }
        unlink(directory.path + "/database")
        mkdir(directory.path + "/database", 0o700)
        symlink(elsewhere.path + "/database/shared.sqlite", database)
        #expect(throws: StoreError.self) { try SharedStore(group: directory.group) }
    }

    @Test func `many that open a new group at once share one store`() async throws {
        let group = directory.group
        let epochs = try await withThrowingTaskGroup(of: Epoch.self) { tasks in
            for _ in 0..<8 {
                tasks.addTask {
                    try await SharedStore(group: group).beginEpoch()
                }
            }
            return try await tasks.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(epochs.map(\.rawValue).sorted() == Array(1...8))
    }

    @Test func `what a process left that died while it created the store is removed`() throws {
        mkdir(directory.path + "/database", 0o700)
        let dead = ProcessIdentity.dead
        let live = "shared.sqlite.\(ProcessIdentity.parent.pid).\(ProcessIdentity.parent.startTime).1"
        for name in [
            "shared.sqlite.\(dead.pid).\(dead.startTime).1", "shared.sqlite.\(dead.pid).\(dead.startTime).1-wal", live,
        ] {
            try directory.write("draft", to: "database/\(name)")
        }
        try SharedStore(group: directory.group).close()
        #expect(try directory.names(in: "database") == ["shared.sqlite", live])
    }

    @Test(arguments: [(0x6969, "NFS"), (0xFF53_4D42, "CIFS"), (0xEF53, nil), (0x0102_1994, nil)] as [(Int, String?)])
    func `network file systems are known by their numbers`(type: Int, name: String?) {
        #expect(DatabaseFile.networkFileSystem(type) == name)
    }
}

/// A small file system in memory over a directory; needs root.
final class Mount {
    private let path: String
    private var isMounted = true

    init(_ path: String, options: String) throws {
        self.path = path
        guard mount("tmpfs", path, "tmpfs", 0, options) == 0 else { throw POSIXError(.EPERM) }
    }

    deinit {
        end()
    }

    func makeReadOnly() throws {
        guard mount("tmpfs", path, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0 else {
            throw POSIXError(.EBUSY)
        }
    }

    func end() {
        if isMounted { umount2(path, CInt(MNT_DETACH)) }
        isMounted = false
    }

    static let isPossible: Bool = {
        guard let directory = try? TemporaryDirectory() else { return false }
        return (try? Mount(directory.path, options: "size=64k")) != nil
    }()
}
