import Foundation
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
        let epoch = try await store.beginEpoch()
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
        let epoch = try await store.beginEpoch()
        let names = ["c", "a", "b", "d"]
        for name in names { _ = try await store.insert(.sample(name), as: epoch) }
        try store.close()
        let again = try SharedStore(group: directory.group)
        #expect(try await again.pending().map(\.message.callID) == names)
    }

    @Test func `a repeat is known by its message-id, else its call-id, also after its acknowledgement`() async throws {
        let epoch = try await store.beginEpoch()
        #expect(try await store.insert(.sample("a", messageID: "m"), as: epoch))
        #expect(try await !store.insert(.sample("b", messageID: "m"), as: epoch))
        _ = try await store.claim(callID: "a", by: .current)
        #expect(try await store.acknowledge(callID: "a", by: .current))
        #expect(try await !store.insert(.sample("a", messageID: "m"), as: epoch))
        #expect(try await !store.insert(.sample("b", messageID: "m"), as: epoch))
        #expect(try await store.counts() == MessageCounts(pending: 0, acknowledged: 1))
        // Nobody makes another's message a repeat by its identifier.
        let other = IncomingMessage(callID: "c", messageID: "m", sender: "sip:mallory@x", text: "")
        #expect(try await store.insert(other, as: epoch))
        // Without a message-id the call-id tells them apart.
        #expect(try await store.insert(.sample("d"), as: epoch))
        #expect(try await store.insert(.sample("e"), as: epoch))
        #expect(try await !store.insert(.sample("e"), as: epoch))
    }

    @Test func `messages of one call-id are told apart, and each is shown once`() async throws {
        let epoch = try await store.beginEpoch()
        for number in 1...3 {
            var message = IncomingMessage.sample("a", text: "\(number)")
            message.distinction = "\(number)"
            #expect(try await store.insert(message, as: epoch))
            #expect(try await !store.insert(message, as: epoch))
        }
        let first = try #require(try await store.claim(callID: "a", by: .current))
        let second = try #require(try await store.claim(callID: "a", by: .current))
        #expect(first.message.text == "1" && second.message.text == "2")
        #expect(try await store.acknowledge(second))
        #expect(try await store.release(first))
        #expect(try await store.pending().map(\.message.text) == ["1", "3"])
        #expect(try await store.claim(callID: "a", by: .parent)?.message.text == "1")
        #expect(try await store.claim(callID: "a", by: .parent)?.message.text == "3")
        #expect(try await store.claim(callID: "a", by: .parent) == nil)
        #expect(try await !store.acknowledge(second))
    }

    @Test func `a call-id is that of its first sender, also when another uses it`() async throws {
        let epoch = try await store.beginEpoch()
        _ = try await store.insert(.sample("a", text: "first"), as: epoch)
        _ = try await store.claim(callID: "a", by: .current)
        #expect(try await store.acknowledge(callID: "a", by: .current))
        var other = IncomingMessage(callID: "a", messageID: "m", sender: "sip:mallory@x", text: "no")
        other.wantedReceipts = [.displayed]
        #expect(try await store.insert(other, as: epoch))
        // It is kept, and neither shown nor answered in the place of the first one.
        #expect(try await store.pending().map(\.message.sender) == ["sip:mallory@x"])
        #expect(try await store.claim(callID: "a", by: .current) == nil)
        #expect(try await store.message(callID: "a")?.message.sender == "sip:sender@example.org")
        try await store.queueDisplayed(callID: "a", as: epoch)
        #expect(try await store.receipts().isEmpty)
    }

    @Test func `a receipt is queued with its message, once, and a later one takes its place`() async throws {
        let epoch = try await store.beginEpoch()
        var message = IncomingMessage(callID: "a", messageID: "m", sender: "sip:anna@x", text: "")
        (message.account, message.wantedReceipts) = ("sip:bob@x", [.delivered, .displayed])
        _ = try await store.insert(message, as: epoch)
        _ = try await store.insert(message, as: epoch)
        let delivered = try await store.receipts()
        #expect(delivered.map(\.kind) == [.delivered])
        #expect(delivered.first?.messageID == "m" && delivered.first?.recipient == "sip:anna@x")
        #expect(delivered.first?.account == "sip:bob@x")
        // What was read by its sender comes before what was only kept.
        try await store.queueDisplayed(callID: "a", as: epoch)
        try await store.queueDisplayed(callID: "a", as: epoch)
        let displayed = try await store.receipts()
        #expect(displayed.map(\.kind) == [.displayed])
        try await store.finish(displayed[0], as: epoch)
        #expect(try await store.receipts().isEmpty)

        // In a room the room is told; who asks for nothing, or gives no name, is told nothing.
        var inRoom = IncomingMessage(callID: "b", messageID: "n", room: "sip:room@x", sender: "sip:anna@x", text: "")
        inRoom.wantedReceipts = [.displayed]
        var nameless = IncomingMessage(callID: "c", sender: "sip:anna@x", text: "")
        nameless.wantedReceipts = [.delivered]
        for message in [inRoom, nameless] { _ = try await store.insert(message, as: epoch) }
        #expect(try await store.receipts().isEmpty)
        try await store.queueDisplayed(callID: "b", as: epoch)
        #expect(try await store.receipts().map(\.recipient) == ["sip:room@x"])
    }

    @Test func `a registration and what a service keeps are for the next core to read`() async throws {
        let epoch = try await store.beginEpoch()
        let first = StoredRegistration(address: "sip:a@x", state: "failed", reason: "403")
        let second = StoredRegistration(
            address: "sip:a@x",
            state: "ok",
            expiresAt: Date(timeIntervalSince1970: 9),
            isPushServed: true
        )
        for registration in [first, second] {
            try await store.set(registration, as: epoch)
            #expect(try await store.registrations() == [registration])
        }
        #expect(try await store.kept("nonces") == nil)
        for bytes in [[1, 0, 2], [UInt8]()] {
            try await store.keep(bytes, as: "nonces", epoch)
            #expect(try await store.kept("nonces") == bytes)
        }
        try await store.removeRegistration(address: "sip:a@x", as: epoch)
        #expect(try await store.registrations().isEmpty)
        _ = try await store.fence()
        await #expect(throws: StoreError.self) { try await store.keep([1], as: "nonces", epoch) }
    }

    @Test func `identifiers that differ behind a NUL differ`() async throws {
        let epoch = try await store.beginEpoch()
        #expect(try await store.insert(.sample("a\u{0}1"), as: epoch))
        #expect(try await store.insert(.sample("a\u{0}2"), as: epoch))
        #expect(try await store.claim(callID: "a", by: .current) == nil)
        #expect(try await store.claim(callID: "a\u{0}2", by: .current)?.message.text == "text of a\u{0}2")
    }

    @Test func `of many who claim at once exactly one wins`() async throws {
        let epoch = try await store.beginEpoch()
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
        let epoch = try await store.beginEpoch()
        _ = try await store.insert(.sample("a"), as: epoch)
        let claim = try #require(try await store.claim(callID: "a", by: .current))
        #expect(try await store.release(claim))
        #expect(try await !store.release(claim))
        #expect(try await store.claim(callID: "a", by: .parent)?.isRepeated == false)
        #expect(try await !store.release(claim))
        #expect(try await store.message(callID: "a")?.status == .claimed(.parent))
    }

    @Test func `a repeated message given back stays repeated`() async throws {
        let epoch = try await store.beginEpoch()
        _ = try await store.insert(.sample("a"), as: epoch)
        _ = try await store.claim(callID: "a", by: .dead)
        let claim = try #require(try await store.claim(callID: "a", by: .current))
        try await store.release(claim)
        #expect(try await store.claim(callID: "a", by: .current)?.isRepeated == true)
    }

    @Test func `only who claimed acknowledges, and only once`() async throws {
        let epoch = try await store.beginEpoch()
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
        let epoch = try await store.beginEpoch()
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
        let epoch = try await store.beginEpoch()
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
        let epoch = try await store.beginEpoch()
        _ = try await store.insert(.sample("a"), as: epoch)
        _ = try await store.insert(.sample("b"), as: epoch)
        _ = try await store.claim(callID: "a", by: .current)
        try await store.write(before: .beforeInsert, after: .afterInsert) { db in
            try db.execute(sql: "UPDATE meta SET boot = 'an earlier one'")
        }
        let again = try SharedStore(group: directory.group)
        // Processes of this boot have the same numbers, and are others.
        let error = await #expect(throws: StoreError.self) { try await again.endEpoch(epoch) }
        #expect(error?.code == .fenced(epoch: epoch, current: epoch))
        #expect(try await again.claim(callID: "a", by: .parent)?.isRepeated == true)
        #expect(try await again.claim(callID: "b", by: .parent)?.isRepeated == false)
    }

    @Test func `a jump of the wall clock frees nothing and forgets nothing`() async throws {
        let epoch = try await store.beginEpoch()
        for name in ["a", "b"] {
            _ = try await store.insert(.sample(name), as: epoch)
            _ = try await store.claim(callID: name, by: .current)
        }
        _ = try await store.acknowledge(callID: "b", by: .current)
        for jump in [-1e9, 1e9] {
            try await store.write(before: .beforeInsert, after: .afterInsert) { db in
                try db.execute(sql: "UPDATE message SET receivedAt = receivedAt + ?", arguments: [jump])
            }
            #expect(try await store.claim(callID: "a", by: .parent) == nil)
            #expect(try await !store.insert(.sample("b"), as: epoch))
        }
    }
}
