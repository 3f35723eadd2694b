import Glibc
@testable import MediaEngine
import Testing

/// What an adaptive filter would leave, made by hand.
@Suite struct ResidualEchoSuppressorTests {
    @Test func `what is left of an echo is 15 dB softer`() throws {
        let echo = try EchoRig.speech(6)
        let left = echo.map { Float($0) * 0.03 }
        let output = Self.run(remainder: left, estimate: echo.map(Float.init))
        #expect(Self.level(output, 3..<6) < Self.level(left, 3..<6) - 15)
    }

    @Test func `a near end passes while an echo is estimated`() throws {
        let echo = try EchoRig.speech(12)
        let near = try EchoRig.speech(12, from: 4.3, pitch: 1.3)
        let left = zip(echo, near).map { Float($0) * 0.03 + Float($1) }
        let output = Self.run(remainder: left, estimate: echo.map(Float.init))
        let spoken = near.map(Float.init)
        #expect(abs(Self.level(output, 3..<12) - Self.level(spoken, 3..<12)) < 1)
        // It comes out 10 ms later.
        let difference = zip(output.dropFirst(160), spoken).map { $0 - $1 }
        #expect(Self.level(difference, 3..<11) < Self.level(spoken, 3..<11) - 12)
    }

    @Test func `without an echo everything passes`() throws {
        let near = try EchoRig.speech(3).map(Float.init)
        let output = Self.run(remainder: near, estimate: [Float](repeating: 0, count: near.count))
        let difference = zip(output.dropFirst(160), near).map { $0 - $1 }
        #expect(Self.level(difference, 1..<2) < Self.level(near, 1..<2) - 40)
    }

    private static func run(remainder: [Float], estimate: [Float]) -> [Float] {
        let suppressor = ResidualEchoSuppressor()
        let (left, echo) = (
            UnsafeMutableBufferPointer<Float>.allocate(capacity: 160),
            UnsafeMutableBufferPointer<Float>.allocate(capacity: 160)
        )
        defer {
            left.deallocate()
            echo.deallocate()
        }
        var output: [Float] = []
        var block = [Int16](repeating: 0, count: 160)
        for start in stride(from: 0, to: remainder.count, by: 160) {
            for index in 0..<160 {
                left[index] = remainder[start + index]
                echo[index] = estimate[start + index]
            }
            var samples = block.mutableSpan
            suppressor.process(remainder: left, estimate: echo, into: &samples)
            output += block.map(Float.init)
        }
        return output
    }

    private static func level(_ samples: [Float], _ seconds: Range<Int>) -> Double {
        let part = samples[seconds.lowerBound * 16000..<seconds.upperBound * 16000]
        return 10 * log10(part.reduce(0) { $0 + Double($1) * Double($1) } / Double(part.count) + 1e-6)
    }
}
