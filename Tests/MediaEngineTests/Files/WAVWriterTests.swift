import Foundation
import Testing

@testable import MediaEngine

@Suite struct WAVWriterTests {
    private let stereo = AudioFormat(sampleRate: 8000, channelCount: 2)

    @Test func `what is written is read back`() throws {
        try TestFiles.withTemporaryPath { path in
            let samples = (0..<20000).map { Int16(truncatingIfNeeded: $0 &* 7919) }
            try WAVFile.write(path, format: stereo, samples: samples)
            let (format, read) = try WAVFile.read(path)
            #expect(format == stereo && read == samples)
        }
    }

    @Test func `the file is valid before it is closed, and lacks at most a second`() throws {
        try TestFiles.withTemporaryPath { path in
            let writer = try WAVWriter(path: path, format: stereo)
            #expect(try WAVFile.read(path).1.isEmpty)
            let second = [Int16](repeating: 5, count: 16000)
            try writer.write(second.span)
            #expect(try WAVFile.read(path).1.count == 16000)
            try writer.write(second.span.extracting(0..<8000))
            let reader = try WAVReader(path: path)
            #expect(reader.frameCount == 8000 && !reader.isTruncated)
            try writer.flush()
            #expect(try WAVFile.read(path).1.count == 24000)
            try writer.close()
            try writer.close()
        }
    }

    @Test func `a full file says so and stays valid`() throws {
        try TestFiles.withTemporaryPath { path in
            let writer = try WAVWriter(path: path, format: stereo, byteLimit: 1000)
            let samples = [Int16](repeating: 1, count: 800)
            let error = try #require(throws: WAVError.self) { try writer.write(samples.span) }
            #expect(error.code == .tooLarge && writer.frameCount == 250)
            #expect(try WAVFile.read(path).1.count == 500)
            #expect(throws: WAVError.self) { try writer.write(samples.span) }
            try writer.close()
        }
    }

    @Test func `an unwritable place and a full disk are errors`() throws {
        let missing = try #require(throws: WAVError.self) { try WAVWriter(path: "/no/such/x.wav", format: stereo) }
        #expect(missing.code == .unwritable)
        let full = try #require(throws: WAVError.self) { try WAVWriter(path: "/dev/full", format: stereo) }
        #expect(full.code == .ioFailure)
        let format = AudioFormat(sampleRate: 8000, channelCount: 65)
        let odd = try #require(throws: WAVError.self) { try WAVWriter(path: "/dev/null", format: format) }
        #expect(odd.code == .unsupported)
    }
}
