import CallBasics
import CallCore
import CallCoreTesting
import MediaEngine
import SIP
import SIPTransport
import TestSupport
import Testing

/// A phone with a call screen, over sockets of 127.0.0.1, with a null card.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct ProvidedPhoneRealTimeTests {
    private let engine: CallEngine
    private let callers: CallEngine
    private let screen = TestProvider()

    init() throws {
        var configuration = CallEngineConfiguration()
        configuration.cardBindings.callPlayback = CardBinding("null")
        configuration.cardBindings.callCapture = CardBinding("null")
        engine = try CallEngine(configuration)
        callers = try CallEngine()
    }

    private func caller() async throws -> Phone {
        var configuration = PhoneConfiguration()
        configuration.local = .loopback(port: 0)
        return try await Phone(callers, configuration)
    }

    private func called() async throws -> Phone {
        var configuration = PhoneConfiguration()
        configuration.local = .loopback(port: 0)
        let phone = try await Phone(engine, configuration, provider: screen)
        screen.phone = phone
        return phone
    }

    /// A server of example.test, and where it listens.
    private func server(push: PushSettings?) async throws -> (SIPEndpoint<SIPServer>, SocketAddress) {
        var configuration = ServerConfiguration(domain: "example.test")
        configuration.push = push
        let server = SIPEndpoint(SIPServer(configuration, seed: 1)) { _ in .failure }
        return (server, try await server.open(at: .loopback(port: 0), [.udp, .tcp]))
    }

    private func account(
        _ name: String,
        at address: SocketAddress,
        transport: String = "udp",
        _ push: PhonePush? = nil
    ) throws -> PhoneAccount {
        var account = try PhoneAccount("sip:\(name)@example.test")
        account.registrar = "sip:\(address)"
        account.proxies = ["sip:\(address);lr;transport=\(transport)"]
        account.push = push
        return account
    }

    private static let mute: @Sendable (inout CallConfiguration) -> Void = { ($0.source, $0.sink) = (.silence, .none) }

    /// What the screen is told next.
    private func next() async throws -> TestProvider.Report {
        for await report in screen.reports { return report }
        throw PhoneError(.state, "Nothing was told.")
    }

    private func nextIncoming() async throws -> (CallUUID, CallUpdate) {
        guard case .incoming(let call, let update) = try await next() else {
            throw PhoneError(.state, "Another thing was told.")
        }
        return (call, update)
    }

    /// The next thing that happens to the call card; it is not to be older than `time`.
    private func nextCard(after time: MediaTime) async throws -> CardRouteEvent.Kind {
        for await case .card(let event) in engine.events where event.role == .call && event.direction == .playback {
            #expect(event.time >= time)
            return event.kind
        }
        throw PhoneError(.state, "Nothing happened to the card.")
    }

    private func close(_ phones: Phone...) async {
        for phone in phones { await phone.close() }
        await engine.shutDown()
        await callers.shutDown()
        #expect(screen.faults.isEmpty)
    }

    @Test
    func `a call is shown, answered and ended by the screen, and has the card between activation and deactivation`()
        async throws
    {
        let (alice, bob) = (try await caller(), try await called())
        let out = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        let (call, update) = try await nextIncoming()
        #expect(!update.isPlaceholder && !update.hasVideo && update.remote.hasPrefix("sip:"))
        #expect(await screen.act(.answer, on: call) == .fulfilled)
        try await out.answered()
        // Sound flows, and nobody has the card.
        #expect(await Polling.eventually { await out.media?.report().received.packets ?? 0 > 0 })
        var time = engine.now
        await bob.activateAudio()
        #expect(try await nextCard(after: time) == .cardOpened)
        time = engine.now
        await bob.deactivateAudio()
        #expect(try await nextCard(after: time) == .cardClosed)
        #expect(await screen.act(.setHeld(true), on: call) == .fulfilled)
        guard case .updated(call, let held) = try await next() else { return _ = Issue.record("not told") }
        #expect(held.isHeld)
        #expect(await screen.act(.setMuted(true), on: call) == .fulfilled)
        #expect(await screen.act(.answer, on: call) == .failed(.notNow))
        #expect(await screen.act(.end, on: call) == .fulfilled)
        #expect(await out.ended().side == .them)
        #expect(await screen.act(.end, on: call) == .failed(.unknownCall))
        await close(alice, bob)
    }

    @Test func `the screen calls, and is told that the other side has answered and hung up`() async throws {
        let (alice, bob) = (try await caller(), try await called())
        let call = CallUUID()
        async let outcome = screen.act(.start(to: "sip:\(alice.localAddress)"), on: call)
        for await event in alice.events {
            guard case .incoming(let come) = event else { continue }
            #expect(await outcome == .fulfilled)
            #expect(try await next() == .outgoing(call, .connecting))
            try await come.answer(Self.mute)
            #expect(try await next() == .outgoing(call, .connected))
            await come.hangUp()
            break
        }
        #expect(try await next() == .ended(call, .remoteEnded))
        #expect(await screen.act(.start(to: "nonsense"), on: CallUUID()) == .failed(.refused))
        await close(alice, bob)
    }

    @Test func `the screen hears the end of a call that could go nowhere`() async throws {
        let bob = try await called()
        for _ in 0..<5 {
            let call = CallUUID()
            #expect(await screen.act(.start(to: "sip:alice@[2001:db8::1]"), on: call) == .fulfilled)
            #expect(try await next() == .outgoing(call, .connecting))
            #expect(try await next() == .ended(call, .failed))
        }
        await close(bob)
    }

    @Test func `a push wakes the phone, which answers what its user had answered before the call came`() async throws {
        let (server, address) = try await server(push: PushSettings())
        let (alice, bob) = (try await caller(), try await called())
        try await alice.register(account("alice", at: address))
        let push = try PhonePush(team: "ABCD", bundle: "org.example.phone", callToken: "00fc", textToken: nil)
        try await bob.register(account("bob", at: address, push))
        #expect(await bob.isPushServed(of: "sip:bob@example.test") == true)
        #expect(await alice.isPushServed(of: "sip:alice@example.test") == nil)
        let out = try await alice.call("sip:bob@example.test", Self.mute)
        for await event in server.events {
            guard case .push(let sent) = event else { continue }
            await bob.receive(PushPayload(callID: sent.callID, from: sent.from))
            break
        }
        let (call, update) = try await nextIncoming()
        #expect(update.isPlaceholder && update.remote == "sip:alice@example.test")
        #expect(await screen.act(.answer, on: call) == .fulfilled)
        try await out.answered()
        guard case .updated(call, let known) = try await next() else { return _ = Issue.record("not told") }
        #expect(!known.isPlaceholder)
        await out.hangUp()
        #expect(try await next() == .ended(call, .remoteEnded))
        await close(alice, bob)
        await server.close()
    }

    @Test func `without pushes, a phone in the background is called by the connection that it keeps`() async throws {
        let (server, address) = try await server(push: nil)
        let (alice, bob) = (try await caller(), try await called())
        try await alice.register(account("alice", at: address))
        try await bob.register(account("bob", at: address, transport: "tcp"))
        await bob.enterBackground()
        let out = try await alice.call("sip:bob@example.test", Self.mute)
        let (call, update) = try await nextIncoming()
        #expect(!update.isPlaceholder && update.remote == "sip:alice@example.test")
        #expect(await screen.act(.answer, on: call) == .fulfilled)
        try await out.answered()
        await bob.enterForeground()
        // The new registration leaves the call alone.
        #expect(await Polling.eventually { await out.media?.report().received.packets ?? 0 > 20 })
        await out.hangUp()
        #expect(try await next() == .ended(call, .remoteEnded))
        await close(alice, bob)
        await server.close()
    }

    @Test func `without a screen, a push has the phone fetch the call, which its events tell`() async throws {
        let (server, address) = try await server(push: PushSettings())
        let (alice, bob) = (try await caller(), try await caller())
        try await alice.register(account("alice", at: address))
        let push = try PhonePush(team: "ABCD", bundle: "org.example.phone", callToken: nil, textToken: "beef")
        try await bob.register(account("bob", at: address, push))
        let out = try await alice.call("sip:bob@example.test", Self.mute)
        for await event in server.events {
            guard case .push(let sent) = event else { continue }
            #expect(await bob.receive(PushPayload(callID: sent.callID, from: sent.from)) == nil)
            break
        }
        for await event in bob.events {
            guard case .incoming(let call) = event else { continue }
            #expect(call.remote == "sip:alice@example.test")
            #expect(await call.state == .incoming)
            try await call.answer(Self.mute)
            break
        }
        try await out.answered()
        await out.hangUp()
        await close(alice, bob)
        await server.close()
    }

    @Test func `calls of the conference hear each other, and are written down when they are over`() async throws {
        let (alice, bob) = (try await caller(), try await called())
        let format = AudioFormat(sampleRate: 16_000)
        let ears = StreamSink(format: format)
        let period: [Int16] = (0..<40).map { $0 < 20 ? 8000 : -8000 }
        let buzz = Array(repeatElement(period, count: 4000).joined())
        let loud = try await alice.call("sip:\(bob.localAddress)") { sound in
            (sound.source, sound.sink) = (.samples(buzz, format), .none)
        }
        let (first, _) = try await nextIncoming()
        #expect(await screen.act(.answer, on: first) == .fulfilled)
        try await loud.answered()
        let listening = try await alice.call("sip:\(bob.localAddress)") { sound in
            (sound.source, sound.sink) = (.silence, .stream(ears))
        }
        let (second, _) = try await nextIncoming()
        #expect(await screen.act(.answer, on: second) == .fulfilled)
        try await listening.answered()
        guard case .updated(first, let held) = try await next(), held.isHeld else {
            return _ = Issue.record("not held")
        }
        #expect(await screen.act(.setGroup(with: second), on: first) == .fulfilled)
        #expect(bob.conference.calls.count == 2)
        for await block in ears { if block.samples.contains(where: { abs(Int($0)) > 1000 }) { break } }
        #expect(await screen.act(.end, on: second) == .fulfilled)
        await listening.ended()
        #expect(await Polling.eventually { bob.conference.calls.isEmpty })
        await loud.hangUp()
        await loud.ended()
        #expect(await Polling.eventually { await bob.callLog.count == 2 })
        #expect(await bob.callLog.allSatisfy { $0.outcome == .talked && !$0.isOutgoing })
        #expect(await alice.callLog.map(\.isOutgoing) == [true, true])
        #expect(await bob.missedCallCount == 0)
        await close(alice, bob)
    }

    @Test func `who does not want to be disturbed is not rung, and a reset ends what is on`() async throws {
        let (alice, bob) = (try await caller(), try await called())
        screen.refusal = .busy
        let refused = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        #expect(await refused.ended().cause == .refused(status: 486))
        let log = await bob.callLog
        #expect(log.map(\.outcome) == [.missed])
        _ = try await nextIncoming()
        screen.refusal = nil
        let out = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        let (call, _) = try await nextIncoming()
        #expect(await screen.act(.answer, on: call) == .fulfilled)
        try await out.answered()
        await bob.resetCalls()
        #expect(await out.ended().side == .them)
        await close(alice, bob)
    }

    @Test func `a phone that closes ends what a push has told of, and one that was closed long ago opens no card`()
        async throws
    {
        var former: Phone? = try await called()
        let shown = await former?.receive(PushPayload(callID: "c1", from: "sip:carol@example.org"))
        let (uuid, _) = try await nextIncoming()
        #expect(shown == uuid)
        await former?.close()
        #expect(try await next() == .ended(uuid, .failed))
        #expect(await former?.receive(PushPayload(callID: "c2")) == nil)
        let (alice, bob) = (try await caller(), try await called())
        let out = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        let (call, _) = try await nextIncoming()
        #expect(await screen.act(.answer, on: call) == .fulfilled)
        try await out.answered()
        former = nil
        await bob.deactivateAudio()
        await bob.activateAudio()
        await close(alice, bob)
        var openedCount = 0
        for await case .card(let event) in engine.events where event.direction == .playback {
            if event.kind == .cardOpened { openedCount += 1 }
        }
        #expect(openedCount == 1)
    }
}
