import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import MediaEngine

/// Files that take long to open, or take nothing any more: pipes whose other end is missing or asleep.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine) struct SlowFileRealTimeTests {
    private static func quiet(_ name: String) -> CallConfiguration {
        var call = CallConfiguration(network: .udp(local: .loopback(port: 0)))
        call.name = name
        call.agreement.codec = "PCMU"
        call.source = .silence
        call.sink = .none
        return call
    }

    private static func engine() throws -> CallEngine {
        var configuration = CallEngineConfiguration()
        configuration.cardBindings = try CardBindings(flags: ["au": "null", "aq": "null"], environment: [:])
        return try CallEngine(configuration)
    }

    /// A pipe; `open` opens its other end, which does nothing.
    private final class Pipe {
        let file = TemporaryFile()
        private var descriptor: Int32 = -1

        init() throws {
            try #require(mkfifo(file.path, 0o600) == 0)
        }

        deinit {
            if descriptor >= 0 { close(descriptor) }
        }

        func open() throws {
            descriptor = Glibc.open(file.path, O_RDWR | O_NONBLOCK)
            try #require(descriptor >= 0)
        }

        /// Writes until there is no room for a single byte: who else writes has to wait.
        func fill() {
            var byte: UInt8 = 0
            while write(descriptor, &byte, 1) == 1 {}
            #expect(errno == EAGAIN)
        }

        /// Writes the header of a mono file of 8000 Hz, and no sample.
        func writeHeader() {
            let header: [UInt8] =
                Array("RIFF".utf8) + [0xFF, 0xFF, 0xFF, 0x7F] + Array("WAVEfmt ".utf8)
                + [16, 0, 0, 0, 1, 0, 1, 0, 0x40, 0x1F, 0, 0, 0x80, 0x3E, 0, 0, 2, 0, 16, 0]
                + Array("data".utf8) + [0xFF, 0xFF, 0xFF, 0x7F]
            #expect(write(descriptor, header, header.count) == header.count)
        }
    }

    @Test func `a call ends while the file of its recording is still being opened`() async throws {
        let engine = try Self.engine()
        let pipe = try Pipe()
        let path = pipe.file.path
        let call = try await engine.makeCall(Self.quiet("A"))
        let recording = Task { try await call.startRecording(near: path, far: nil) }
        #expect(await Polling.eventually { call.state.withLock { $0.openingRecording != nil } })
        await #expect(throws: EngineError.self) { try await call.startRecording(near: nil, far: nil) }
        try await call.end()
        #expect(call.hasEnded && engine.calls.isEmpty)
        try pipe.open()
        let error = await #expect(throws: EngineError.self) { try await recording.value }
        guard case .state(let failure) = error else { throw try #require(error) }
        #expect(failure.code == .callEnded)
        await engine.shutDown()
    }

    @Test func `a recording that is stopped while its file is still being opened does not begin`() async throws {
        let engine = try Self.engine()
        let pipe = try Pipe()
        let path = pipe.file.path
        let call = try await engine.makeCall(Self.quiet("A"))
        let recording = Task { try await call.startRecording(near: path, far: nil) }
        #expect(await Polling.eventually { call.state.withLock { $0.openingRecording != nil } })
        try await call.stopRecording()
        // Another one may begin, and goes on when the first one is open.
        let file = TemporaryFile()
        try await call.startRecording(near: file.path, far: nil)
        try pipe.open()
        try await recording.value
        #expect(call.state.withLock { $0.recording?.near?.sink.name == file.path })
        await engine.shutDown()
    }

    /// A card that says that it is not there when it is let.
    private final class LateCard: SoundCard {
        let description = CardDescription(id: "test:late", name: "late", backend: "test", directions: .duplex)
        let isOpening = Watched(false)
        let gate = DispatchSemaphore(value: 0)

        func open(
            _ direction: CardDirection,
            _ configuration: CardConfiguration,
            at now: MediaTime
        ) throws(CardError) -> any CardEndpoint {
            isOpening.update { $0 = true }
            gate.wait()
            throw CardError(.absent, "It is not there.")
        }
    }

    @Test func `while a call waits for its card, nothing is taken from its stream`() async throws {
        let engine = try Self.engine()
        let sample: [Int16] = [1]
        let voice = StreamSource(format: AudioFormat(sampleRate: 8000))
        let taken = voice.tryWrite([Int16](repeating: 5000, count: 80_000).span)
        #expect(taken > 0 && voice.tryWrite(sample.span) == 0)
        var calling = Self.quiet("A")
        calling.source = .stream(voice)
        let card = LateCard()
        calling.sink = .card(card)
        let making = Task { [calling] in try await engine.makeCall(calling) }
        #expect(await Polling.eventually { card.isOpening.value })
        #expect(engine.calls.isEmpty)
        card.gate.signal()
        await #expect(throws: EngineError.self) { try await making.value }
        #expect(voice.tryWrite(sample.span) == 0)
        calling.sink = .none
        let call = try await engine.makeCall(calling)
        #expect(await Polling.eventually { voice.tryWrite(sample.span) == 1 })
        try await call.end()
        await engine.shutDown()
    }

    @Test func `keys sound, and the ring can be ended, while the file that is to ring is still being opened`()
        async throws
    {
        let engine = try Self.engine()
        let pipe = try Pipe()
        let path = pipe.file.path
        let ring = Task { try await engine.startRinging(file: path) }
        #expect(await Polling.eventually { engine.core.state.withLock { $0.ringCount } == 1 })
        try await engine.playDTMF(DTMFDigit.all[0])
        try await engine.setRinger(NullCard(name: "other"))
        try await engine.stopRinging()
        // It opens, and is not heard: it was ended before.
        try pipe.open()
        pipe.writeHeader()
        try await ring.value
        #expect(await Polling.eventually { engine.openToneStream?.isQuiet ?? true })
        await engine.shutDown()
    }

    @Test func `a file that opens late does not replace one that was asked for after it`() async throws {
        let engine = try Self.engine()
        let pipe = try Pipe()
        let path = pipe.file.path
        let file = TemporaryFile()
        let format = AudioFormat(sampleRate: 8000)
        try WAVFile.write(file.path, format: format, samples: [Int16](repeating: 0, count: 800))
        let stream = try await engine.makeToneStream(on: [NullCard(name: "ring")], format: format)
        let late = Task { try await stream.play(file: path) }
        #expect(await Polling.eventually { stream.askedFileCount == 1 })
        try await stream.play(file: file.path)
        try pipe.open()
        pipe.writeHeader()
        try await late.value
        // The pipe would never end.
        #expect(await Polling.eventually { stream.isFileEnded })
        await stream.stop()
        await engine.shutDown()
    }

    @Test func `a file whose reader has stopped holds up neither other files nor the end`() async throws {
        let engine = try Self.engine()
        let pipe = try Pipe()
        try pipe.open()
        var stuck = Self.quiet("stuck")
        stuck.sink = .file(pipe.file.path)
        let one = try await engine.makeCall(stuck)
        pipe.fill()
        // Another call's files begin, go on and end meanwhile.
        var playing = Self.quiet("other")
        let file = TemporaryFile()
        playing.source = .file(TestFiles.speech)
        playing.sink = .file(file.path)
        let other = try await engine.makeCall(playing)
        #expect(FileWatch.wait(for: file.path, byteCount: 16_000))
        try await other.end()
        #expect(try WAVFile.read(file.path).1.count > 4000)
        // What the pipe does not take is told.
        let error = await #expect(throws: EngineError.self) { try await one.end() }
        guard case .file = error else { throw try #require(error) }
        await engine.shutDown()
        #expect(engine.calls.isEmpty)
    }

    @Test func `who shuts down waits for a call that is just ending`() async throws {
        let engine = try Self.engine()
        let pipe = try Pipe()
        try pipe.open()
        var stuck = Self.quiet("stuck")
        stuck.sink = .file(pipe.file.path)
        let call = try await engine.makeCall(stuck)
        pipe.fill()
        let ticks = engine.tickStatistics.count
        #expect(await Polling.eventually { engine.tickStatistics.count > ticks + 10 })
        let ending = Task { try await call.end() }
        #expect(await Polling.eventually { call.hasEnded })
        #expect(engine.calls.isEmpty)
        await engine.shutDown()
        #expect(call.state.withLock { $0.life } == .ended)
        await #expect(throws: EngineError.self) { try await ending.value }
    }
}
