import Foundation
@testable import MediaEngine
import TestSupport
import Testing

/// Tones as another program hears them.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct ToneGeneratorRealTimeTests {
    private static let multimon = ["/usr/bin/multimon-ng", "/usr/local/bin/multimon-ng"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    @Test(.enabled(if: multimon != nil, "needs multimon-ng"))
    func `multimon-ng hears what is dialled`() throws {
        let sequence = try DTMFSequence(parsing: "0123456789*#ABCD")
        let generator = ToneGeneratorTests.mono(22_050)
        generator.pause(for: .milliseconds(100))
        for digit in sequence.digits { generator.play(digit, for: .milliseconds(100), gap: .milliseconds(100)) }
        let samples = ToneGeneratorTests.render(generator, 22_050 * 4)
        let file = FileManager.default.temporaryDirectory.appending(path: "tones-\(UUID().uuidString).raw")
        try samples.withUnsafeBytes { Data($0) }.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }

        let run = try ProgramRun(try #require(Self.multimon), ["-q", "-a", "DTMF", "-t", "raw", file.path])
        run.wait()
        let digits = run.output.split(separator: "\n").compactMap { $0.hasPrefix("DTMF: ") ? $0.last : nil }
        #expect(String(digits) == "0123456789*#ABCD")
    }
}
