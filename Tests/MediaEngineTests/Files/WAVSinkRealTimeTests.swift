import TestSupport
import Testing

@testable import MediaEngine

/// A file that one thread writes while another one has sound for it.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct WAVSinkRealTimeTests {
    private let format = AudioFormat(sampleRate: 8000)

    @Test func `what is left out is silent wherever it is, however the disk lags`() async throws {
        let file = TemporaryFile()
        let sink = WAVSink(try WAVWriter(path: file.path, format: format), slack: .milliseconds(20))
        let isOver = Watched(false)
        let expected = Watched<[Int16]>([])
        try await onThreads(2) { thread in
            guard thread == 0 else {
                // The disk begins when the ring is full, so that something is missing in any case.
                repeat { if sink.droppedFrameCount > 0 { sink.serve() } } while !isOver.value
                return
            }
            var generator = SeededGenerator(seed: 5)
            var samples: [Int16] = []
            for number in 0..<40_000 {
                let block = [Int16](repeating: Int16(truncatingIfNeeded: number | 1), count: Int(generator.next() % 40))
                samples += sink.write(block.span) == 0 ? block : [Int16](repeating: 0, count: block.count)
            }
            expected.update { [samples] in $0 = samples }
            isOver.update { $0 = true }
        }
        #expect(sink.droppedFrameCount > 0)
        #expect(throws: WAVError.self) { try sink.close() }
        #expect(try WAVFile.read(file.path).1 == expected.value)
    }
}
