import CAllocationCounter
import Foundation
@testable import MediaEngine
import MediaEngineTesting
import RTP
import Synchronization
import TestSupport
import Testing

/// Ticks neither allocate nor lock, in any shape of graph, whatever happens around them.
///
/// Under the thread sanitizer, which brings an allocator and locks of its own, the tests are skipped.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: allocation_counter_is_active() != 0, "the thread sanitizer has replaced the allocator")
)
struct SteadyTickRealTimeTests {
    private static let codecs = ["opus", "PCMU", "PCMA", "G722", "L16"]
    private static let none = TickingThread.Counts()

    /// What happens while the ticks of a call are counted.
    enum Situation: String, CaseIterable, CustomStringConvertible {
        case nothing
        case loss
        case redundancy
        case muteAndHold
        case keys
        case inBandTones
        case files
        case recording
        case converters
        case streams

        var description: String { rawValue }
    }

    // MARK: Calls

    /// Every situation with every codec, or each with one.
    private static let cases: [(String, Situation)] = thorough(
        codecs.flatMap { codec in Situation.allCases.map { (codec, $0) } },
        quick: Situation.allCases.enumerated().map { (codecs[$0 % codecs.count], $1) }
    )

    @Test(arguments: cases)
    func `a call between two legs`(codec: String, situation: Situation) async throws {
        let file = TemporaryFile()
        defer { withExtendedLifetime(file) {} }
        let path = file.path
        let (left, right) = MemoryLink.pair()
        let engine = try CallEngine(.virtual())
        let format = try engine.registry.codec(named: codec).description.format
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.name = "A"
        calling.agreement.remote = right.localAddress
        calling.agreement.codec = AgreedCodec(codec)
        calling.stream.fec = .on
        calling.source = .samples(chirps(14, format), format)
        calling.sink = .none
        var called = calling
        called.name = "B"
        called.network = .link(right, local: right.localAddress)
        called.agreement.remote = left.localAddress
        try configure(&calling, &called, for: situation, path: path)
        let calls = try await engine.makeCalls([calling, called])
        defer { removeFiles(path) }
        if situation == .recording {
            for call in calls {
                let name = "\(path).\(call.name)"
                try await call.startRecording(near: "\(name).near.wav", far: "\(name).far.wav")
            }
        }
        let counts = try count(engine) { tick in
            for call in calls { try act(on: call, in: situation, at: tick) }
        }
        #expect(counts == Self.none)
        #expect(calls[1].report().received.packets >= 400)
    }

    @Test func `a call over UDP sockets`() async throws {
        let engine = try CallEngine(.virtual())
        let format = AudioFormat(sampleRate: 8000)
        let ports = try [UDPSocket(bind: .loopback(port: 0)), UDPSocket(bind: .loopback(port: 0))].map(\.localAddress)
        let calls = try await engine.makeCalls(
            (0..<2).map { leg in
                var call = CallConfiguration(network: .udp(local: ports[leg]))
                call.agreement.remote = ports[1 - leg]
                call.agreement.codec = "PCMU"
                call.source = .samples(chirps(14, format), format)
                call.sink = .none
                return call
            }
        )
        #expect(try count(engine) { _ in } == Self.none)
        #expect(calls[1].report().received.packets >= 400)
    }

    @Test(arguments: thorough(codecs, quick: ["opus"])) func `calls on a card, mixed`(codec: String) async throws {
        var configuration = CallEngineConfiguration.virtual()
        configuration.cardBindings = try CardBindings(flags: ["au": "null", "aq": "null"], environment: [:])
        let engine = try CallEngine(configuration)
        let configurations = (0..<2).flatMap { _ in
            let (left, right) = MemoryLink.pair()
            return [(left, right), (right, left)].map { own, other in
                var call = CallConfiguration(network: .link(own, local: own.localAddress))
                call.agreement.remote = other.localAddress
                call.agreement.codec = AgreedCodec(codec)
                return call
            }
        }
        let calls = try await engine.makeCalls(configurations)
        let conference = engine.makeConference()
        for call in calls.prefix(2) { try await conference.add(call) }
        let keys = engine.core.state.withLock { $0.sections.keyTones }
        let counts = try count(engine) { tick in
            guard tick % 100 == 0 else { return }
            let digit = DTMFDigit.all[tick / 100 % 16]
            try engine.core.loop.play(.play(digit, duration: 100_000_000, gap: 0, requestedAt: engine.now), on: keys)
        }
        #expect(counts == Self.none)
        #expect(calls[3].report().received.packets >= 400)
    }

    @Test(arguments: ["PCMU", "opus"]) func `a call whose other side changes its codec`(codec: String) async throws {
        let (near, far) = MemoryLink.pair()
        let engine = try CallEngine(.virtual())
        let types: [(String, UInt8)] = [("PCMU", 0), ("opus", 96), ("G722", 9)]
        let codecs = try types.map { (codec: try engine.registry.codec(named: $0.0), payloadType: $0.1) }
        let sender = try ChangingSender(codecs, period: 20, count: 700)
        var configuration = CallConfiguration(network: .link(far, local: far.localAddress))
        configuration.agreement.codec = AgreedCodec(codec)
        configuration.agreement.acceptedCodecs = types.filter { $0.0 != codec }.map {
            AgreedCodec($0.0, payloadType: $0.1)
        }
        configuration.source = .silence
        configuration.sink = .none
        let call = try await engine.makeCall(configuration)
        let counts = try count(engine) { tick in
            // What is due until the control side is asked again, but for one packet in seven.
            for index in tick / 2..<tick / 2 + 5 where index % 7 != 3 {
                let datagram = sender.datagrams[index]
                near.send(datagram.span, to: far.localAddress, at: MediaTime.zero + .milliseconds(20) * index)
            }
        }
        #expect(counts == Self.none)
        #expect(call.report().received.codecChanges > 20)
    }

    @Test(arguments: [PlayoutDelay.automatic, .fixed(.milliseconds(60))])
    func `a call whose other side leaves out silence`(delay: PlayoutDelay) async throws {
        let (near, far) = MemoryLink.pair()
        let engine = try CallEngine(.virtual())
        let sender = try ChangingSender([(try engine.registry.codec(named: "PCMU"), 0)], period: 20, count: 700)
        // Of 20 packets 10 hold sound; the one behind them becomes comfort noise, and the others are not sent.
        let datagrams = sender.datagrams.enumerated().map { index, sound -> [UInt8] in
            guard index % 20 == 10 else { return sound }
            return [sound[0], 13] + sound[2..<RTPHeader.byteCount] + [45, 100, 100]
        }
        var configuration = CallConfiguration(network: .link(far, local: far.localAddress))
        configuration.agreement.codec = "PCMU"
        configuration.stream.playoutDelay = delay
        configuration.source = .silence
        configuration.sink = .none
        let call = try await engine.makeCall(configuration)
        let counts = try count(engine) { tick in
            for index in tick / 2..<tick / 2 + 5 where index % 20 <= 10 {
                var datagram = datagrams[index]
                let number = UInt16(index / 20 * 11 + index % 20)
                datagram[2] = UInt8(number >> 8)
                datagram[3] = UInt8(truncatingIfNeeded: number)
                near.send(datagram.span, to: far.localAddress, at: MediaTime.zero + .milliseconds(20) * index)
            }
        }
        #expect(counts == Self.none)
        let received = call.report().received
        #expect(received.comfortNoise > 20 && received.concealedMs == 0)
    }

    // MARK: Other shapes

    @Test func `a tone stream on two cards that rings from a file`() throws {
        try TestFiles.withTemporaryPath { path in
            let format = AudioFormat(sampleRate: 48000)
            let writer = try WAVSink(WAVWriter(path: path, format: format))
            _ = writer.write(chirps(1, format).span)
            try writer.close()
            let repetition = FileRepetition.forever(pause: .milliseconds(200))
            let player = try FilePlayerFilter(path: path, format: format, repetition: repetition)
            let tones = ToneFilter(format: format)
            let duration = ToneStream.tickDuration
            var graph = Graph(tickDuration: duration)
            try graph.connect(player, to: tones)
            let rig = try CardRig()
            for card in [NullCard(), NullCard(name: "other")] {
                let output = rig.route(.playback, card, CardRole.ringer.configuration(format))
                try graph.connect(tones, to: output.filter)
            }
            let runner = GraphRunner()
            runner.install(try GraphPlan(graph))
            let counts = try TickingThread.count(
                tick: { runner.tick(at: MediaTime.zero + duration * $0) },
                control: { tick in
                    player.feed.serve()
                    rig.serve()
                    runner.drainEvents { _ in }
                    let digit = DTMFDigit.all[tick / 50 % 16]
                    if tick % 50 == 0 {
                        runner.send(.play(digit, duration: 80_000_000, gap: 0, requestedAt: .zero), to: tones)
                    }
                    if tick % 200 == 100 {
                        try tones.prepare(Self.busyTone)
                        runner.send(.tone(requestedAt: .zero), to: tones)
                    }
                    if tick % 200 == 190 { runner.send(.stopTone, to: tones) }
                }
            )
            #expect(counts == Self.none)
            #expect(!player.isFinished)
        }
    }

    @Test func `cards that fail and come back`() throws {
        let format = AudioFormat(sampleRate: 48000)
        let script = (1...5).map { ScriptedFault(.xrun, at: MediaTime(nanoseconds: Int64($0) * 2_000_000_000)) }
        let card = FaultyCard(script, driftPPM: 200)
        let rig = try CardRig()
        let capture = rig.route(.capture, card, CardRole.call.configuration(format))
        let playback = rig.route(.playback, card, CardRole.call.configuration(format))
        var graph = Graph()
        try graph.connect(capture.filter, to: playback.filter)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        let counts = try TickingThread.count(
            tick: { runner.tick(at: MediaTime.zero + .milliseconds(10) * $0) },
            control: { _ in
                rig.serve()
                runner.drainEvents { _ in }
            }
        )
        #expect(counts == Self.none)
    }

    @Test(arguments: thorough(codecs, quick: ["PCMU"])) func `plans installed from another thread while ticks run`(
        codec: String
    ) throws {
        let runner = GraphRunner()
        var base = Graph()
        base.converterFactory = ConverterFilter.factory
        let streams = try Self.assemblePair(codec, in: &base)
        runner.install(try GraphPlan(base))
        var (editCount, pause) = (0, 0)
        var isRefused = false
        let counts = try TickingThread.count(
            warmUp: 300,
            ticks: 2000,
            interval: 1,
            lag: 40,
            tick: { runner.tick(at: MediaTime.zero + .milliseconds(10) * $0) },
            control: { _ in
                pause += 1
                guard runner.obeyedCount > UInt64(editCount), pause % 3 == 0 else { return }
                editCount += 1
                var edited = base
                if editCount % 2 == 0 { try Self.assemblePair(codec, in: &edited) }
                for stream in streams {
                    let sink = CollectingSink(format: AudioFormat(sampleRate: 44100), capacity: 1)
                    try edited.connect(stream.heard, to: sink, converting: true)
                }
                if !runner.install(try GraphPlan(edited)) { isRefused = true }
                streams[0].controls.sendGain.set(.muted, editCount % 2 == 0)
                runner.drainEvents { _ in }
            }
        )
        #expect(counts == Self.none)
        #expect(editCount > 5)
        #expect(!isRefused)
    }

    @Test func `the counters do count`() throws {
        let kept = KeptObjects()
        let counts = try TickingThread.count(
            warmUp: 0,
            ticks: 10,
            tick: { _ in kept.add() },
            control: { _ in }
        )
        #expect(counts.allocations >= 10)
        #expect(counts.swiftLocks >= 1)
    }

    // MARK: How

    private static let busyTone = ToneSpec(
        frequencies: [480, 620],
        cadence: Cadence([.milliseconds(100), .milliseconds(100)])
    )

    /// Ticks the engine's graph as its media thread would; `control` runs beside the background services.
    private func count(_ engine: CallEngine, _ control: (Int) throws -> Void) throws -> TickingThread.Counts {
        try TickingThread.count(
            tick: { [runner = engine.core.loop.runner] in runner.tick(at: MediaTime.zero + .milliseconds(10) * $0) },
            control: { tick in
                engine.core.timebase.serve()
                try control(tick)
            }
        )
    }

    private func configure(
        _ calling: inout CallConfiguration,
        _ called: inout CallConfiguration,
        for situation: Situation,
        path: String
    ) throws {
        switch situation {
        case .nothing, .muteAndHold, .keys, .inBandTones, .recording: break
        case .loss, .redundancy:
            called.impairment.lossPercent = 5
            if situation == .redundancy {
                // So much loss that the policy goes over to RED.
                called.impairment.lossPercent = 20
                (calling.agreement.redPayloadType, called.agreement.redPayloadType) = (121, 121)
                (calling.stream.fec, called.stream.fec) = (.auto, .auto)
            }
            called.impairment.burstLength = 2
            called.impairment.jitter = .milliseconds(40)
            called.impairment.reorderPercent = 3
            called.impairment.duplicatePercent = 3
        case .files:
            let writer = try WAVSink(WAVWriter(path: path, format: AudioFormat(sampleRate: 44100)))
            _ = writer.write(chirps(1, AudioFormat(sampleRate: 44100)).span)
            try writer.close()
            calling.source = .file(path, repetition: .forever(pause: .milliseconds(100)))
            calling.sink = .file(path + ".out.wav")
            calling.capturePath = path + ".pcap"
        case .converters:
            let (high, low) = (AudioFormat(sampleRate: 44100), AudioFormat(sampleRate: 16000, channelCount: 2))
            calling.source = .samples(chirps(14, high), high)
            called.sink = .filter(CollectingSink(format: low, capacity: 16000))
        case .streams:
            calling.source = .stream(StreamSource(format: AudioFormat(sampleRate: 22_050)))
            called.sink = .stream(StreamSink(format: AudioFormat(sampleRate: 11_025)))
        }
    }

    private func act(on call: Call, in situation: Situation, at tick: Int) throws {
        switch situation {
        case .nothing, .loss, .files, .converters, .recording: break
        case .redundancy: if tick % 200 == 100 { try call.sendDTMF("5#") }
        case .muteAndHold:
            call.isMuted = tick % 100 >= 50
            call.isOnHold = tick % 300 >= 200 && tick < 900
            call.volume = Decibels(Double(-tick % 20))
        case .keys:
            if tick % 200 == 0 { try call.sendDTMF("5#", duration: .milliseconds(60), gap: .milliseconds(40)) }
            if tick % 200 == 150 { try call.pressKey(DTMFDigit.all[tick / 200]) }
            if tick % 200 == 180 { try call.releaseKey() }
        case .inBandTones:
            if tick % 100 == 0 { try call.sendInBandDTMF("7", duration: .milliseconds(60)) }
            if tick % 200 == 50 { try call.insertTone(Self.busyTone) }
            if tick % 200 == 150 { try call.removeTone() }
        case .streams:
            if case .stream(let voice) = call.configuration.source {
                if tick % 300 == 200 { voice.flush() }
                voice.tryWrite([Int16](repeating: Int16(tick % 1000), count: 2205).span)
                voice.mark()
            }
            if case .stream(let ears) = call.configuration.sink { while ears.tryRead() != nil {} }
        }
    }

    private func removeFiles(_ path: String) {
        for name in [".out.wav", ".pcap", ".A.near.wav", ".A.far.wav", ".B.near.wav", ".B.far.wav"] {
            try? FileManager.default.removeItem(atPath: path + name)
        }
    }

    /// Two legs that hear each other, in `graph`.
    @discardableResult
    private static func assemblePair(_ name: String, in graph: inout Graph) throws -> [AudioStream] {
        let codec = try PluginRegistry.standard().codec(named: name)
        let (left, right) = MemoryLink.pair()
        return try [(left, right), (right, left)].map { own, other in
            var agreement = MediaAgreement()
            agreement.codec = AgreedCodec(name)
            agreement.remote = other.localAddress
            let formats = try AgreedFormats(agreement, standIn: { nil }, find: { _ in codec })
            var rules = RTPSessionConfiguration(canonicalName: "leg")
            rules.addresses = agreement.addresses(hasControlPort: false, local: own.localAddress)
            let session = RTPSession(configuration: rules, payloads: formats.payloads, seed: 1)
            let leg = RTPLeg(session: session, port: RTPPort(link: own, localAddress: own.localAddress))
            let stream = try AudioStream(agreement, formats, AudioStreamConfiguration(), over: leg)
            let format = codec.description.format
            try stream.linkReceiving(in: &graph)
            try stream.linkSending(in: &graph, source: SamplePlayerFilter(chirps(5, format), format: format))
            return stream
        }
    }
}

/// Allocates and locks, as a tick must not.
private final class KeptObjects: @unchecked Sendable {
    private var objects: [AnyObject] = []

    func add() {
        objects.append(LatestValue(0))
        _ = (objects.last as? LatestValue<Int>)?.value
    }
}
