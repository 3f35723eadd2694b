import Foundation
import Testing

@testable import SharedCore

@Suite struct StoreContentTests {
    let directory: TemporaryDirectory
    let store: SharedStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try SharedStore(group: directory.group)
    }

    @Test func `a room is known once`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        let invitation = RoomInvitation(address: "sip:room@x", subject: "Friends", invitedBy: "sip:a@x")
        #expect(try await store.insert(invitation, as: epoch))
        #expect(try await !store.insert(RoomInvitation(address: "sip:room@x", invitedBy: "sip:b@x"), as: epoch))
        #expect(try await store.insert(RoomInvitation(address: "sip:other@x", invitedBy: "sip:b@x"), as: epoch))
        #expect(try await store.room(address: "sip:room@x")?.invitation == invitation)
        #expect(try await store.rooms().map(\.invitation.address) == ["sip:room@x", "sip:other@x"])
        try await store.removeRoom(address: "sip:room@x", as: epoch)
        #expect(try await store.room(address: "sip:room@x") == nil)
    }

    @Test func `the call log keeps the latest calls`() async throws {
        var limits = StoreLimits()
        limits.callCount = 3
        let store = try SharedStore(group: directory.group, limits: limits)
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        let start = Date(timeIntervalSince1970: 1_700_000_000)
        for number in 0..<5 {
            let call = CallRecord(callID: "\(number)", remote: "sip:a@x", direction: .incoming, startedAt: start)
            try await store.record(call, as: epoch)
        }
        let ended = CallRecord(
            callID: "3",
            remote: "sip:b@x",
            direction: .outgoing,
            startedAt: start,
            duration: .milliseconds(1500)
        )
        try await store.record(ended, as: epoch)
        let calls = try await store.calls()
        #expect(calls.map(\.callID) == ["4", "3", "2"])
        #expect(calls[1] == ended)
    }

    @Test func `settings and accounts count their changes`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        let other = try SharedStore(group: directory.group)
        #expect(try await other.settingsVersion() == 0)
        try await store.set(["a": 1], for: "numbers", as: epoch)
        #expect(try await other.settingsVersion() == 1)
        try await store.set(["a": 1], for: "numbers", as: epoch)
        #expect(try await other.settingsVersion() == 1)
        try await store.set(["a": 2], for: "numbers", as: epoch)
        #expect(try await other.settingsVersion() == 2)
        #expect(try await other.setting("numbers", as: [String: Int].self) == ["a": 2])
        #expect(try await other.setting("none", as: Int.self) == nil)
        let account = StoredAccount(address: "sip:a@x", parameters: ["proxy": "x", "realm": "é\u{0}"])
        try await store.setAccount(account, as: epoch)
        try await store.setAccount(account, as: epoch)
        #expect(try await other.settingsVersion() == 3)
        #expect(try await other.accounts() == [account])
        try await store.removeAccount(address: "sip:b@x", as: epoch)
        #expect(try await other.settingsVersion() == 3)
        try await store.removeAccount(address: "sip:a@x", as: epoch)
        try await store.removeSetting("numbers", as: epoch)
        #expect(try await other.settingsVersion() == 5)
        #expect(try await other.accounts().isEmpty)
    }

    @Test func `a setting of another type is an error, not a value`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        try await store.set("text", for: "key", as: epoch)
        let error = await #expect(throws: StoreError.self) { try await store.setting("key", as: Int.self) }
        #expect(error?.code == .badValue)
        let unencodable = await #expect(throws: StoreError.self) {
            try await store.set(Double.nan, for: "key", as: epoch)
        }
        #expect(unencodable?.code == .badValue)
        #expect(try await store.setting("key", as: String.self) == "text")
    }

    @Test func `actions are carried out in turn, and one that fails does not hold up the others`() async throws {
        let first = MessageAction(id: "1", callID: "a", kind: .reply("Yes\u{0}!"))
        let second = MessageAction(id: "2", callID: "a", kind: .markAsSeen)
        #expect(try await store.enqueue(first))
        #expect(try await store.enqueue(second))
        #expect(try await !store.enqueue(MessageAction(id: "1", callID: "b", kind: .markAsSeen)))
        let epoch = try await store.beginEpoch(role: .executor, process: .current)
        #expect(try await store.nextAction(as: epoch) == first)
        // It failed.
        #expect(try await store.nextAction(as: epoch) == second)
        try await store.finish(second, as: epoch)
        #expect(try await store.actions() == [first])
        #expect(try await store.nextAction(as: epoch) == first)
        try await store.finish(first, as: epoch)
        #expect(try await store.nextAction(as: epoch) == nil)
    }
}
