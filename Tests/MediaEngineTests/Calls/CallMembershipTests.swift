@testable import MediaEngine
import MediaEngineTesting
import SDP
import Synchronization
import Testing

/// Calls on one card that come and go while another goes on, and what is left when the last has gone.
@Suite struct CallMembershipTests {
    /// A call on the call card that hears `source`.
    private static func legs(_ source: CallSource, _ codec: AgreedCodec = "PCMU") -> [CallConfiguration] {
        let (left, right) = MemoryLink.pair()
        var speaking = CallConfiguration(network: .link(left, local: left.localAddress))
        speaking.agreement.remote = right.localAddress
        speaking.agreement.codec = codec
        speaking.source = source
        speaking.sink = .none
        var heard = CallConfiguration(network: .link(right, local: right.localAddress))
        heard.agreement.remote = left.localAddress
        heard.agreement.codec = codec
        return [speaking, heard]
    }

    /// What a card plays of a constant through PCMU for 3 s, while `others` do something each 100 ms.
    private static func played(
        _ others: (_ engine: CallEngine, _ step: Int) async throws -> Void
    ) async throws -> [Int16] {
        let file = TemporaryFile()
        let card = FileCard(playbackPath: file.path)
        let engine = try CallEngine(.virtual())
        try await engine.setCard(card, .playback)
        try await engine.setCard(named: "null", .capture)
        let constant = [Int16](repeating: 8000, count: 8000 * 4)
        let calls = try await engine.makeCalls(legs(.samples(constant, AudioFormat(sampleRate: 8000))))
        for step in 0..<30 {
            try await others(engine, step)
            try engine.advance(by: .milliseconds(100))
        }
        #expect(calls[1].report().received.lost == 0)
        await engine.shutDown()
        try card.finish()
        return try WAVFile.read(file.path).1
    }

    @Test func `who joins or leaves is not heard by the others, to the sample`() async throws {
        let alone = try await Self.played { _, _ in }
        #expect(alone.dropFirst(48_000).dropLast(4800).allSatisfy { $0 > 7000 })
        var visitors: [[Call]] = []
        let codecs: [AgreedCodec] = ["PCMU", AgreedCodec("opus", payloadType: 96), "G722", "L16"]
        let visited = try await Self.played { engine, step in
            // Calls that say nothing come, two at a time, with and without processing of what is captured.
            if step % 3 == 0 {
                var both = Self.legs(.silence, codecs[step / 3 % codecs.count])
                both[1].stream.voiceProcessing.suppressesNoise = step % 2 == 0
                both[0].agreement.direction = .inactive
                visitors.append(try await engine.makeCalls(both))
            }
            if step % 3 == 2, step > 5 { for call in visitors.removeFirst() { try await call.end() } }
        }
        #expect(visited == alone)
    }

    @Test func `the last call leaves no open card and nothing to tick`() async throws {
        let engine = try CallEngine(.virtual())
        try await engine.setCard(named: "null", .playback)
        try await engine.setCard(named: "null", .capture)
        let cards = engine.core.cards
        for _ in 0..<3 {
            #expect(cards.playback.openCount == 0 && cards.capture.openCount == 0)
            let calls = try await engine.makeCalls(Self.legs(.silence) + Self.legs(.silence))
            try engine.advance(by: .milliseconds(200))
            #expect(cards.playback.openCount == 1 && cards.capture.openCount == 1)
            for call in calls.dropLast() { try await call.end() }
            #expect(cards.playback.openCount == 1 && !engine.core.loop.isIdle)
            try await calls[3].end()
            #expect(cards.playback.openCount == 0 && cards.capture.openCount == 0)
            #expect(engine.core.loop.isIdle)
            #expect(engine.cardStatistics(.playback) == nil && engine.cardReports.isEmpty && engine.calls.isEmpty)
        }
    }

    @Test func `a busy card plays nothing, says so, and is used when it is free`() async throws {
        let engine = try CallEngine(.virtual())
        let card = BusyCard(free: .zero + .seconds(2))
        try await engine.setCard(card, .playback)
        try await engine.setCard(named: "null", .capture)
        let calls = try await engine.makeCalls(Self.legs(.silence))
        try engine.advance(by: .seconds(1))
        #expect(engine.core.cards.playback.openCount == 0)
        try engine.advance(by: .seconds(9))
        #expect(engine.core.cards.playback.openCount == 1)
        for call in calls { try await call.end() }
        await engine.shutDown()
        var told: [String] = []
        for await event in engine.events {
            guard case .card(let event) = event, event.direction == .playback else { continue }
            switch event.kind {
            case .busy: if told.last != "busy" { told.append("busy") }
            case .cardBack, .cardOpened: told.append("open")
            default: break
            }
        }
        #expect(told.prefix(2) == ["busy", "open"], "\(told)")
    }

    @Test func `a burst of digits is taken whole or refused whole`() async throws {
        let tone = AudioFormat(sampleRate: 8000)
        let pair = try await CallPair(saying: .samples([Int16](repeating: 0, count: 8000), tone))
        try pair.advance(100)
        let first = String(repeating: "12345678", count: 6)
        try pair.caller.sendDTMF(first, duration: .milliseconds(40), gap: .milliseconds(40))
        let error = #expect(throws: EngineError.self) {
            try pair.caller.sendDTMF(first, duration: .milliseconds(40), gap: .milliseconds(40))
        }
        guard case .state(let failure) = error else {
            Issue.record("expected a state, got \(String(describing: error))")
            return
        }
        #expect(failure.code == .queueFull)
        try pair.advance(6000)
        #expect(pair.callee.receivedKeys == first)
        // The places are free again.
        try pair.caller.sendDTMF(first, duration: .milliseconds(40), gap: .milliseconds(40))
        try pair.advance(6000)
        #expect(pair.callee.receivedKeys == first + first)
        #expect(throws: EngineError.self) { try pair.caller.sendInBandDTMF(String(repeating: "1", count: 300)) }
    }

    @Test(arguments: [nil, 0, 500] as [Int64?]) func `calls of Opus encode in different ticks`(
        agreedAfter milliseconds: Int64?
    ) async throws {
        let engine = try CallEngine(.virtual())
        let calls = try await Self.silentCalls(on: engine, agreedAfter: milliseconds)
        try engine.advance(by: .seconds(1))
        #expect(try Self.sent(by: calls, inTicks: 2, on: engine) == [8, 8])
        for call in calls { #expect(call.report().received.lost == 0) }
        // Places that are given back are taken again.
        for call in calls { try await call.end() }
        let phases = (0..<4).map { _ in engine.core.phases.take(of: 2) }
        #expect(phases.map(\.tick) == [0, 1, 0, 1])
    }

    @Test(arguments: [10, 40, 60] as [Int64]) func `calls share out the ticks of packets that are agreed on later`(
        milliseconds: Int64
    ) async throws {
        let engine = try CallEngine(.virtual())
        let ticks = Int(milliseconds / 10)
        let calls = try await Self.silentCalls(on: engine, agreedAfter: 500, packetTime: .milliseconds(milliseconds))
        #expect(calls.allSatisfy { call in call.state.withLock { $0.phase?.count } == ticks })
        try engine.advance(by: .seconds(1))
        let counts = try Self.sent(by: calls, inTicks: ticks, on: engine)
        #expect(counts.reduce(0, +) == 16 && counts.allSatisfy { $0 == 16 / ticks || $0 == (15 + ticks) / ticks })
        for call in calls {
            let received = call.report().received
            #expect(received.lost == 0 && received.late == 0 && received.discarded == 0)
        }
        for call in calls { try await call.end() }
        #expect(engine.core.phases.take(of: 2).tick == 0)
    }

    @Test(arguments: [40, 60] as [Int64]) func `calls with packets of another length are counted where they encode`(
        milliseconds: Int64
    ) async throws {
        let engine = try CallEngine(.virtual())
        let calls = try await Self.silentCalls(on: engine, agreedAfter: nil)
        // The next tick is the first of a packet of every length.
        try engine.advance(by: .milliseconds(960))
        for call in calls {
            var agreement = call.agreement
            agreement.packetTime = .milliseconds(milliseconds)
            try await call.update(agreement)
        }
        try engine.advance(by: .seconds(1))
        let phases = engine.core.phases
        let ticks = Int(milliseconds / 10)
        let first = Int(engine.now.nanoseconds / 10_000_000)
        let counts = try Self.sent(by: calls, inTicks: ticks, on: engine)
        #expect(counts.reduce(0, +) == 16)
        // The next one encodes where nobody does.
        let tick = phases.take(of: ticks).tick
        let next = ((-1 - tick - first) % ticks + ticks) % ticks
        #expect(counts[next] == 0, "\(counts), \(next)")
        for call in calls { try await call.end() }
        let free = (0..<ticks).map { _ in phases.take(of: ticks) }
        #expect(Set(free.map(\.tick)).count == ticks)
    }

    /// 16 calls of Opus that say nothing, agreed on as they are made, or some milliseconds later.
    private static func silentCalls(
        on engine: CallEngine,
        agreedAfter milliseconds: Int64?,
        packetTime: Duration? = nil
    ) async throws -> [Call] {
        var configurations: [CallConfiguration] = []
        for _ in 0..<8 {
            for var leg in legs(.silence, AgreedCodec("opus", payloadType: 97)) {
                leg.source = .silence
                leg.sink = .none
                leg.agreement.packetTime = packetTime
                configurations.append(leg)
            }
        }
        guard let milliseconds else { return try await engine.makeCalls(configurations) }
        let agreements = configurations.map(\.agreement)
        for index in configurations.indices {
            configurations[index].agreement = .nothing
            configurations[index].agreement.remote = agreements[index].remote
        }
        let calls = try await engine.makeCalls(configurations)
        try engine.advance(by: .milliseconds(milliseconds))
        for (call, agreement) in zip(calls, agreements) { try await call.update(agreement) }
        return calls
    }

    /// The packets that `calls` send in each of the next ticks.
    private static func sent(by calls: [Call], inTicks ticks: Int, on engine: CallEngine) throws -> [Int] {
        func total() -> Int { calls.reduce(0) { $0 + $1.report().sent.packets } }
        return try (0..<ticks).map { _ in
            let before = total()
            try engine.advance(by: .milliseconds(10))
            return total() - before
        }
    }
}

/// A card that another program has until some moment.
private final class BusyCard: SoundCard {
    let description = CardDescription(id: "test:busy", name: "busy", backend: "test", directions: [.playback])
    private let free: MediaTime
    private let card = NullCard()

    init(free: MediaTime) {
        self.free = free
    }

    func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint {
        guard now >= free else { throw CardError(.busy, "Another program has the card busy.") }
        return card.open(direction, configuration, at: now)
    }
}
