import CallCore
import Foundation
import LocalMessaging
import SharedCore
import TestSupport
import Testing

@testable import SharedPhone

/// Accounts of a group, with their secrets in more places than one.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) final class GroupAccountsRealTimeTests {
    private let path = "/tmp/group-accounts-\(UUID().uuidString)"
    private let group: GroupContainer
    private let usual = KeptSecrets()
    private let other = KeptSecrets()

    init() throws { group = try GroupContainer(directory: path) }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private func accounts() throws -> GroupAccounts {
        try GroupAccounts(group: group, secrets: usual, otherSecrets: ["other": other])
    }

    private func account(_ name: String, in store: String? = nil) -> GroupAccount {
        var account = GroupAccount("sip:\(name)@example.test")
        (account.secret, account.secretStore) = (PhoneSecret(password: "\(name)-secret"), store)
        return account
    }

    @Test func `each account has its secret where it says, and nothing of it in the store of the group`() async throws {
        let (alice, bob) = (account("alice"), account("bob", in: "other"))
        for account in [alice, bob] { try await accounts().set(account) }
        #expect(try await accounts().all() == [alice, bob])
        #expect(await [usual.names, other.names] == [[alice.address], [bob.address]])
        let known = try await accounts().withoutSecrets()
        #expect(known.map(\.secret) == [nil, nil] && known.map(\.secretStore) == [nil, "other"])
        let stored = try await SharedStore(group: group).accounts()
        #expect(!"\(stored)".contains("secret\""), "\(stored)")
        #expect(try await accounts().account(bob.address) == bob)
        #expect(try await accounts().account("sip:nobody@example.test") == nil)
    }

    @Test func `a secret that is moved is forgotten where it was, and one that is removed where it is`() async throws {
        try await accounts().set(account("bob"))
        try await accounts().set(account("bob", in: "other"))
        #expect(await [usual.names, other.names] == [[], ["sip:bob@example.test"]])
        try await accounts().remove("sip:bob@example.test")
        #expect(await other.names.isEmpty)
        #expect(try await accounts().all().isEmpty)
    }

    @Test func `an account whose secret cannot be forgotten, or kept, is what it was`() async throws {
        let bob = account("bob", in: "other")
        try await accounts().set(bob)
        await other.lock(true)
        await #expect(throws: SecretError.self) { try await self.accounts().remove(bob.address) }
        var changed = bob
        changed.expires = 60
        let change = changed
        await #expect(throws: SecretError.self) { try await self.accounts().set(change) }
        await other.lock(false)
        #expect(try await accounts().all() == [bob])
    }

    @Test func `a place that this program does not know, and what is no secret, are told`() async throws {
        let bob = account("bob", in: "other")
        try await accounts().set(bob)
        let unknown = await #expect(throws: SecretError.self) {
            try await GroupAccounts(group: self.group, secrets: self.usual).all()
        }
        #expect(unknown?.code == .unavailable && unknown?.message.contains("other") == true)
        try await other.set(Array(#"{"secret":"wonderland-3"}"#.utf8), of: bob.address)
        let wrong = await #expect(throws: SecretError.self) { try await self.accounts().all() }
        #expect(wrong?.code == .invalid && wrong?.message.contains("wonderland") == false)
    }
}
