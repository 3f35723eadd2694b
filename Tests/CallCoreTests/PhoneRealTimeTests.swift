import CallBasics
@testable import CallCore
import MediaEngine
import SDP
import SIP
import SIPTransport
import TestSupport
import Testing

/// Phones that call each other over sockets of 127.0.0.1, each end with samples in place of a card.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct PhoneRealTimeTests {
    private static let rate = 16_000
    private let engine: CallEngine

    init() throws { engine = try CallEngine() }

    private func phone(_ change: (inout PhoneConfiguration) -> Void = { _ in }) async throws -> Phone {
        try await .onLoopback(engine, change)
    }

    /// The same buzz, and what is heard goes where a test listens.
    private static func buzz(into ears: StreamSink) -> @Sendable (inout CallConfiguration) -> Void {
        { sound in
            CallConfiguration.buzz(&sound)
            sound.sink = .stream(ears)
        }
    }

    /// What is heard, until it is loud.
    private func wait(toHear ears: StreamSink) async throws {
        for await block in ears { if block.samples.contains(where: { abs(Int($0)) > 1000 }) { return } }
        throw PhoneError(.state, "Nothing was heard.")
    }

    /// The next call that comes to a phone.
    private func call(to phone: Phone) async throws -> PhoneCall {
        for await event in phone.events { if case .incoming(let call) = event { return call } }
        throw PhoneError(.state, "No call has come.")
    }

    /// What is told of a call until something is.
    private func wait(_ call: PhoneCall, for isWanted: (PhoneCallEvent) -> Bool) async throws {
        for await event in call.events { if isWanted(event) { return } }
        throw PhoneError(.state, "It was not told.")
    }

    private func uri(of phone: Phone) -> String { "sip:\(phone.localAddress)" }

    private func close(_ phones: Phone...) async {
        for phone in phones { await phone.close() }
        await engine.shutDown()
    }

    @Test func `a call is answered, keyed, held, resumed and ended, with sound both ways`() async throws {
        let (alice, bob) = (try await phone(), try await phone())
        let format = AudioFormat(sampleRate: Self.rate)
        let (hers, his) = (StreamSink(format: format), StreamSink(format: format))
        let out = try await alice.call(uri(of: bob), Self.buzz(into: hers))
        let come = try await call(to: bob)
        #expect(come.callID == out.callID)
        #expect(!come.isOutgoing && out.isOutgoing)
        try await come.ring()
        try await wait(out) { if case .progress(180) = $0 { true } else { false } }
        #expect(await out.state == .ringing)
        #expect(await come.state == .incoming)
        #expect(await out.duration == nil)
        try await come.answer(Self.buzz(into: his))
        try await out.answered()
        #expect(await out.isAnswered)
        #expect(await out.state == .talking)
        try await wait(toHear: hers)
        try await wait(toHear: his)
        try await out.sendDTMF("5")
        try await wait(come) { if case .key("5") = $0 { true } else { false } }
        try await come.sendDTMF("6")
        try await wait(out) { if case .key("6") = $0 { true } else { false } }
        await out.setHeld(true)
        try await wait(come) { if case .held(by: .them) = $0 { true } else { false } }
        try await wait(out) { if case .held(by: .us) = $0 { true } else { false } }
        #expect(await out.state == .held)
        #expect(await come.state == .heldRemotely)
        #expect(await alice.currentCalls.map(\.callID) == [out.callID])
        await out.setHeld(false)
        try await wait(come) { if case .resumed(by: .them) = $0 { true } else { false } }
        try await wait(out) { if case .resumed(by: .us) = $0 { true } else { false } }
        await come.hangUp()
        let (mine, theirs) = await (out.ended(), come.ended())
        #expect(mine.cause == .hungUp && mine.side == .them)
        #expect(theirs.cause == .hungUp && theirs.side == .us)
        #expect(await out.state == .ended)
        #expect(await out.duration ?? .zero > .zero)
        #expect(await alice.currentCalls.isEmpty)
        for report in await [out.report, come.report] {
            let leg = try #require(report?.legs.first)
            #expect(leg.sent.packets > 0)
            #expect(leg.received.packets > 0)
        }
        await close(alice, bob)
    }

    @Test func `a call goes on when the own address changes, with sound both ways`() async throws {
        let alice = try await phone()
        // Not told where to be, it follows the machine.
        let bob = try await Phone(engine, PhoneConfiguration())
        let format = AudioFormat(sampleRate: Self.rate)
        let (hers, his) = (StreamSink(format: format), StreamSink(format: format))
        let out = try await bob.call(uri(of: alice), Self.buzz(into: his))
        let come = try await call(to: alice)
        try await come.answer(Self.buzz(into: hers))
        try await out.answered()
        try await wait(toHear: hers)
        try await wait(toHear: his)
        let host = bob.localAddress.host == "127.0.0.2" ? "127.0.0.3" : "127.0.0.2"
        await bob.move(to: try #require(SocketAddress(host: host, port: 0)))
        #expect(bob.localAddress.host == host)
        // Her engine sends to the new address once the re-INVITE is answered.
        #expect(await Polling.eventually { await come.media?.agreement.remote?.host == host })
        let before = await (come.media?.report().received.packets ?? 0, out.media?.report().received.packets ?? 0)
        let goesOn = await Polling.eventually {
            let now = await (come.media?.report().received.packets ?? 0, out.media?.report().received.packets ?? 0)
            return now.0 > before.0 + 25 && now.1 > before.1 + 25
        }
        #expect(goesOn)
        await out.hangUp()
        #expect(await come.ended().side == .them)
        await close(alice, bob)
    }

    @Test func `phones call each other by TLS, and one whose certificate is for another is not called`() async throws {
        let paths = TestCertificates.of("loopback")
        let trusting: @Sendable (inout PhoneConfiguration) -> Void = {
            $0.transports = [.tls]
            $0.security.authoritiesPath = TestCertificates.authority
        }
        let alice = try await phone(trusting)
        let bob = try await phone {
            trusting(&$0)
            $0.security.certificate = SIPSecurity.Certificate(path: paths.path, keyPath: paths.keyPath)
        }
        let ears = StreamSink(format: AudioFormat(sampleRate: Self.rate))
        let out = try await alice.call("sips:\(bob.localAddress)", CallConfiguration.buzz)
        let come = try await call(to: bob)
        try await come.answer(Self.buzz(into: ears))
        try await out.answered()
        try await wait(toHear: ears)
        await out.hangUp()
        #expect(await come.ended().side == .them)
        let domain = TestCertificates.of("domain")
        var security = SIPSecurity()
        security.certificate = SIPSecurity.Certificate(path: domain.path, keyPath: domain.keyPath)
        try await bob.secure(by: security)
        let third = try await phone(trusting)
        let end = try await third.call("sips:\(bob.localAddress)", CallConfiguration.buzz).ended()
        #expect(end.cause == .unreachable)
        #expect(end.description.contains("is for example.test, other.test, not for 127.0.0.1"))
        security.certificate?.path = "/nowhere.pem"
        let missing = security
        let error = await #expect(throws: PhoneError.self) { try await bob.secure(by: missing) }
        #expect(error?.code == .security)
        await third.close()
        await close(alice, bob)
    }

    @Test func `keys go by INFO where no telephone events were agreed on`() async throws {
        let alice = try await phone()
        let sockets = SIPEndpoint(try Self.plainAgent()) { _ in .failure }
        let address = try await sockets.open(at: .loopback(port: 0), [.udp])
        let out = try await alice.call("sip:\(address)", CallConfiguration.buzz)
        var key: Character?
        for await event in sockets.events {
            if case .incoming(let handle, _) = event {
                try await sockets.perform { agent, now in try agent.answer(handle, Self.plainSession, at: now) }
                try await out.answered()
                try await out.sendDTMF("7")
            }
            guard case .key(_, let relay) = event else { continue }
            key = relay.key
            break
        }
        #expect(key == "7")
        await #expect(throws: PhoneError.self) { try await out.sendDTMF("x") }
        await close(alice)
        await sockets.close()
    }

    private static func plainAgent() throws -> UserAgent {
        UserAgent(AgentConfiguration(identity: NameAddress(try SIPURI("sip:plain@127.0.0.1"))), seed: 1)
    }

    private static var plainSession: SessionConfiguration {
        let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        return SessionConfiguration(address: "127.0.0.1", media: [MediaConfiguration(port: 9, formats: [format])])
    }

    @Test func `who is refused, or has no codec in common, is told so`() async throws {
        let (alice, bob) = (try await phone { $0.codecs = ["PCMU"] }, try await phone { $0.codecs = ["PCMA"] })
        let refused = try await alice.call(uri(of: bob), CallConfiguration.buzz)
        await (try call(to: bob)).reject(status: 486)
        let error = await #expect(throws: PhoneCallEnd.self) { try await refused.answered() }
        #expect(error?.cause == .refused(status: 486))
        #expect(await refused.report == nil)
        let silent = try await alice.call(uri(of: bob), CallConfiguration.buzz)
        let come = try await call(to: bob)
        await #expect(throws: PhoneError.self) { try await come.answer(CallConfiguration.buzz) }
        #expect(await come.ended().cause == .failed)
        #expect(await silent.ended().cause == .refused(status: 488))
        await close(alice, bob)
    }

    @Test func `whoever gives up waiting takes the call back`() async throws {
        let (alice, bob) = (try await phone(), try await phone())
        let out = try await alice.call(uri(of: bob), CallConfiguration.buzz)
        let waiting = Task { try await out.answered() }
        let come = try await call(to: bob)
        try await come.ring()
        waiting.cancel()
        let error = await #expect(throws: PhoneCallEnd.self) { try await waiting.value }
        #expect(error?.cause == .cancelled)
        #expect(await come.ended().cause == .cancelled)
        await #expect(throws: PhoneError.self) { try await come.answer(CallConfiguration.buzz) }
        await close(alice, bob)
    }

    @Test func `a call that is led on is answered by whom it was led to`() async throws {
        let (alice, bob, carol) = (try await phone(), try await phone(), try await phone())
        let out = try await alice.call(uri(of: bob), CallConfiguration.buzz)
        try await call(to: bob).redirect(to: uri(of: carol))
        try await call(to: carol).answer(CallConfiguration.buzz)
        try await out.answered()
        await out.hangUp()
        #expect(await out.ended().cause == .hungUp)
        await close(alice, bob, carol)
    }

    @Test func `a call is handed on, and its first ends`() async throws {
        let (alice, carol) = (try await phone(), try await phone())
        let sockets = SIPEndpoint(try Self.obligingAgent()) { _ in .failure }
        let address = try await sockets.open(at: .loopback(port: 0), [.udp])
        let out = try await alice.call("sip:\(address)", CallConfiguration.buzz)
        let bob = Task {
            for await event in sockets.events {
                switch event {
                case .incoming(let handle, _):
                    try await sockets.perform { agent, now in try agent.answer(handle, Self.plainSession, at: now) }
                case .transferRequested(let handle, _):
                    _ = try await sockets.perform { agent, now in
                        try agent.acceptTransfer(handle, Self.plainSession, at: now)
                    }
                default: break
                }
            }
        }
        try await out.answered()
        try await out.transfer(to: uri(of: carol))
        let come = try await call(to: carol)
        try await come.answer(CallConfiguration.buzz)
        #expect(await out.ended().cause == .hungUp)
        await close(alice, carol)
        await sockets.close()
        try await bob.value
    }

    @Test(arguments: [MediaEncryption.none, .sdes, .dtls])
    func `two calls are joined without who joins them: nothing rings, and both hear each other by keys of their own`(
        encryption: MediaEncryption
    ) async throws {
        let alice = try await phone { $0.mediaEncryption = encryption }
        let carol = try await phone { $0.mediaEncryption = encryption }
        let bob = try await phone { ($0.takesTransfers, $0.mediaEncryption) = (true, encryption) }
        let first = try await alice.call(uri(of: bob), CallConfiguration.buzz)
        let atBob = try await call(to: bob)
        try await atBob.answer(CallConfiguration.buzz)
        try await first.answered()
        let second = try await alice.call(uri(of: carol), CallConfiguration.buzz)
        let atCarol = try await call(to: carol)
        try await atCarol.answer(CallConfiguration.buzz)
        try await second.answered()
        await #expect(throws: PhoneError.self) { try await first.transfer(to: first) }
        let told = await atCarol.sound?.agreed?.localSecurity
        try await first.transfer(to: second)
        var made: PhoneCall?
        for await case .transferRequested(let transfer) in atBob.events {
            // Descriptions with keys are too long for UDP (RFC 3261, section 18.1.1): the target is by TCP then.
            #expect(transfer.isAttended && transfer.target.hasPrefix(uri(of: carol)), "\(transfer.target)")
            made = try await atBob.acceptTransfer(transfer, CallConfiguration.buzz)
            break
        }
        try await made?.answered()
        #expect(await first.ended().cause == .hungUp)
        #expect(await second.ended().cause == .hungUp)
        #expect(await atCarol.ended().cause == .replaced)
        for await case .replaced(let former, let call) in carol.events {
            #expect(former === atCarol && call.callID == made?.callID)
            #expect(await call.state == .talking)
            let isTold = await call.sound?.agreed?.localSecurity
            #expect(encryption == .none || isTold != told)
            let media = try #require(await call.media)
            let former = media.report().received.packets
            let other = try #require(await made?.media)
            #expect(await Polling.eventually { media.report().received.packets > former + 10 })
            #expect(await Polling.eventually { other.report().received.packets > 10 })
            await call.hangUp()
            await call.ended()
            // One report has the sound of both.
            #expect(await atCarol.report == nil)
            #expect(await call.report?.legs.count == 1)
            break
        }
        #expect(await made?.ended().side == .them)
        #expect(await made?.report?.legs.first?.received.packets ?? 0 > 10)
        await close(alice, bob, carol)
    }

    private static func obligingAgent() throws -> UserAgent {
        var configuration = AgentConfiguration(identity: NameAddress(try SIPURI("sip:bob@127.0.0.1")))
        configuration.takesTransfers = true
        return UserAgent(configuration, seed: 2)
    }

    @Test func `accounts are registered, called and texted through a server, and gone at the end`() async throws {
        var configuration = ServerConfiguration(domain: "example.test")
        configuration.users = ["alice": "wonderland", "bob": "builder"].reduce(into: [:]) { users, user in
            users[user.key] = ServerUser(Credentials(userName: user.key, password: user.value))
        }
        let server = SIPEndpoint(SIPServer(configuration, seed: 3)) { _ in .failure }
        let way = "sip:\(try await server.open(at: .loopback(port: 0), [.udp, .tcp]));lr"
        func account(_ name: String, _ password: String) throws -> PhoneAccount {
            var account = try PhoneAccount("sip:\(name)@example.test", password: password)
            account.proxies = [way]
            return account
        }
        let (alice, bob) = (try await phone(), try await phone())
        let error = await #expect(throws: PhoneError.self) {
            try await alice.register(try account("alice", "red king"))
        }
        #expect(error?.code == .refused(status: 401))
        try await alice.register(try account("alice", "wonderland"))
        try await bob.register(try account("bob", "builder"))
        let out = try await alice.call("sip:bob@example.test", CallConfiguration.buzz)
        var text: String?
        for await event in bob.events {
            switch event {
            case .incoming(let call):
                #expect(call.remote == "sip:alice@example.test")
                try await call.answer(CallConfiguration.buzz)
                try await out.answered()
                try await alice.sendText("Tea?", to: "sip:bob@example.test")
            case .text(let come):
                #expect(come.sender == "sip:alice@example.test" && come.account == "sip:bob@example.test")
                text = come.text
            default: break
            }
            if text != nil { break }
        }
        #expect(text == "Tea?")
        // A receipt, and that somebody writes, find their way back.
        let id = try await alice.sendText("Milk?", to: "sip:bob@example.test", receipts: [.displayed])
        for await case .text(let come) in bob.events {
            await bob.noteComposing(to: come.sender)
            try await bob.sendReceipt(.delivered, of: come)
            try await bob.sendReceipt(.displayed, of: come)
            break
        }
        var told: [String] = []
        for await event in alice.events {
            switch event {
            case .composing("sip:bob@example.test", let isActive): told.append("writes \(isActive)")
            case .receipt(let receipt) where receipt.id == id: told.append(receipt.kind.rawValue)
            default: break
            }
            if told.count == 2 { break }
        }
        // Both leave at once, and only what was asked for.
        #expect(Set(told) == ["writes true", "displayed"])
        let refusal = await #expect(throws: PhoneError.self) {
            try await alice.sendText("?", to: "sip:eve@example.test")
        }
        #expect(refusal?.code == .refused(status: 404))
        await #expect(throws: PhoneError.self) {
            try await alice.call("sip:bob@example.test", from: "sip:bob@example.test")
        }
        await close(alice, bob)
        #expect(await out.ended().cause == .hungUp)
        let counts = await server.perform { server, _ in server.counts }
        #expect(counts.bindings == 0)
        await server.close()
    }

    @Test func `a phone that nobody holds any more ends its calls`() async throws {
        let bob = try await phone()
        var alice: Phone? = try await phone()
        let out = try #require(try await alice?.call(uri(of: bob), CallConfiguration.buzz))
        let come = try await call(to: bob)
        try await come.answer(CallConfiguration.buzz)
        try await out.answered()
        let events = try #require(alice?.events)
        alice = nil
        let end = await out.ended()
        #expect(end.side == .network && end.cause == .unreachable)
        // The other side hears of it, and who waits for events goes on.
        #expect(await come.ended().cause == .hungUp)
        for await event in events { Issue.record("\(event)") }
        await close(bob)
    }

    @Test func `what cannot be opened or called is said`() async throws {
        let alice = try await phone()
        let taken = await #expect(throws: PhoneError.self) { try await phone { $0.local = alice.localAddress } }
        #expect(taken?.code == .noPort)
        let wildcard = await #expect(throws: PhoneError.self) {
            try await phone { $0.local = SocketAddress(ipv4: 0, port: 0) }
        }
        #expect(wildcard?.code == .invalid)
        await #expect(throws: PhoneError.self) { try await alice.call("bob") }
        let header = await #expect(throws: PhoneError.self) {
            try await alice.call("sip:127.0.0.1", headers: [("X", "1\r\nY: 2")], CallConfiguration.buzz)
        }
        #expect(header?.code == .invalid)
        await #expect(throws: EngineError.self) {
            _ = try await phone { $0.codecs = ["none"] }.call(uri(of: alice), CallConfiguration.buzz)
        }
        await alice.close()
        let closed = await #expect(throws: PhoneError.self) { try await alice.call("sip:127.0.0.1") }
        #expect(closed?.code == .state)
        // The port is free again.
        let next = try await phone { $0.local = alice.localAddress }
        await close(next)
    }
}
