import CallBasics
import CallCore
import CallCoreTesting
import Foundation
import LocalMessaging
import MediaEngine
import TestSupport
import Testing

@testable import SharedPhone

/// A call screen that is another side of a socket, as it would be in a process of its own.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) final class ScreenRealTimeTests {
    private let path = "/tmp/shared-phone-\(UUID().uuidString)"
    private let group: GroupContainer
    private let engine: CallEngine
    private let screens = ScreenServer()
    private let bob: Phone
    private let alice: Phone

    init() async throws {
        group = try GroupContainer(directory: path)
        var configuration = CallEngineConfiguration()
        configuration.cardBindings.callPlayback = CardBinding("null")
        configuration.cardBindings.callCapture = CardBinding("null")
        engine = try CallEngine(configuration)
        var place = PhoneConfiguration()
        place.local = .loopback(port: 0)
        bob = try await Phone(engine, place, provider: screens)
        alice = try await Phone(CallEngine(), place)
        try await screens.open(for: bob, in: group)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private static let mute: @Sendable (inout CallConfiguration) -> Void = { ($0.source, $0.sink) = (.silence, .none) }

    private func close() async {
        await alice.close()
        await screens.close()
        await bob.close()
        await engine.shutDown()
    }

    /// A screen and what it was told first.
    private func screen() async throws -> (screen: ScreenClient, calls: [ShownCall]) {
        let screen = try await ScreenClient.connect(to: group)
        guard case .snapshot(let calls, _) = try await next(screen) else { throw CancellationError() }
        return (screen, calls)
    }

    /// What a screen is told next.
    private func next(_ screen: ScreenClient) async throws -> ScreenClient.Event {
        for await event in screen.events { return event }
        throw CancellationError()
    }

    /// The next call that a screen is told of.
    private func incoming(_ screen: ScreenClient) async throws -> CallUUID {
        for await case .incoming(let call, _) in screen.events { return call }
        throw CancellationError()
    }

    @Test func `a screen answers, holds and ends a call, and the sound is when it says so`() async throws {
        let (screen, calls) = try await screen()
        #expect(calls.isEmpty)
        let out = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        let call = try await incoming(screen)
        #expect(try await screen.perform(.answer, on: call) == .fulfilled)
        try await out.answered()
        #expect(try await screen.calls().calls.map(\.isConnected) == [true])
        try await screen.setAudioActive(true)
        #expect(try await screen.calls().isAudioActive)
        for await case .card(let event) in engine.events where event.direction == .playback {
            #expect(event.kind == .cardOpened)
            break
        }
        // One that does not fit spoils all.
        let outcomes = try await screen.perform([(call, .setHeld(true)), (CallUUID(), .end)])
        #expect(outcomes == [.failed(.transactionRefused), .failed(.unknownCall)])
        #expect(try await screen.perform(.setHeld(true), on: call) == .fulfilled)
        #expect(try await screen.perform(.setMuted(true), on: call) == .fulfilled)
        let shown = try #require(try await screen.calls().calls.first)
        #expect(shown.update.isHeld && shown.isMuted && shown.call == call && !shown.isOutgoing)
        #expect(try await screen.perform(.end, on: call) == .fulfilled)
        #expect(await out.ended().side == .them)
        #expect(try await screen.calls().calls.isEmpty)
        try await screen.setAudioActive(false)
        await screen.close()
        await close()
    }

    @Test func `a call goes on without its screen, and the next one is told of it first`() async throws {
        var (screen, calls) = try await screen()
        let out = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        let call = try await incoming(screen)
        #expect(try await screen.perform(.answer, on: call) == .fulfilled)
        try await out.answered()
        await screen.close()
        let before = await out.media?.report().received.packets ?? 0
        #expect(await Polling.eventually { await out.media?.report().received.packets ?? 0 > before })
        // A call that comes meanwhile waits for a screen.
        let second = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        for await case .progress(status: 180) in second.events { break }
        (screen, calls) = try await self.screen()
        #expect(calls.map(\.isConnected) == [true, false] && calls.first?.call == call)
        #expect(try await screen.perform(.end, on: calls[1].call) == .fulfilled)
        #expect(await second.ended().cause == .refused(status: 603))
        #expect(try await screen.perform(.end, on: call) == .fulfilled)
        _ = await out.ended()
        await screen.close()
        await close()
    }

    @Test func `a call whose core does not come back is told to have ended`() async throws {
        let (screen, _) = try await screen()
        let first = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        var call = try await incoming(screen)
        await screens.close()
        #expect(try await next(screen) == .interrupted)
        try await screens.open(for: bob, in: group)
        guard case .snapshot(let calls, _) = try await next(screen) else { throw CancellationError() }
        #expect(calls.map(\.call) == [call])
        await first.hangUp()
        #expect(try await next(screen) == .ended(call, .remoteEnded))

        _ = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        call = try await incoming(screen)
        await screens.close()
        #expect(try await next(screen) == .interrupted)
        #expect(try await next(screen) == .ended(call, .failed))
        await screen.close()
        await close()
    }

    @Test func `a screen may refuse a call, and then nothing rings`() async throws {
        let screen = try await ScreenClient.connect(to: group) { _, _ in .blocked }
        guard case .snapshot = try await next(screen) else { return _ = Issue.record("not told") }
        let out = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        #expect(await out.ended().cause == .refused(status: 603))
        #expect(try await screen.calls().calls.isEmpty)
        await screen.close()
        await close()
    }

    @Test func `a screen calls; a push is shown at once; who only looks is no screen`() async throws {
        let (screen, _) = try await screen()
        let (call, uri) = (CallUUID(), "sip:\(alice.localAddress)")
        async let outcome = screen.perform(.start(to: uri), on: call)
        for await case .incoming(let come) in alice.events {
            #expect(try await outcome == .fulfilled)
            try await come.answer(Self.mute)
            break
        }
        for await case .outgoing(call, _, .connected) in screen.events { break }
        let other = try await ScreenClient.connect(to: group, isScreen: false)
        #expect(try await other.calls().calls.map(\.isOutgoing) == [true])
        let pushed = try #require(try await other.receive(PushPayload(callID: "c1", from: "sip:carol@example.org")))
        #expect(try await incoming(screen) == pushed)
        #expect(try await other.receive(PushPayload(callID: "c1")) == pushed)
        let shown = try #require(try await other.calls().calls.last)
        #expect(shown.update.isPlaceholder && shown.update.remote == "sip:carol@example.org")
        try await other.resetCalls()
        #expect(try await other.calls().calls.isEmpty)
        await other.close()
        await screen.close()
        await close()
    }

    @Test func `a call that one screen has answered goes on, whatever another one says of it`() async throws {
        let (first, _) = try await screen()
        let (answered, answer) = AsyncStream<Void>.makeStream()
        let second = try await ScreenClient.connect(to: group) { _, _ in
            for await _ in answered { break }
            return .busy
        }
        guard case .snapshot = try await next(second) else { return _ = Issue.record("not told") }
        let out = try await alice.call("sip:\(bob.localAddress)", Self.mute)
        let call = try await incoming(first)
        #expect(try await first.perform(.answer, on: call) == .fulfilled)
        answer.yield(())
        #expect(await Polling.eventually { await screens.asked.isEmpty })
        #expect(try await first.perform(.end, on: call) == .fulfilled)
        #expect(await out.ended().side == .them)
        await first.close()
        await second.close()
        await close()
    }

    @Test func `what one screen waits for fails when another one ends all calls`() async throws {
        await screens.close()
        let calls = IdleCalls()
        try await screens.open(showing: calls, in: group)
        let (first, _) = try await screen()
        let second = try await ScreenClient.connect(to: group, isScreen: false)
        async let outcome = first.perform(.setHeld(true), on: CallUUID())
        for await _ in calls.asked { break }
        try await second.resetCalls()
        #expect(try await outcome == .failed(.unknownCall))
        await first.close()
        await second.close()
        await close()
    }
}
