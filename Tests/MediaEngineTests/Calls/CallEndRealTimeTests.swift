import Glibc
import TestSupport
import Testing

@testable import MediaEngine

/// Calls that end beside what is slow, and engines that end by themselves.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine) struct CallEndRealTimeTests {
    /// A call on a socket, without cards.
    private static func quiet(_ name: String) -> CallConfiguration {
        var call = CallConfiguration(network: .udp(local: .loopback(port: 0)))
        call.name = name
        call.agreement.codec = "PCMU"
        call.source = .silence
        call.sink = .none
        return call
    }

    @Test func `a call ends while the card of another is still being opened`() async throws {
        let engine = try CallEngine()
        let card = GatedCard(name: "slow", isOpen: false)
        var slow = Self.quiet("slow")
        slow.sink = .card(card)
        let configuration = slow
        let waiting = Task { try await engine.makeCall(configuration) }
        try await card.begun.wait { $0 == 1 }
        let other = try await engine.makeCall(Self.quiet("other"))
        try await other.end()
        #expect(other.hasEnded && card.opened.value == 0)
        card.letOpen()
        let call = try await waiting.value
        try await call.end()
        await engine.shutDown()
        #expect(engine.calls.isEmpty)
    }

    @Test func `a call ends although the pipe that it plays gives nothing`() async throws {
        let engine = try CallEngine()
        let file = TemporaryFile()
        try #require(mkfifo(file.path, 0o600) == 0)
        let pipe = open(file.path, O_RDWR)
        try #require(pipe >= 0)
        defer { close(pipe) }
        // The header of a mono file of 8000 Hz, and no sample.
        let header: [UInt8] =
            Array("RIFF".utf8) + [0xFF, 0xFF, 0xFF, 0x7F] + Array("WAVEfmt ".utf8)
            + [16, 0, 0, 0, 1, 0, 1, 0, 0x40, 0x1F, 0, 0, 0x80, 0x3E, 0, 0, 2, 0, 16, 0]
            + Array("data".utf8) + [0xFF, 0xFF, 0xFF, 0x7F]
        #expect(write(pipe, header, header.count) == header.count)
        var playing = Self.quiet("pipe")
        playing.source = .file(file.path)
        let heard = TickCounter()
        playing.sink = .filter(heard)
        let call = try await engine.makeCall(playing)
        try await heard.wait(ticks: 5)
        try await call.end()
        #expect(call.hasEnded && engine.calls.isEmpty)
        await engine.shutDown()
    }

    @Test func `nothing ticks after the last call has ended`() async throws {
        let engine = try CallEngine()
        let heard = TickCounter()
        var listening = Self.quiet("A")
        listening.sink = .filter(heard)
        let call = try await engine.makeCall(listening)
        try await heard.wait(ticks: 10)
        try await call.end()
        let count = engine.tickStatistics.count
        pass(.seconds(1))
        #expect(engine.tickStatistics.count == count)
        // The next one ticks again, in time.
        let again = TickCounter()
        listening.sink = .filter(again)
        let next = try await engine.makeCall(listening)
        try await again.wait(ticks: 10)
        #expect(engine.tickStatistics.skippedCount == 0)
        try await next.end()
        await engine.shutDown()
    }

    @Test func `an engine that nobody holds ends its calls, and is gone`() async throws {
        var engine: CallEngine? = try CallEngine()
        weak let core = engine?.core
        var call = try await engine?.makeCall(Self.quiet("left"))
        let events = try #require(call?.events)
        engine = nil
        for await _ in events {}
        #expect(call?.hasEnded == true)
        call = nil
        #expect(await Polling.eventually { core == nil })
    }

    @Test func `an engine that is dropped with running calls and their files frees all`() async throws {
        let (file, both) = (TemporaryFile(), TemporaryFile())
        var engine: CallEngine? = try CallEngine()
        weak let core = engine?.core
        var configuration = Self.quiet("left")
        configuration.heldSound = .tone
        configuration.sink = .file(file.path)
        var call = try await engine?.makeCall(configuration)
        weak let leftCall = call
        weak let stream = call?.stream
        weak let heldSound = call?.stream.heldSound
        try await call?.startRecording(stereo: both.path)
        call?.isOnHold = true
        let events = try #require(call?.events)
        #expect(leftCall != nil && stream != nil && heldSound != nil)
        engine = nil
        for await _ in events {}
        call = nil
        #expect(
            await Polling.eventually { core == nil && leftCall == nil && stream == nil && heldSound == nil }
        )
        #expect(try WAVFile.read(both.path).0.channelCount == 2)
    }

    @Test func `calls end beside each other, in the time of one`() async throws {
        let engine = try CallEngine()
        var calls: [Call] = []
        for number in 0..<200 {
            let (link, _) = MemoryLink.pair()
            var configuration = Self.quiet("\(number)")
            configuration.network = .link(link, local: link.localAddress)
            calls.append(try await engine.makeCall(configuration))
        }
        let before = engine.tickStatistics.count
        try await engine.endCalls(calls)
        #expect(engine.calls.isEmpty && calls.allSatisfy(\.hasEnded))
        // One after the other, each waits for a tick of its own.
        #expect(engine.tickStatistics.count - before < 150)
        await engine.shutDown()
    }

    @Test func `many calls are made and ended beside others, which lose nothing`() async throws {
        let engine = try CallEngine()
        let (left, right) = MemoryLink.pair()
        var speaking = Self.quiet("A")
        speaking.network = .link(left, local: left.localAddress)
        speaking.agreement.remote = right.localAddress
        speaking.source = .samples([Int16](repeating: 4000, count: 8000 * 60), AudioFormat(sampleRate: 8000))
        var hearing = Self.quiet("B")
        hearing.network = .link(right, local: right.localAddress)
        hearing.agreement.remote = left.localAddress
        let calls = try await engine.makeCalls([speaking, hearing])
        for round in 0..<10 {
            var others: [Call] = []
            for number in 0..<40 {
                let (link, _) = MemoryLink.pair()
                var other = Self.quiet("\(round)-\(number)")
                other.network = .link(link, local: link.localAddress)
                others.append(try await engine.makeCall(other))
            }
            #expect(engine.calls.count == 42)
            for other in others { try await other.end() }
        }
        #expect(engine.calls.count == 2)
        #expect(await Polling.eventually { calls[1].report().received.packets > 50 })
        // How late ticks are is the machine's affair; what comes late is not lost.
        #expect(calls[1].report().received.lost == 0)
        await engine.shutDown()
    }
}
