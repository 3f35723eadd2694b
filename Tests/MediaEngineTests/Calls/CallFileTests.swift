import TestSupport
import Testing

@testable import MediaEngine

/// Files and streams of calls that cannot be written, or made, as asked.
@Suite struct CallFileTests {
    @Test func `a recording on a full disk is told at once, and thrown at its end`() async throws {
        let file = TemporaryFile()
        let pair = try await CallPair(saying: .silence)
        // The header of a pipe or a device is written on opening: the disk fills up afterwards.
        let recording = try await CallRecording(pair.callee.stream, near: nil, far: file.path)
        let sink = try #require(recording.far?.sink)
        let told = Watched<[WAVFault]>([])
        sink.whenFailing { error in told.update { $0.append(error.code) } }
        let format = sink.format
        // Longer than the ring: some of it is left out before the file is served for the first time.
        let second = [Int16](repeating: 1, count: format.sampleRate)
        for _ in 0..<6 { _ = sink.write(second.span) }
        sink.serve()
        sink.serve()
        #expect(told.value == [.incomplete])
        await #expect(throws: EngineError.self) { try await recording.close(pair.engine.core.timebase) }
        #expect(try WAVFile.read(file.path).1.count == 6 * format.sampleRate)
    }
}
