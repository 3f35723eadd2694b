import Foundation
import GRDB
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
        let epoch = try await store.beginEpoch()
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
        let epoch = try await store.beginEpoch()
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
        let epoch = try await store.beginEpoch()
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
        let epoch = try await store.beginEpoch()
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
        let epoch = try await store.beginEpoch()
        #expect(try await store.nextAction(as: epoch)?.action == first)
        // It failed.
        #expect(try await store.nextAction(as: epoch)?.action == second)
        try await store.finish(second, as: epoch)
        #expect(try await store.actions() == [first])
        #expect(try await store.nextAction(as: epoch)?.action == first)
        try await store.finish(first, as: epoch)
        #expect(try await store.nextAction(as: epoch) == nil)
    }

    @Test func `replies to one receiver are carried out in order, and hold up no others`() async throws {
        let epoch = try await store.beginEpoch()
        for (callID, sender) in [("a", "sip:b@x"), ("b", "sip:b@x"), ("c", "sip:c@x")] {
            let message = IncomingMessage(callID: callID, messageID: nil, sender: sender, text: "?")
            _ = try await store.insert(message, as: epoch)
        }
        let actions = ["a", "b", "c"].enumerated().map { number, callID in
            MessageAction(id: "\(number)", callID: callID, kind: .reply("yes"))
        }
        for action in actions { try await store.enqueue(action) }
        try await store.enqueue(MessageAction(id: "seen", callID: "a", kind: .markAsSeen))
        let first = try #require(try await store.nextAction(as: epoch))
        #expect(first.action == actions[0] && first.count == 0 && !first.isLate)
        // It failed, or is being carried out: the next to the same receiver waits all the same.
        #expect(try await store.nextAction(as: epoch)?.action == actions[2])
        #expect(try await store.nextAction(as: epoch)?.action.id == "seen")
        let again = try #require(try await store.nextAction(as: epoch))
        #expect(again.action == actions[0] && again.count == 1)
        #expect(try await store.nextAction(as: epoch, butNot: [first.lane])?.action == actions[2])
        try await store.finish(actions[0], as: epoch)
        let second = try #require(try await store.nextAction(as: epoch))
        #expect(second.action == actions[1] && second.lane == first.lane)
    }

    @Test func `an action that was refused is kept as such, until it is queued again`() async throws {
        let epoch = try await store.beginEpoch()
        let action = MessageAction(id: "1", callID: "a", kind: .reply("yes"))
        try await store.enqueue(action)
        try await store.refuse(action, "404", as: epoch)
        #expect(try await store.actions().isEmpty)
        #expect(try await store.refusedActions() == [RefusedAction(id: "1", callID: "a", reason: "404")])
        #expect(try await store.enqueue(action))
        #expect(try await store.refusedActions().isEmpty)
        for number in 0..<300 {
            let action = MessageAction(id: "n\(number)", callID: "a", kind: .markAsSeen)
            try await store.enqueue(action)
            try await store.refuse(action, "403", as: epoch)
        }
        let refused = try await store.refusedActions()
        #expect(refused.count == 256 && refused.last?.id == "n299" && refused.first?.id == "n44")
        #expect(try await store.actions() == [action])
    }

    @Test func `an action of three days ago is late`() async throws {
        let epoch = try await store.beginEpoch()
        try await store.enqueue(MessageAction(id: "1", callID: "a", kind: .reply("yes")))
        for (seconds, isLate) in [(3 * 24 * 3600 - 60, false), (60, true)] {
            try await DatabaseQueue(path: store.path).write {
                try $0.execute(sql: "UPDATE action SET queuedAt = queuedAt - ?", arguments: [seconds])
            }
            #expect(try await store.nextAction(as: epoch)?.isLate == isLate)
        }
    }
}
