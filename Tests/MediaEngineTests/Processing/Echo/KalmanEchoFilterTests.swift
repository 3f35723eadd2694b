import Glibc
@testable import MediaEngine
import MediaEngineTesting
import TestSupport
import Testing

/// The adaptive filter alone: an echo path of 80 ms whose delay is known.
@Suite struct KalmanEchoFilterTests {
    @Test func `an echo is 30 dB less after 6 s of speech`() throws {
        let result = try Self.run(seconds: 8)
        #expect(Self.excess(result.remainder, over: result.near, result.captured, 6..<8) < -30)
    }

    @Test(arguments: [1, 10, 50]) func `any tail is kept`(partCount: Int) throws {
        let result = try Self.run(seconds: 6, partCount: partCount)
        let reduction = Self.excess(result.remainder, over: result.near, result.captured, 4..<6)
        // 10 ms of a room of 80 ms are the loudest, but not all.
        #expect(reduction < (partCount == 1 ? -5 : -15))
    }

    @Test(arguments: thorough([(1.0, -24.0), (1.3, -24), (0.8, -24)], quick: [(1.3, -24)]))
    func `a near end that speaks does not lead the filter astray`(pitch: Double, limit: Double) throws {
        let near = [Int16](repeating: 0, count: 8 * 16000) + (try EchoRig.speech(8, from: 4.3, pitch: pitch))
        let result = try Self.run(seconds: 16, near: near)
        #expect(Self.excess(result.remainder, over: result.near, result.captured, 9..<16) < limit)
    }

    @Test func `an echo is found also when the near end speaks from the beginning`() throws {
        let result = try Self.run(seconds: 16, near: try EchoRig.speech(16, from: 4.3, pitch: 1.3))
        #expect(Self.excess(result.remainder, over: result.near, result.captured, 12..<16) < -16)
    }

    @Test func `another room is learnt within 5 s`() throws {
        let result = try Self.run(seconds: 16, roomChangesAt: 8)
        #expect(Self.excess(result.remainder, over: result.near, result.captured, 13..<16) < -22)
    }

    private struct Result {
        var captured: [Float] = []
        var near: [Float] = []
        var remainder: [Float] = []
    }

    private static func run(
        seconds: Int,
        near: [Int16] = [],
        partCount: Int = 10,
        roomChangesAt change: Int? = nil
    ) throws -> Result {
        let far = try EchoRig.speech(Double(seconds))
        var room = AcousticPathConfiguration()
        room.delay = .milliseconds(20)
        var path = AcousticPath(room)
        let filter = KalmanEchoFilter(tailFrameCount: partCount * 160)
        var result = Result()
        let buffers = (0..<2).map { _ in UnsafeMutableBufferPointer<Float>.allocate(capacity: 160) }
        let played = UnsafeMutableBufferPointer<Int16>.allocate(capacity: 160)
        defer {
            for buffer in buffers { buffer.deallocate() }
            played.deallocate()
        }
        for tick in 0..<seconds * 100 {
            if tick == change.map({ $0 * 100 }) {
                room.seed = 2
                path = AcousticPath(room)
            }
            let range = tick * 160..<tick * 160 + 160
            let spoken = range.map { $0 < near.count ? near[$0] : 0 }
            var heard = [Int16](repeating: 0, count: 160)
            var microphone = heard.mutableSpan
            path.process(played: far[range].span, near: spoken.span, into: &microphone)
            for index in 0..<160 {
                buffers[0][index] = Float(heard[index])
                // The echo is due 20 ms later, of which the filter sees 2.
                let due = tick * 160 + index - 18 * 16
                played[index] = due >= 0 ? far[due] : 0
            }
            filter.process(captured: buffers[0], far: played, remainder: buffers[1])
            result.captured += heard.map(Float.init)
            result.near += spoken.map(Float.init)
            result.remainder += buffers[1]
        }
        return result
    }

    /// By how many dB what remains besides the near end is louder than the echo was.
    private static func excess(_ remainder: [Float], over near: [Float], _ captured: [Float], _ seconds: Range<Int>)
        -> Double
    {
        var (before, after) = (0.0, 0.0)
        for index in seconds.lowerBound * 16000..<seconds.upperBound * 16000 {
            before += pow(Double(captured[index] - near[index]), 2)
            after += pow(Double(remainder[index] - near[index]), 2)
        }
        return 10 * log10((after + 1) / (before + 1))
    }
}
