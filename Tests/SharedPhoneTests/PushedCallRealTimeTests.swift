import CallBasics
import CallCore
import Foundation
import LocalMessaging
import MediaEngine
import SIP
import SIPTransport
import SharedCore
import TestSupport
import Testing

@testable import SharedPhone

/// A call that a push tells of, taken by a process without a screen, beside a main, over real sockets.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine) final class PushedCallRealTimeTests {
    private let path = "/tmp/pushed-call-\(UUID().uuidString)"
    private let group: GroupContainer
    private let secrets: SecretFiles
    private let server: SIPEndpoint<SIPServer>
    private let way: String
    private let engine: CallEngine

    init() async throws {
        group = try GroupContainer(directory: path)
        secrets = try SecretFiles(group: group)
        var configuration = ServerConfiguration(domain: "example.test")
        configuration.push = PushSettings()
        server = SIPEndpoint(SIPServer(configuration, seed: 3)) { _ in .failure }
        way = "sip:\(try await server.open(at: .loopback(port: 0), [.udp]));lr"
        var cards = CallEngineConfiguration()
        cards.cardBindings.callPlayback = CardBinding("null")
        cards.cardBindings.callCapture = CardBinding("null")
        engine = try CallEngine(cards)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private static var local: PhoneConfiguration {
        var configuration = PhoneConfiguration()
        configuration.local = .loopback(port: 0)
        configuration.transports = [.udp]
        return configuration
    }

    private func account(_ name: String) -> GroupAccount {
        var account = GroupAccount("sip:\(name)@example.test")
        account.proxies = [way]
        return account
    }

    /// Takes calls, which other processes show.
    private func service() -> SIPService {
        SIPService(secrets: secrets, Self.local, engine: engine, screensIn: group)
    }

    private func isRegistered(_ store: SharedStore) async throws -> Bool {
        try await Polling.eventually { try await store.registrations().first?.state == "ok" }
    }

    /// Has the server know that Bob sleeps, and how he is woken.
    private func letBobSleep() async throws {
        var bob = account("bob")
        bob.push = .apple(team: "ABCD", bundle: "org.example", callToken: "c0ffee", textToken: nil)
        try await GroupAccounts(group: group).set(bob)
        let main = try MainCore(group: group, service: SIPService(secrets: secrets, Self.local))
        try await main.start()
        #expect(try await isRegistered(main.store))
        await main.stop()
    }

    /// Alice, who calls Bob, and the call-id that a push names.
    private func calling() async throws -> (alice: Phone, call: PhoneCall, callID: String) {
        let alice = try await Phone(CallEngine(), Self.local)
        try await alice.register(account("alice").phoneAccount())
        let call = try await alice.call("sip:bob@example.test") { ($0.source, $0.sink) = (.silence, .none) }
        for await event in server.events {
            if case .parked(_, let callID) = event { return (alice, call, callID) }
        }
        throw CancellationError()
    }

    /// Gives a push to the core that runs.
    private func push(_ callID: String) async throws -> CallUUID {
        let screen = try await ScreenClient.connect(to: group, isScreen: false)
        let call = try await screen.receive(PushPayload(callID: callID))
        await screen.close()
        return try #require(call)
    }

    @Test func `a main that starts while a call rings answers, holds and ends it as its screen, and follows`()
        async throws
    {
        try await letBobSleep()
        let (alice, out, callID) = try await calling()
        let core = try CallExecutorCore(group: group, service: service())
        let epoch = try await core.start()
        let pushed = try await push(callID)
        let main = try MainCore(group: group, service: service())
        let group = group
        let next = try await main.start {
            await #expect(throws: Never.self) {
                let screen = try await ScreenClient.connect(to: group)
                for await case .snapshot(let calls, _) in screen.events {
                    #expect(calls.map(\.call) == [pushed])
                    break
                }
                #expect(try await screen.perform(.answer, on: pushed) == .fulfilled)
                try await out.answered()
                #expect(try await screen.perform(.setHeld(true), on: pushed) == .fulfilled)
                #expect(try await screen.calls().calls.map(\.update.isHeld) == [true])
                #expect(try await screen.perform(.end, on: pushed) == .fulfilled)
                await screen.close()
            }
        }
        #expect(await out.ended().side == .them)
        #expect(next > epoch)
        #expect(await !core.isRunning)
        #expect(try await isRegistered(main.store))
        let rows = try await main.store.calls()
        #expect(rows.map(\.callID) == [callID] && rows.first?.duration != nil)
        // Its own screens are there, and the group is one phone.
        let screen = try await ScreenClient.connect(to: group, isScreen: false)
        #expect(try await screen.calls().calls.isEmpty)
        await screen.close()
        #expect(await server.perform { server, _ in server.counts.bindings } == 2)
        await main.stop()
        await close(alice)
    }

    @Test func `a call that its core is stopped in is over for both sides, and written down`() async throws {
        try await letBobSleep()
        let (alice, out, callID) = try await calling()
        let core = try CallExecutorCore(group: group, service: service())
        try await core.start()
        let pushed = try await push(callID)
        let screen = try await ScreenClient.connect(to: group, isScreen: false)
        #expect(try await screen.perform(.answer, on: pushed) == .fulfilled)
        try await out.answered()
        await screen.close()
        await core.stop()
        #expect(await out.ended().side == .them)
        let rows = try await core.store.calls()
        #expect(rows.map(\.callID) == [callID] && rows.first?.duration != nil)
        await close(alice)
    }

    @Test func `a push that was declined keeps the core until its call has come`() async throws {
        try await letBobSleep()
        let (alice, out, callID) = try await calling()
        let core = try CallExecutorCore(group: group, service: service())
        try await core.start()
        let pushed = try await push(callID)
        let screen = try await ScreenClient.connect(to: group, isScreen: false)
        #expect(try await screen.perform(.end, on: pushed) == .fulfilled)
        await screen.close()
        #expect(await out.ended().cause == .refused(status: 603))
        try await core.ended()
        #expect(try await core.store.calls().map(\.callID) == [callID])
        await close(alice)
    }

    private func close(_ alice: Phone) async {
        await alice.close()
        await engine.shutDown()
        await server.close()
    }
}
