import GRDB
import Testing

@testable import SharedCore

@Suite struct MessageTests {
    let directory: TemporaryDirectory
    let store: SharedStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try SharedStore(group: directory.group)
    }

    @Test func `a message is kept until it is acknowledged`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        let message = IncomingMessage(
            callID: "a",
            messageID: "m",
            room: "sip:room@x",
            sender: "sip:a@x",
            text: "Grüß\u{0}e 👋"
        )
        #expect(try await store.insert(message, as: epoch))
        #expect(try await store.pending().map(\.message) == [message])
        #expect(try await store.counts() == MessageCounts(pending: 1, acknowledged: 0))
        let claim = try #require(try await store.claim(callID: "a", by: .current))
        #expect(claim.message == message && !claim.isRepeated && claim.claimant == .current)
        #expect(try await store.message(callID: "a")?.status == .claimed(.current))
        #expect(try await store.pending().count == 1)
        #expect(try await store.acknowledge(callID: "a", by: .current))
        #expect(try await store.pending().isEmpty)
        #expect(try await store.counts() == MessageCounts(pending: 0, acknowledged: 1))
        #expect(try await store.message(callID: "a")?.status == .acknowledged)
        #expect(try await store.message(callID: "a")?.message.text == "")
        #expect(try await store.message(callID: "b") == nil)
    }

    @Test func `messages come back in the order in which they came`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        let names = ["c", "a", "b", "d"]
        for name in names { _ = try await store.insert(.sample(name), as: epoch) }
        try store.close()
        let again = try SharedStore(group: directory.group)
        #expect(try await again.pending().map(\.message.callID) == names)
    }

    @Test func `a repeat is known by its call-id or its message-id, also after its acknowledgement`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        #expect(try await store.insert(.sample("a", messageID: "m"), as: epoch))
        #expect(try await !store.insert(.sample("a", messageID: "n", text: "other"), as: epoch))
        #expect(try await !store.insert(.sample("b", messageID: "m"), as: epoch))
        _ = try await store.claim(callID: "a", by: .current)
        #expect(try await store.acknowledge(callID: "a", by: .current))
        #expect(try await !store.insert(.sample("a", messageID: "o"), as: epoch))
        #expect(try await !store.insert(.sample("b", messageID: "m"), as: epoch))
        #expect(try await store.counts() == MessageCounts(pending: 0, acknowledged: 1))
        // Without a message-id nothing is alike.
        #expect(try await store.insert(.sample("c"), as: epoch))
        #expect(try await store.insert(.sample("d"), as: epoch))
    }

    @Test func `identifiers that differ behind a NUL differ`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        #expect(try await store.insert(.sample("a\u{0}1"), as: epoch))
        #expect(try await store.insert(.sample("a\u{0}2"), as: epoch))
        #expect(try await store.claim(callID: "a", by: .current) == nil)
        #expect(try await store.claim(callID: "a\u{0}2", by: .current)?.message.text == "text of a\u{0}2")
    }

    @Test func `of many who claim at once exactly one wins`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        let stores = [store, try SharedStore(group: directory.group)]
        for round in 0..<10 {
            let callID = "race \(round)"
            _ = try await store.insert(.sample(callID), as: epoch)
            let claims = try await withThrowingTaskGroup(of: ClaimedMessage?.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let claimant = number.isMultiple(of: 3) ? ProcessIdentity.parent : .current
                        return try await stores[number % 2].claim(callID: callID, by: claimant)
                    }
                }
                return try await group.reduce(into: [ClaimedMessage]()) { if let claim = $1 { $0.append(claim) } }
            }
            #expect(claims.count == 1)
            #expect(claims.first?.isRepeated == false)
        }
    }

    @Test func `a message given back unshown is as if it had never been claimed`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        _ = try await store.insert(.sample("a"), as: epoch)
        let claim = try #require(try await store.claim(callID: "a", by: .current))
        #expect(try await store.release(claim))
        #expect(try await !store.release(claim))
        #expect(try await store.claim(callID: "a", by: .parent)?.isRepeated == false)
        #expect(try await !store.release(claim))
        #expect(try await store.message(callID: "a")?.status == .claimed(.parent))
    }

    @Test func `a repeated message given back stays repeated`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        _ = try await store.insert(.sample("a"), as: epoch)
        _ = try await store.claim(callID: "a", by: .dead)
        let claim = try #require(try await store.claim(callID: "a", by: .current))
        try await store.release(claim)
        #expect(try await store.claim(callID: "a", by: .current)?.isRepeated == true)
    }

    @Test func `only who claimed acknowledges, and only once`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        _ = try await store.insert(.sample("a"), as: epoch)
        #expect(try await !store.acknowledge(callID: "a", by: .current))
        _ = try await store.claim(callID: "a", by: .current)
        #expect(try await !store.acknowledge(callID: "a", by: .parent))
        #expect(try await store.acknowledge(callID: "a", by: .current))
        #expect(try await !store.acknowledge(callID: "a", by: .current))
        #expect(try await store.claim(callID: "a", by: .current) == nil)
        #expect(try await store.counts() == MessageCounts(pending: 0, acknowledged: 1))
    }

    @Test func `acknowledged messages are remembered up to a number`() async throws {
        var limits = StoreLimits()
        limits.acknowledgedCount = 3
        let store = try SharedStore(group: directory.group, limits: limits)
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        for number in 0..<10 {
            _ = try await store.insert(.sample("\(number)"), as: epoch)
            _ = try await store.claim(callID: "\(number)", by: .current)
            _ = try await store.acknowledge(callID: "\(number)", by: .current)
        }
        for number in 0..<10 {
            #expect(try await (store.message(callID: "\(number)") != nil) == (number >= 7))
        }
        #expect(try await store.counts().acknowledged == 10)
    }

    @Test func `acknowledged messages are remembered for a time`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        for name in ["old", "young", "now"] {
            _ = try await store.insert(.sample(name), as: epoch)
            _ = try await store.claim(callID: name, by: .current)
            if name == "now" {
                let week = store.limits.acknowledgedAge.components.seconds
                try await store.write(before: .beforeInsert, after: .afterInsert) { db in
                    for (name, age) in [("old", week + 5), ("young", week - 60)] {
                        try db.execute(
                            sql: "UPDATE message SET acknowledgedAt = acknowledgedAt - ? WHERE callID = ?",
                            arguments: [age, name.bytes]
                        )
                    }
                }
            }
            _ = try await store.acknowledge(callID: name, by: .current)
        }
        #expect(try await store.message(callID: "old") == nil)
        #expect(try await store.message(callID: "young")?.status == .acknowledged)
    }

    @Test func `a restart of the machine frees what its processes held`() async throws {
        let epoch = try await store.beginEpoch(role: .executor, process: .current)
        _ = try await store.insert(.sample("a"), as: epoch)
        _ = try await store.insert(.sample("b"), as: epoch)
        _ = try await store.claim(callID: "a", by: .current)
        _ = try await store.addWaiter(for: .message(callID: "c"), by: .current)
        try await store.write(before: .beforeInsert, after: .afterInsert) { db in
            try db.execute(sql: "UPDATE meta SET boot = 'an earlier one'")
        }
        let again = try SharedStore(group: directory.group)
        // Processes of this boot have the same numbers, and are others.
        #expect(try await again.status().state == .free)
        #expect(try await again.waiters().isEmpty)
        #expect(try await again.claim(callID: "a", by: .parent)?.isRepeated == true)
        #expect(try await again.claim(callID: "b", by: .parent)?.isRepeated == false)
    }

    @Test func `a jump of the wall clock frees nothing and forgets nothing`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        for name in ["a", "b"] {
            _ = try await store.insert(.sample(name), as: epoch)
            _ = try await store.claim(callID: name, by: .current)
        }
        _ = try await store.acknowledge(callID: "b", by: .current)
        for jump in [-1e9, 1e9] {
            try await store.write(before: .beforeInsert, after: .afterInsert) { db in
                try db.execute(sql: "UPDATE message SET receivedAt = receivedAt + ?", arguments: [jump])
                try db.execute(sql: "UPDATE state SET since = since + ?", arguments: [jump])
            }
            #expect(try await store.claim(callID: "a", by: .parent) == nil)
            #expect(try await !store.insert(.sample("b"), as: epoch))
        }
    }
}
