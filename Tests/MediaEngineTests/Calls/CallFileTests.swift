import MediaEngineTesting
import Synchronization
import TestSupport
import Testing

@testable import MediaEngine

/// Files and streams of calls that cannot be written, made or ended as asked.
@Suite struct CallFileTests {
    private static let format = AudioFormat(sampleRate: 8000)

    @Test func `what a recording lacks is told while the call runs, and thrown at its end`() async throws {
        let (near, far) = (TemporaryFile(), TemporaryFile())
        let pair = try await CallPair(saying: .silence)
        try await pair.caller.startRecording(near: near.path, far: far.path)
        try pair.advance(100)
        // As if the disk did not answer for six seconds.
        let recording = try #require(pair.caller.state.withLock { $0.recording })
        let sink = try #require(recording.near?.sink)
        for _ in 0..<6 { _ = sink.write([Int16](repeating: 1, count: 8000).span) }
        try pair.advance(100)
        await #expect(throws: EngineError.self) { try await pair.caller.stopRecording() }
        try await pair.caller.end()
        let told = await allEvents(pair.caller).compactMap { event -> EngineError? in
            if case .recordingFailed(let error) = event { error } else { nil }
        }
        guard told.count == 1, case .file(let error) = told[0] else {
            Issue.record("\(told)")
            return
        }
        #expect(error.code == .incomplete)
        // The other file is whole, and this one as long as what was said.
        #expect(try WAVFile.read(near.path).1.count == 8000 * 6 + 1600)
        #expect(try WAVFile.read(far.path).1.count == 1600)
    }

    @Test func `a call that could not be made leaves the streams of the application as they were`() async throws {
        let (voice, ears) = (StreamSource(format: Self.format), StreamSink(format: Self.format))
        let engine = try CallEngine(.virtual())
        func make(into sink: CallSink) async throws -> CallPair {
            try await CallPair(saying: .stream(voice), engine: engine) { calling, called in
                calling.sink = .stream(ears)
                called.sink = sink
            }
        }
        await #expect(throws: EngineError.self) { try await make(into: .file("/no/such/x.wav")) }
        await #expect(throws: EngineError.self) { try await make(into: .card(FileCard())) }
        #expect(voice.tryWrite([Int16](repeating: 5000, count: 8000).span) == 8000)
        let pair = try await CallPair(saying: .stream(voice), engine: engine) { calling, _ in
            calling.sink = .stream(ears)
        }
        try pair.advance(500)
        #expect(pair.heard.samples.contains { $0 > 4000 } && !pair.caller.isSourceEnded)
        #expect(ears.tryRead() != nil)
        // The end of its call is theirs, too: who uses them again is told.
        try await pair.caller.end()
        let error = await #expect(throws: EngineError.self) { try await make(into: .none) }
        guard case .state(let failure) = error else { throw try #require(error) }
        #expect(failure.code == .streamEnded)
        let other = await #expect(throws: EngineError.self) {
            try await CallPair(saying: .silence, engine: engine) { calling, _ in calling.sink = .stream(ears) }
        }
        guard case .state(let failure) = other else { throw try #require(other) }
        #expect(failure.code == .streamEnded)
    }

    @Test func `calls that could not be ended are when the engine is shut down`() async throws {
        let pair = try await CallPair(saying: .silence)
        let filter = PassThrough()
        while pair.engine.core.loop.runner.send(.add(0), to: filter) {}
        await #expect(throws: EngineError.self) { try await pair.caller.end() }
        #expect(!pair.caller.hasEnded && pair.engine.calls.count == 2)
        await pair.engine.shutDown()
        #expect(pair.caller.hasEnded && pair.callee.hasEnded && pair.engine.calls.isEmpty)
        for await _ in pair.caller.events {}
    }

    @Test func `all calls end, also beside one whose file is not whole`() async throws {
        let file = TemporaryFile()
        let pair = try await CallPair(saying: .silence)
        let other = try await CallPair(saying: .silence, engine: pair.engine)
        try await pair.caller.startRecording(near: file.path, far: nil)
        let sink = try #require(pair.caller.state.withLock { $0.recording }?.near?.sink)
        for _ in 0..<6 { _ = sink.write([Int16](repeating: 1, count: 8000).span) }
        let calls = [pair.caller, pair.callee, other.caller]
        await #expect(throws: EngineError.self) { try await pair.engine.endCalls(calls) }
        #expect(calls.allSatisfy(\.hasEnded) && pair.engine.calls.map(\.name) == ["B"])
        // Those that have ended stay so.
        try await pair.engine.endCalls(calls + [other.callee])
        #expect(pair.engine.calls.isEmpty)
    }

    @Test func `a call that has ended sends no keys`() async throws {
        let pair = try await CallPair(saying: .silence)
        try await pair.caller.end()
        let error = #expect(throws: EngineError.self) { try pair.caller.sendDTMF("1") }
        guard case .state(let failure) = error else { throw try #require(error) }
        #expect(failure.code == .callEnded)
    }

    @Test func `a plugin may ask the engine while it is loaded`() throws {
        let engine = try CallEngine(.virtual())
        let count = engine.registry.codecs.count
        engine.updateRegistry { registry in
            #expect(engine.calls.isEmpty && engine.registry.codecs.count == count)
            do throws(CodecError) {
                try registry.setEnabled(false, codecsNamed: "PCMU")
            } catch {
                Issue.record(error)
            }
        }
        #expect(engine.registry.codecs.count { $0.isEnabled } < count)
    }
}
