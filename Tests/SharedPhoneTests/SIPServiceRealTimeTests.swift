import CallBasics
import CallCore
import Foundation
import Glibc
import LocalMessaging
import MediaEngine
import SIP
import SIPTransport
import SharedCore
import TestSupport
import Testing

@testable import SharedPhone

/// The phone of a group over real sockets, with a server that keeps texts.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) final class SIPServiceRealTimeTests {
    private let path = "/tmp/shared-phone-\(UUID().uuidString)"
    private let group: GroupContainer
    private let secrets: SecretFiles
    private let server: SIPEndpoint<SIPServer>
    private let way: String

    init() async throws {
        group = try GroupContainer(directory: path)
        secrets = try SecretFiles(group: group)
        var configuration = ServerConfiguration(domain: "example.test")
        configuration.users = ["alice": "wonderland", "bob": "builder"].reduce(into: [:]) { users, user in
            users[user.key] = ServerUser(Credentials(userName: user.key, password: user.value))
        }
        configuration.push = PushSettings()
        server = SIPEndpoint(SIPServer(configuration, seed: 3)) { _ in .failure }
        way = "sip:\(try await server.open(at: .loopback(port: 0), [.udp, .tcp]));lr"
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private static var local: PhoneConfiguration {
        var configuration = PhoneConfiguration()
        configuration.local = .loopback(port: 0)
        configuration.transports = [.udp]
        return configuration
    }

    private func account(_ name: String = "bob", _ password: String = "builder", realm: String? = nil) -> GroupAccount {
        var account = GroupAccount("sip:\(name)@example.test")
        account.proxies = [way]
        account.secret =
            realm.map { PhoneSecret(hashing: password, userName: name, realm: $0) } ?? PhoneSecret(password: password)
        return account
    }

    private func service() -> SIPService { SIPService(secrets: secrets, Self.local) }

    /// Somebody who is registered at the server.
    private func alice() async throws -> Phone {
        let phone = try await Phone(CallEngine(.virtual()), Self.local)
        try await phone.register(account("alice", "wonderland").phoneAccount())
        return phone
    }

    /// The receipts that a phone gets, until there are so many.
    private func receipts(of phone: Phone, _ count: Int) async -> [TextReceipt] {
        var receipts: [TextReceipt] = []
        for await event in phone.events {
            if case .receipt(let receipt) = event { receipts.append(receipt) }
            if receipts.count == count { break }
        }
        return receipts
    }

    /// The call-id of the text that the server keeps next.
    private func keptCallID() async throws -> String {
        for await event in server.events {
            if case .kept(_, let callID) = event { return callID }
        }
        throw CancellationError()
    }

    private var bindingCount: Int {
        get async { await server.perform { server, _ in server.counts.bindings } }
    }

    @Test func `a text is in the store before its sender hears so, and its receipts tell what became of it`()
        async throws
    {
        try await GroupAccounts(group: group).set(account())
        let main = try MainCore(group: group, service: service())
        try await main.start()
        #expect(try await Polling.eventually { try await main.store.registrations().first?.state == "ok" })
        let phone = try await alice()
        let id = try await phone.sendText("Tea?", to: "sip:bob@example.test", receipts: [.delivered, .displayed])
        let message = try #require(try await main.store.pending().first?.message)
        #expect(message.text == "Tea?" && message.sender == "sip:alice@example.test" && message.messageID == id)
        #expect(message.account == "sip:bob@example.test" && message.wantedReceipts == [.delivered, .displayed])
        let delivered = await receipts(of: phone, 1)
        #expect(delivered.map(\.kind) == [.delivered] && delivered.map(\.id) == [id])
        #expect(delivered.first?.from == "sip:bob@example.test")
        try await main.perform(MessageAction(id: "a1", callID: message.callID, kind: .markAsSeen))
        #expect(await receipts(of: phone, 1).map(\.kind) == [.displayed])
        #expect(try await Polling.eventually { try await main.store.receipts().isEmpty })

        // A reply has the name of its action, so that one that is sent twice is told.
        try await main.perform(MessageAction(id: "a2-0123456789", callID: message.callID, kind: .reply("Coming")))
        var reply: PhoneText?
        for await event in phone.events {
            if case .text(let text) = event { reply = text }
            if reply != nil { break }
        }
        #expect(reply?.text == "Coming" && reply?.id == "a2-0123456789" && reply?.sender == "sip:bob@example.test")

        // The one that comes again is known, and gets its answer all the same.
        try await phone.sendText("Tea?", to: "sip:bob@example.test", id: id, receipts: [.delivered])
        #expect(try await main.store.counts().pending == 1)
        await phone.close()
        await main.stop()
        // The server goes on knowing the group.
        #expect(await bindingCount == 1)
        await server.close()
    }

    @Test func `a reply that is refused is over, and is told`() async throws {
        try await GroupAccounts(group: group).set(account())
        let main = try MainCore(group: group, service: service())
        let epoch = try await main.start()
        var message = IncomingMessage(callID: "c1", sender: "sip:nobody@example.test", text: "?")
        message.account = "sip:bob@example.test"
        _ = try await main.store.insert(message, as: epoch)
        try await main.perform(MessageAction(id: "a1", callID: "c1", kind: .reply("Who?")))
        #expect(try await Polling.eventually { try await main.store.refusedActions().map(\.id) == ["a1"] })
        #expect(try await main.store.refusedActions().first?.reason.contains("404") == true)
        #expect(try await main.store.actions().isEmpty)
        await main.stop()
        await server.close()
    }

    @Test func `an executor fetches what the server has kept, the main takes its place, and there is one phone`()
        async throws
    {
        var account = account(realm: "example.test")
        account.push = .apple(team: "ABCD", bundle: "org.example", callToken: nil, textToken: "c0ffee")
        try await GroupAccounts(group: group).set(account)
        let phone = try await alice()
        let id = try await phone.sendText("Tea?", to: "sip:bob@example.test", receipts: [.delivered])
        let callID = try await keptCallID()
        let executor = try ExecutorCore(group: group, service: service())
        var shown: [String] = []
        let outcome = try await executor.notify(callID: callID) { notification, _ in shown.append(notification.text) }
        #expect(shown == ["Tea?"])
        if case .message(_, .executor) = outcome {} else { Issue.record("\(outcome)") }
        // What is displayed later is not known yet: at the end it says that the text was delivered.
        await executor.stop()
        #expect(await receipts(of: phone, 1).map(\.id) == [id])
        #expect(await bindingCount == 2)
        #expect(try await executor.store.registrations().first?.isPushServed == true)
        // While nobody runs the core, the server keeps what comes.
        let registrations = Watched(0)
        await server.tap { message in
            if message.bytes.starts(with: "REGISTER".utf8), !message.isSent { registrations.update { $0 += 1 } }
        }
        try await phone.sendText("Milk?", to: "sip:bob@example.test")
        let asked = registrations.value
        let main = try MainCore(group: group, service: service())
        try await main.start()
        #expect(try await Polling.eventually { try await main.store.pending().map(\.message.text) == ["Milk?"] })
        #expect(await bindingCount == 2)
        // Let in by the nonce of the executor: one REGISTER.
        #expect(registrations.value == asked + 1)
        await main.stop()
        await phone.close()
        await server.close()
    }

    @Test func `a push of a text that the server keeps has the main that runs fetch it`() async throws {
        var account = account()
        account.push = .apple(team: "ABCD", bundle: "org.example", callToken: nil, textToken: "c0ffee")
        try await GroupAccounts(group: group).set(account)
        let main = try MainCore(group: group, service: service())
        try await main.start()
        #expect(try await Polling.eventually { try await main.store.registrations().first?.isPushServed == true })
        let phone = try await alice()
        // By UDP the server takes it for asleep.
        try await phone.sendText("Tea?", to: "sip:bob@example.test")
        let callID = try await keptCallID()
        let executor = try ExecutorCore(group: group, service: service())
        let outcome = try await executor.newMessage(callID: callID)
        guard case .message(let claim, .main) = outcome else { return _ = Issue.record("\(outcome)") }
        #expect(claim.message.text == "Tea?")
        try await executor.acknowledge(claim)
        await executor.stop()
        await main.stop()
        await phone.close()
        await server.close()
    }

    @Test func `what cannot be kept is not taken, and comes again`() async throws {
        try await GroupAccounts(group: group).set(account())
        let store = try SharedStore(group: group)
        let epoch = try await store.beginEpoch()
        let kept = Watched<[String]>([])
        let isFull = Watched(true)
        let context = CoreContext(
            epoch: epoch,
            store: store,
            deliver: { message in
                guard !isFull.value else { throw StoreError(.full, "There is no room.") }
                kept.update { $0.append(message.text) }
                return true
            },
            deliverInvitation: { _ in true },
            recordCall: { _ in }
        )
        let service = service()
        try await service.start(context)
        try await service.fetchPending()
        let phone = try await alice()
        let error = await #expect(throws: PhoneError.self) {
            try await phone.sendText("Tea?", to: "sip:bob@example.test")
        }
        #expect(error?.code == .refused(status: 480) && kept.value.isEmpty)
        isFull.update { $0 = false }
        try await phone.sendText("Tea?", to: "sip:bob@example.test")
        #expect(kept.value == ["Tea?"])
        await service.stop()
        await #expect(throws: CancellationError.self) { try await service.fetchPending() }
        await phone.close()
        await server.close()
    }

    @Test func `an end does not wait for a receipt that nobody answers, which the next core sends`() async throws {
        try await GroupAccounts(group: group).set(account())
        let phone = try await alice()
        let main = try MainCore(group: group, service: service())
        try await main.start()
        #expect(try await Polling.eventually { try await main.store.registrations().first?.state == "ok" })
        let id = try await phone.sendText("Tea?", to: "sip:bob@example.test", receipts: [.displayed])
        let callID = try #require(try await main.store.pending().first?.message.callID)
        // Alice has gone without a word, and her server still knows her.
        await phone.close(keepingBindings: true)
        let acting = Task { try await main.perform(MessageAction(id: "a1", callID: callID, kind: .markAsSeen)) }
        #expect(try await Polling.eventually { try await !main.store.receipts().isEmpty })
        let begin = ContinuousClock.now
        await main.stop()
        // Two seconds for receipts, one for what the phone has sent.
        #expect(ContinuousClock.now - begin < .seconds(8))
        _ = await acting.result
        #expect(try await main.store.receipts().map(\.messageID) == [id])
        let back = try await alice()
        let next = try MainCore(group: group, service: service())
        try await next.start()
        #expect(await receipts(of: back, 1).map(\.kind) == [.displayed])
        await next.stop()
        await back.close()
        await server.close()
    }

    @Test func `accounts that change while the core runs are used at once`() async throws {
        let accounts = try GroupAccounts(group: group)
        let main = try MainCore(group: group, service: service())
        try await main.start()
        try await accounts.set(account("bob", "red king"))
        #expect(try await Polling.eventually { try await main.store.registrations().first?.state == "failed" })
        #expect(try await main.store.registrations().first?.reason?.contains("401") == true)
        try await accounts.set(account())
        #expect(try await Polling.eventually { try await main.store.registrations().first?.state == "ok" })
        let expiry = try #require(try await main.store.registrations().first?.expiresAt)
        #expect(abs(expiry.timeIntervalSinceNow - 3600) < 60)
        try await accounts.remove("sip:bob@example.test")
        #expect(await Polling.eventually { await self.bindingCount == 0 })
        #expect(try await accounts.all().isEmpty)
        #expect(try await main.store.registrations().isEmpty)
        #expect(try await secrets.secret(of: "sip:bob@example.test") == nil)
        await main.stop()
        await server.close()
    }

    @Test func `a call waits for the main while an executor runs, and is told at its end`() async throws {
        try await GroupAccounts(group: group).set(account())
        let executor = try ExecutorCore(group: group, service: service())
        let waiting = Task { try await executor.newMessage(callID: "never") }
        let store = executor.store
        #expect(try await Polling.eventually { try await store.registrations().first?.state == "ok" })
        let phone = try await alice()
        let call = try await phone.call("sip:bob@example.test")
        #expect(await Polling.eventually { await self.server.perform { server, _ in server.counts.forwards } > 0 })
        // That it came is known also when the executor dies.
        #expect(try await Polling.eventually { try await store.calls().map(\.callID) == [call.callID] })
        waiting.cancel()
        _ = await waiting.result
        await executor.stop()
        let end = await call.ended()
        #expect(end.cause == .refused(status: 480), "\(end)")
        let row = try await store.calls()
        #expect(row.map(\.remote) == ["sip:alice@example.test"] && row.map(\.duration) == [nil])
        await phone.close()
        await server.close()
    }

    // MARK: Secrets

    @Test func `an account whose secret is not to be had is told, and holds up no other`() async throws {
        let other = KeptSecrets()
        let accounts = try GroupAccounts(group: group, secrets: secrets, otherSecrets: ["other": other])
        var alice = account("alice", "wonderland")
        alice.secretStore = "other"
        try await accounts.set(alice)
        try await accounts.set(account())
        await other.lock(true)
        let service = SIPService(secrets: secrets, otherSecrets: ["other": other], Self.local)
        let main = try MainCore(group: group, service: service)
        try await main.start()
        var told: [String: String] = [:]
        for await event in service.events {
            switch event {
            case .registered(let address): told[address] = "registered"
            case .unregistered(let address, let error): told[address] = error.message
            default: break
            }
            if told.count == 2 { break }
        }
        #expect(told == [alice.address: KeptSecrets.locked.message, "sip:bob@example.test": "registered"])
        let states = try await main.store.registrations().map(\.state)
        #expect(states == ["failed", "ok"])
        await other.lock(false)
        await service.accountChanged(alice.address)
        #expect(try await Polling.eventually { try await main.store.registrations().first?.state == "ok" })
        await main.stop()
        await server.close()
    }

    @Test func `secrets are for their owner alone, and stand in no store`() async throws {
        let accounts = try GroupAccounts(group: group)
        var account = account("bob", "Sesame-7", realm: "example.test")
        account.push = .apple(team: "ABCD", bundle: "org.example", callToken: "c0ffee", textToken: nil)
        try await accounts.set(account)
        #expect(try await accounts.all() == [account])
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
            var status = stat()
            guard stat("\(path)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)"))
            #expect(bytes.range(of: Data("Sesame-7".utf8)) == nil, "\(name)")
            if !name.hasPrefix("secrets/") { #expect(bytes.range(of: Data("c0ffee".utf8)) == nil, "\(name)") }
            if name.hasPrefix("secrets/") { #expect(status.st_mode & 0o777 == 0o600) }
        }
        #expect(!"\(account)".contains("Sesame") && !String(reflecting: account.secret).contains("Sesame"))
        let file = try #require(try FileManager.default.contentsOfDirectory(atPath: "\(path)/secrets").first)
        chmod("\(path)/secrets/\(file)", 0o640)
        let error = await #expect(throws: SecretError.self) { try await accounts.all() }
        #expect(error?.code == .open)
        await #expect(throws: SecretError.self) {
            try await self.secrets.set([], of: String(repeating: "a", count: 200))
        }
        await server.close()
    }
}
