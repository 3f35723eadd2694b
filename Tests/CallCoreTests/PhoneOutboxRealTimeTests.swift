import CallBasics
import CallCore
import MediaEngine
import SIP
import SIPTransport
import TestSupport
import Testing

/// Texts that wait, over sockets of 127.0.0.1.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct PhoneOutboxRealTimeTests {
    private let engine: CallEngine

    init() throws { engine = try CallEngine() }

    private static var configuration: PhoneConfiguration {
        var configuration = PhoneConfiguration()
        configuration.local = .loopback(port: 0)
        return configuration
    }

    @Test func `texts wait for their account, leave in order, and one that is refused is over`() async throws {
        var configuration = ServerConfiguration(domain: "example.test")
        configuration.users = ["alice": ServerUser(Credentials(userName: "alice", password: "wonderland"))]
        let server = SIPEndpoint(SIPServer(configuration, seed: 3)) { _ in .failure }
        let way = "sip:\(try await server.open(at: .loopback(port: 0), [.udp]));lr"
        func account(_ password: String) throws -> PhoneAccount {
            var account = try PhoneAccount("sip:alice@example.test", password: password)
            account.proxies = [way]
            return account
        }
        let alice = try await Phone(engine, Self.configuration)
        await #expect(throws: PhoneError.self) { try await alice.register(try account("red king")) }
        for id in ["1", "2"] { #expect(try await alice.queueText("Tea?", to: "sip:alice@example.test", id: id) == id) }
        #expect(try await alice.queueText("Tea?", to: "sip:alice@example.test", id: "2") == "2")
        try await alice.queueText("Tea?", to: "sip:eve@example.test", id: "3")
        #expect(await alice.queuedTextCount == 3)
        await #expect(throws: PhoneError.self) { try await alice.queueText("?", to: "nobody") }
        await #expect(throws: PhoneError.self) {
            try await alice.queueText("?", to: "sip:a@b", from: "sip:bob@example.test")
        }
        try await alice.register(try account("wonderland"))
        var (told, come): ([String: [TextState]], [String]) = ([:], [])
        for await event in alice.events {
            switch event {
            case .textChanged(let id, let state): told[id, default: []].append(state)
            case .text(let text): come.append(text.id ?? "")
            default: break
            }
            if told["2"]?.count == 3, told["3"]?.count == 3, come.count == 2 { break }
        }
        #expect(come == ["1", "2"])
        for id in ["1", "2"] { #expect(told[id] == [.pendingDelivery, .inProgress, .delivered]) }
        guard case .notDelivered(let error) = told["3"]?.last else { return _ = Issue.record("\(told)") }
        #expect(error.code == .refused(status: 404))
        // What still waits ends with the phone.
        await alice.setNetworkReachable(false)
        try await alice.queueText("Tea?", to: "sip:alice@example.test", id: "4")
        let (waiting, taken) = (await alice.withdrawText("5"), await alice.queuedTextCount)
        #expect(!waiting && taken == 1)
        let listening = Task {
            var states: [TextState] = []
            for await case .textChanged("4", let state) in alice.events { states.append(state) }
            return states
        }
        await alice.close()
        await engine.shutDown()
        let states = await listening.value
        guard case .notDelivered(let end) = states.last else { return _ = Issue.record("\(states)") }
        #expect(states.count == 2 && end.code == .state)
        await server.close()
    }
}
