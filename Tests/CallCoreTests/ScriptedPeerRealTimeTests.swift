@testable import CallCore
import MediaEngine
import SIPTesting
import TestSupport
import Testing

/// A phone beside the registrar and the peers of `SIPTesting`, by what users of both see.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct ScriptedPeerRealTimeTests {
    private let engine: CallEngine

    init() throws { engine = try CallEngine() }

    /// A phone of Alice, registered, the same one at each start.
    private func phone(at registrar: TestRegistrar, push: PhonePush? = nil) async throws -> Phone {
        let phone = try await Phone.onLoopback(engine) { $0.instance = "00000000-0000-1000-8000-00000000000A" }
        var account = try PhoneAccount(registrar.address(of: "alice"), password: "wonderland")
        account.proxies = [registrar.proxy]
        account.push = push
        try await phone.register(account)
        return phone
    }

    private static let passwords = ["alice": "wonderland", "bob": "builder"]

    /// What a peer hears until something is.
    private func events(of peer: ScriptedPeer, until isLast: (ScriptedPeer.Event) -> Bool) async -> [ScriptedPeer.Event]
    {
        var heard: [ScriptedPeer.Event] = []
        for await event in peer.events {
            heard.append(event)
            if isLast(event) { break }
        }
        return heard
    }

    private static func isEnd(_ event: ScriptedPeer.Event) -> Bool { if case .ended = event { true } else { false } }

    @Test func `a peer behind the registrar rings, answers, holds, resumes, presses a key and hangs up`() async throws {
        let registrar = try await TestRegistrar(passwords: Self.passwords)
        let script: [ScriptedPeer.Step] = [.ring, .answer, .hold, .resume, .key("5"), .hangUp]
        let bob = try await ScriptedPeer("bob", at: registrar, password: "builder", called: script)
        let alice = try await phone(at: registrar)
        #expect(await registrar.bindingCount == 2)
        let call = try await alice.call(bob.address, CallConfiguration.buzz)
        var told: [String] = []
        for await event in call.events {
            switch event {
            case .progress(let status): told.append("\(status)")
            case .answered: told.append("answered")
            case .held(by: .them): told.append("held")
            case .resumed(by: .them): told.append("resumed")
            case .key(let key): told.append("key \(key)")
            case .ended(let end): told.append("ended by \(end.side)")
            default: break
            }
        }
        #expect(told == ["180", "answered", "held", "resumed", "key 5", "ended by them"])
        let heard = await events(of: bob, until: Self.isEnd)
        #expect(heard == [.incoming(from: "sip:alice@example.test"), .answered, .ended(byOther: false, status: nil)])
        await bob.close()
        #expect(await registrar.bindingCount == 1)
        await alice.close()
        await registrar.close()
        await engine.shutDown()
    }

    @Test func `a peer sends a text, calls, hears of hold and resume, and that its transfer is declined`() async throws
    {
        let registrar = try await TestRegistrar(passwords: Self.passwords)
        let alice = try await phone(at: registrar)
        let bob = try await ScriptedPeer("bob", at: registrar, password: "builder")
        try await bob.send("Hello", to: "sip:alice@example.test")
        try await bob.call(
            "sip:alice@example.test",
            [.awaitProgress, .awaitAnswer, .awaitHold, .awaitResume, .transfer(to: bob.address), .hangUp]
        )
        for await event in alice.events {
            if case .text(let text) = event { #expect(text.text == "Hello" && text.sender == "sip:bob@example.test") }
            guard case .incoming(let call) = event else { continue }
            try await call.ring()
            try await call.answer(CallConfiguration.buzz)
            await call.setHeld(true)
            for await event in call.events { if case .held(by: .us) = event { break } }
            await call.setHeld(false)
            break
        }
        let heard = await events(of: bob, until: Self.isEnd)
        #expect(
            heard == [
                .progress(180), .answered, .held(true), .held(false), .transferred(603),
                .ended(byOther: false, status: nil),
            ]
        )
        await alice.close()
        await bob.close()
        await registrar.close()
        await engine.shutDown()
    }

    @Test(arguments: [200, 486, 603])
    func `a peer sends a phone to somebody: it goes, finds them busy, or does not want to`(status: Int) async throws {
        let alice = try await Phone.onLoopback(engine) { $0.takesTransfers = true }
        let carol = try await ScriptedPeer(called: status == 486 ? [.refuse(486)] : [.answer])
        let bob = try await ScriptedPeer()
        var script: [ScriptedPeer.Step] = [.awaitAnswer, .transfer(to: carol.address)]
        if status != 486 { script.append(.hangUp) }
        try await bob.call("sip:\(alice.localAddress)", script)
        var told: [String] = []
        for await case .incoming(let call) in alice.events {
            try await call.answer(CallConfiguration.buzz)
            var made: PhoneCall?
            for await event in call.events {
                switch event {
                case .transferRequested(let transfer):
                    #expect(transfer.target == carol.address && !transfer.isAttended)
                    if status == 603 {
                        await call.refuseTransfer(transfer)
                    } else {
                        made = try await call.acceptTransfer(transfer, CallConfiguration.buzz)
                    }
                case .held(by: .us): told.append("held")
                case .resumed(by: .us):
                    told.append("resumed")
                    await call.hangUp()
                case .ended(let end): #expect(end.cause == .hungUp && end.side == (status == 486 ? .us : .them))
                default: break
                }
            }
            if status == 200 {
                try await made?.answered()
                #expect(await made?.state == .talking)
                #expect(await alice.currentCalls.count == 1)
                await made?.hangUp()
            }
            break
        }
        // What it holds for the transfer it resumes when nothing comes of that.
        switch status {
        case 486: #expect(told == ["held", "resumed"])
        case 603: #expect(told == [])
        default: #expect(!told.contains("resumed"))
        }
        let heard = await events(of: bob, until: Self.isEnd)
        #expect(heard.contains(.transferred(status)), "\(heard)")
        await alice.close()
        for peer in [bob, carol] { await peer.close() }
        await engine.shutDown()
    }

    @Test func `a peer refuses, leads elsewhere, and takes its own call back`() async throws {
        let alice = try await Phone.onLoopback(engine)
        let busy = try await ScriptedPeer(called: [.refuse(486)])
        let elsewhere = try await ScriptedPeer(called: [.redirect(to: busy.address)])
        for peer in [busy, elsewhere] {
            let end = try await alice.call(peer.address, CallConfiguration.buzz).ended()
            #expect(end.cause == .refused(status: 486))
        }
        try await busy.call("sip:\(alice.localAddress)", [.awaitProgress, .hangUp])
        for await event in alice.events {
            guard case .incoming(let call) = event else { continue }
            try await call.ring()
            #expect(await call.ended().cause == .cancelled)
            break
        }
        let early = try await ScriptedPeer(called: [.hold])
        let call = try await alice.call(early.address, CallConfiguration.buzz)
        let heard = await events(of: early) { if case .failed = $0 { true } else { false } }
        #expect(heard.last == .failed(.hold, reason: "The call is not at that point."))
        await call.hangUp()
        #expect(await events(of: early, until: Self.isEnd) == [.ended(byOther: true, status: 487)])
        await alice.close()
        for peer in [busy, elsewhere, early] { await peer.close() }
        await engine.shutDown()
    }

    @Test func `a registrar does wrong what it is told to, and refuses whom it does not know`() async throws {
        let once = TestRegistrar.Fault(.answer(503), method: .register, times: 1)
        let always = TestRegistrar.Fault(.answer(480), method: .invite)
        let registrar = try await TestRegistrar(passwords: Self.passwords, faults: [once, always])
        var error = await #expect(throws: TestingError.self) {
            try await ScriptedPeer("bob", at: registrar, password: "builder")
        }
        #expect(error?.code == .notRegistered(503))
        error = await #expect(throws: TestingError.self) {
            try await ScriptedPeer("bob", at: registrar, password: "wonderland")
        }
        #expect(error?.code == .notRegistered(401) || error?.code == .notRegistered(403))
        let bob = try await ScriptedPeer("bob", at: registrar, password: "builder")
        let alice = try await phone(at: registrar)
        let end = try await alice.call(bob.address, CallConfiguration.buzz).ended()
        #expect(end.cause == .refused(status: 480))
        await bob.close()
        await #expect(throws: TestingError.self) { try await bob.call(registrar.address(of: "alice")) }
        await alice.close()
        await registrar.close()
        await engine.shutDown()
    }

    @Test func `a call waits at the registrar for a phone that is woken by a push`() async throws {
        let registrar = try await TestRegistrar(passwords: Self.passwords, wakesPhones: true)
        let token = String(repeating: "0F", count: 32)
        let push = try PhonePush(team: "ABCD1234", bundle: "org.example.phone", callToken: token, textToken: nil)
        let bob = try await ScriptedPeer("bob", at: registrar, password: "builder")
        let sleeping = try await phone(at: registrar, push: push)
        await sleeping.close(keepingBindings: true)
        try await bob.call(registrar.address(of: "alice"), [.awaitAnswer, .hangUp])
        var id: String?
        for await event in registrar.events {
            guard case .push(user: "alice", let callID, _, isCall: true) = event else { continue }
            id = callID
            break
        }
        let alice = try await phone(at: registrar, push: push)
        for await event in alice.events {
            guard case .incoming(let call) = event else { continue }
            #expect(call.callID == id)
            try await call.answer(CallConfiguration.buzz)
            #expect(await call.ended().side == .them)
            break
        }
        #expect(await events(of: bob, until: Self.isEnd).contains(.answered))
        await alice.close()
        await bob.close()
        await registrar.close()
        await engine.shutDown()
    }

    @Test func `a phone that closes takes no call any more, and writes those down that it ends`() async throws {
        let alice = try await Phone.onLoopback(engine)
        let (mute, bob) = (try await ScriptedPeer(called: []), try await ScriptedPeer())
        _ = try await alice.call(mute.address, CallConfiguration.buzz)
        for await case .incoming in mute.events { break }
        // As while it waits for the answer to what it takes back, which is a second at most.
        await alice.setClosed(true)
        try await bob.call("sip:\(alice.localAddress)")
        let heard = await events(of: bob, until: Self.isEnd)
        #expect(heard == [.ended(byOther: true, status: 480)])
        await alice.setClosed(false)
        await alice.close()
        #expect(await alice.callLog.map(\.outcome) == [.cancelled])
        await mute.close()
        await bob.close()
        await engine.shutDown()
    }
}

extension Phone {
    fileprivate func setClosed(_ isClosed: Bool) { self.isClosed = isClosed }
}
