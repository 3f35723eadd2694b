import CallBasics
import Testing

@testable import MediaEngine

private let configuration = CardConfiguration(format: AudioFormat(sampleRate: 48_000))

private func seconds(_ seconds: Double) -> MediaTime { .zero + .milliseconds(Int64(seconds * 1000)) }

/// Decisions about cards that take long to open.
@Suite struct CardRouteStateTests {
    private let slow = NullCard(name: "slow")
    private let spare = NullCard(name: "spare")

    private func state() -> CardRouteState {
        CardRouteState(.playback, to: slow, fallbacks: [spare])
    }

    private func opened(_ attempt: CardRouteState.Attempt) -> Result<any CardEndpoint, CardError> {
        .success(NullCard().open(.playback, configuration, at: .zero))
    }

    private func attempt(_ actions: [CardRouteState.Action]) throws -> CardRouteState.Attempt {
        let attempts = actions.compactMap { if case .open(let attempt) = $0 { attempt } else { nil } }
        return try #require(attempts.first)
    }

    private func numberPut(_ actions: [CardRouteState.Action]) -> Int? {
        actions.compactMap { if case .put(_, let number) = $0 { number } else { nil } }.first
    }

    @Test func `an opening that takes too long is not waited for, and another card stands in`() throws {
        var state = state()
        let first = try attempt(state.use(at: .zero))
        #expect(first.card === slow && state.deadline == seconds(5))
        #expect(state.check(at: seconds(4.9)).isEmpty)
        let actions = state.check(at: seconds(5))
        #expect(state.lastError?.code == .timedOut)
        let second = try attempt(actions)
        #expect(second.card === spare)
        #expect(numberPut(state.finish(second, opened(second), at: seconds(5))) == second.number)
        // The opening that still goes on is not begun a second time.
        #expect(state.check(at: seconds(6)).isEmpty && state.current === spare)
        // A card that is still wanted is used, however late.
        #expect(numberPut(state.finish(first, opened(first), at: seconds(9))) == first.number)
        #expect(state.current === slow && state.deadline == nil && state.lastError == nil)
    }

    @Test func `a card does not stand in for itself under another object`() throws {
        let role = RoleCard(.call, playback: slow, capture: nil)
        var state = CardRouteState(.playback, to: slow, fallbacks: [role, spare])
        let first = try attempt(state.use(at: .zero))
        let second = try attempt(state.finish(first, .failure(CardError(.busy, "It is in use.")), at: seconds(1)))
        #expect(second.card === spare)
    }

    @Test func `a card that opens when nobody uses it any more is not put to use`() throws {
        var state = state()
        let first = try attempt(state.use(at: .zero))
        #expect(state.release().isEmpty && !state.isOpening)
        #expect(state.finish(first, opened(first), at: seconds(1)).isEmpty)
        #expect(state.current == nil && state.deadline == nil)
    }

    @Test func `who uses the card before an opening is over gets the one that opens`() throws {
        var state = state()
        let first = try attempt(state.use(at: .zero))
        _ = state.release()
        _ = state.use(at: seconds(1))
        #expect(numberPut(state.finish(first, opened(first), at: seconds(1.5))) == first.number)
        #expect(state.current === slow)
    }

    @Test func `who asks for a card before another has opened ends that request`() throws {
        var state = state()
        let first = try attempt(state.use(at: .zero))
        _ = state.finish(first, opened(first), at: .zero)
        let second = try attempt(state.setCard(NullCard(name: "a"), request: 1, at: seconds(1)))
        let actions = state.setCard(NullCard(name: "b"), request: 2, at: seconds(1))
        let answers = actions.compactMap { action in
            if case .answer(let request, let error) = action { (request, error) } else { nil }
        }
        #expect(answers.count == 1 && answers.first?.0 == 1 && answers.first?.1?.code == .superseded)
        #expect(state.finish(second, opened(second), at: seconds(2)).isEmpty)
        let third = try attempt(actions)
        #expect(numberPut(state.finish(third, opened(third), at: seconds(2))) == third.number)
        #expect(state.wanted.description.name == "b")
    }

    private func answers(_ actions: [CardRouteState.Action]) -> [(Int, CardFault?)] {
        actions.compactMap { if case .answer(let request, let error) = $0 { (request, error?.code) } else { nil } }
    }

    @Test func `the card in use, asked for under another object, stays in use although it is busy`() throws {
        var state = state()
        let first = try attempt(state.use(at: .zero))
        _ = state.finish(first, opened(first), at: .zero)
        // What a list that was made anew has for it.
        let again = NullCard(name: "slow")
        let second = try attempt(state.setCard(again, request: 1, at: seconds(1)))
        let actions = state.finish(second, .failure(CardError(.busy, "It is in use.")), at: seconds(1))
        let answers = answers(actions)
        #expect(answers.count == 1 && answers.first?.0 == 1 && answers.first?.1 == nil)
        #expect(state.current === again && state.wanted === again && state.deadline == nil)
        #expect(state.currentNumber == first.number && state.lastError == nil)
        // A role that is bound to it stands for it, too.
        let role = RoleCard(.call, playback: NullCard(name: "slow"), capture: nil)
        let third = try attempt(state.setCard(role, request: 2, at: seconds(2)))
        let more = state.finish(third, .failure(CardError(.busy, "It is in use.")), at: seconds(2))
        #expect(self.answers(more).first?.1 == nil && state.current === role)
        // Another one that is busy is refused.
        let fourth = try attempt(state.setCard(spare, request: 3, at: seconds(3)))
        let refused = state.finish(fourth, .failure(CardError(.busy, "It is in use.")), at: seconds(3))
        #expect(self.answers(refused).first?.1 == .busy && state.current === role)
    }

    @Test func `a card that is asked for twice is opened once`() throws {
        var state = state()
        let first = try attempt(state.use(at: .zero))
        _ = state.finish(first, opened(first), at: .zero)
        let second = try attempt(state.setCard(spare, request: 1, at: seconds(1)))
        let actions = state.setCard(spare, request: 2, at: seconds(1))
        #expect(answers(actions).map(\.1) == [.superseded])
        #expect(!actions.contains { if case .open = $0 { true } else { false } })
        let done = state.finish(second, opened(second), at: seconds(2))
        #expect(numberPut(done) == second.number && answers(done).map(\.0) == [2])
        #expect(state.current === spare && state.wanted === spare)
    }

    @Test func `who returns to a card that is still being opened waits for that opening`() throws {
        var state = state()
        let first = try attempt(state.use(at: .zero))
        _ = state.finish(first, opened(first), at: .zero)
        let other = NullCard(name: "other")
        let second = try attempt(state.setCard(spare, request: 1, at: seconds(1)))
        let third = try attempt(state.setCard(other, request: 2, at: seconds(1.1)))
        let actions = state.setCard(spare, request: 3, at: seconds(1.2))
        #expect(answers(actions).map(\.0) == [2] && answers(actions).map(\.1) == [.superseded])
        // A second opening would find the card busy because of the first.
        #expect(!actions.contains { if case .open = $0 { true } else { false } })
        #expect(state.finish(third, opened(third), at: seconds(1.3)).isEmpty && state.current === slow)
        let done = state.finish(second, opened(second), at: seconds(2))
        #expect(numberPut(done) == second.number && answers(done).map(\.0) == [3])
        #expect(state.current === spare && state.wanted === spare && state.deadline == nil)
    }

    @Test func `a card that is being opened is waited for under another object, too`() throws {
        // Each look gives another object; nothing is opened.
        let list = try CardList(devices: [], bindings: CardBindings())
        let card = try list.card(named: "alsa:hw:0")
        let role = RoleCard(.call, playback: card, capture: nil)
        for wanted in [card, role] as [any SoundCard] {
            var state = CardRouteState(.playback, to: wanted, fallbacks: [])
            let first = try attempt(state.use(at: .zero))
            let again = try list.card(named: "alsa:hw:0")
            #expect(again !== card)
            #expect(state.setCard(again, request: 1, at: seconds(1)).isEmpty)
            let done = state.finish(first, opened(first), at: seconds(2))
            #expect(numberPut(done) == first.number)
            #expect(answers(done).map(\.0) == [1] && answers(done).first?.1 == nil)
            #expect(state.current === again && state.wanted === again && state.deadline == nil)
        }
    }

    @Test func `a card of an earlier number that is gone is not missed`() throws {
        var state = state()
        let first = try attempt(state.use(at: .zero))
        _ = state.finish(first, opened(first), at: .zero)
        let second = try attempt(state.setCard(spare, request: 1, at: seconds(1)))
        _ = state.finish(second, opened(second), at: seconds(1))
        #expect(state.lose(first.number, at: seconds(1)).isEmpty && state.current === spare)
    }

    @Test func `pauses between attempts grow to two seconds`() throws {
        var state = CardRouteState(.playback, to: slow, fallbacks: [])
        let refusal = CardError(.busy, "It is in use.")
        var now = seconds(0)
        var next = try attempt(state.use(at: now))
        var pauses: [Duration] = []
        for _ in 0..<7 {
            _ = state.finish(next, .failure(refusal), at: now)
            let time = try #require(state.deadline)
            pauses.append(time - now)
            now = time
            next = try attempt(state.check(at: now))
        }
        #expect(pauses == [100, 200, 400, 800, 1600, 2000, 2000].map { .milliseconds($0) })
    }

    @Test func `a card that goes away as soon as it is open is not opened again at once`() throws {
        var state = CardRouteState(.playback, to: slow, fallbacks: [])
        var now = seconds(0)
        var next = try attempt(state.use(at: now))
        var pauses: [Duration] = []
        for _ in 0..<4 {
            _ = state.finish(next, opened(next), at: now)
            #expect(!state.lose(next.number, at: now + .milliseconds(10)).isEmpty)
            let time = try #require(state.deadline)
            pauses.append(time - now - .milliseconds(10))
            now = time
            next = try attempt(state.check(at: now))
        }
        #expect(pauses == [100, 200, 400, 800].map { .milliseconds($0) })
        // One that was used for a while is.
        _ = state.finish(next, opened(next), at: now)
        #expect(try attempt(state.lose(next.number, at: now + .seconds(1))).card === slow)
    }
}
