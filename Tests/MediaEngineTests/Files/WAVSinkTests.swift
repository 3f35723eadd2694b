import Glibc
import TestSupport
import Testing

@testable import MediaEngine

/// What becomes of sound that the disk is too slow for.
@Suite struct WAVSinkTests {
    private let format = AudioFormat(sampleRate: 8000)

    private func ramp(_ range: Range<Int>) -> [Int16] { range.map { Int16($0) } }

    @Test func `silence stands for what was left out, and what comes after it is where it belongs`() throws {
        try TestFiles.withTemporaryPath { path in
            let sink = WAVSink(try WAVWriter(path: path, format: format), slack: .milliseconds(100))
            let told = Watched<[WAVFault]>([])
            sink.whenFailing { error in told.update { $0.append(error.code) } }
            // The ring holds 1024 samples: the seventh block of 160 finds no place.
            for block in 0..<8 { _ = sink.write(ramp(block * 160 + 1..<block * 160 + 161).span) }
            #expect(sink.droppedFrameCount == 320)
            sink.serve()
            sink.serve()
            _ = sink.write(ramp(1281..<1441).span)
            sink.serve()
            #expect(told.value == [.incomplete])
            let error = try #require(throws: WAVError.self) { try sink.close() }
            #expect(error.code == .incomplete && error.message.contains("40 ms"))
            try sink.close()
            let samples = try WAVFile.read(path).1
            #expect(samples == ramp(1..<961) + [Int16](repeating: 0, count: 320) + ramp(1281..<1441))
        }
    }

    @Test func `what is left out at the very end is silence, too`() throws {
        try TestFiles.withTemporaryPath { path in
            let sink = WAVSink(try WAVWriter(path: path, format: format), slack: .milliseconds(100))
            for block in 0..<10 { _ = sink.write(ramp(block * 160 + 1..<block * 160 + 161).span) }
            #expect(throws: WAVError.self) { try sink.close() }
            #expect(try WAVFile.read(path).1 == ramp(1..<961) + [Int16](repeating: 0, count: 640))
        }
    }

    // MARK: Pipes

    /// A pipe whose reading end is open, and does not wait.
    private func pipe() throws -> (file: TemporaryFile, reader: Int32) {
        let file = TemporaryFile()
        try #require(mkfifo(file.path, 0o600) == 0)
        let reader = open(file.path, O_RDONLY | O_NONBLOCK)
        try #require(reader >= 0)
        return (file, reader)
    }

    private func byteCount(_ reader: Int32) -> Int {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        return read(reader, &bytes, bytes.count)
    }

    @Test func `in a pipe nothing stands for what was left out`() throws {
        let (file, reader) = try pipe()
        defer { close(reader) }
        let sink = WAVSink(try WAVWriter(path: file.path, format: format), slack: .milliseconds(100))
        for block in 0..<8 { _ = sink.write(ramp(block * 160 + 1..<block * 160 + 161).span) }
        sink.serve()
        _ = sink.write(ramp(1281..<1441).span)
        #expect(throws: WAVError.self) { try sink.close() }
        #expect(byteCount(reader) == 44 + 2 * (960 + 160))
    }

    @Test func `a reader that goes is told, and ends nothing but the file`() throws {
        let (file, reader) = try pipe()
        let sink = WAVSink(try WAVWriter(path: file.path, format: format))
        let told = Watched<[WAVFault]>([])
        sink.whenFailing { error in told.update { $0.append(error.code) } }
        close(reader)
        _ = sink.write(ramp(1..<161).span)
        sink.serve()
        #expect(told.value == [.ioFailure])
        let error = try #require(throws: WAVError.self) { try sink.close() }
        #expect(error.message.contains("has gone"))
        var pending = sigset_t()
        sigpending(&pending)
        #expect(sigismember(&pending, SIGPIPE) == 0)
    }

    @Test func `what of a capture could not be written is not written later`() throws {
        let (path, reader) = try pipe()
        let file = try CaptureFile(path: path.path, unixNanosecondsAtZero: 0, tap: PacketTap(capacity: 1024)) { .zero }
        let told = Watched<[PcapFault]>([])
        file.whenFailing { error in told.update { $0.append(error.code) } }
        #expect(byteCount(reader) == 24)
        close(reader)
        let packet = [UInt8](repeating: 1, count: 172)
        func record() {
            for index in 0..<10 {
                let time = MediaTime.zero + CaptureOrder.reach * index
                file.tap.record(packet.span, from: .loopback(port: 1), to: .loopback(port: 2), at: time)
            }
        }
        record()
        file.serve()
        // What finds no room from now on is no news.
        record()
        file.serve()
        #expect(told.value == [.system])
        let next = open(path.path, O_RDONLY | O_NONBLOCK)
        defer { close(next) }
        #expect(throws: PcapError.self) { try file.close() }
        #expect(byteCount(next) == 0)
    }

    @Test func `the reader of a captured pipe has the last packet though no other comes`() throws {
        let (path, reader) = try pipe()
        defer { close(reader) }
        let now = Watched(MediaTime.zero)
        let file = try CaptureFile(path: path.path, unixNanosecondsAtZero: 0) { now.value }
        #expect(byteCount(reader) == 24)
        let packet = [UInt8](repeating: 1, count: 172)
        file.tap.record(packet.span, from: .loopback(port: 1), to: .loopback(port: 2), at: .zero)
        file.serve()
        #expect(byteCount(reader) == -1)
        now.update { $0 = .zero + CaptureOrder.longestWait }
        file.serve()
        #expect(byteCount(reader) > packet.count)
        try file.close()
        #expect(byteCount(reader) == 0)
    }

    // MARK: Whole files

    @Test func `a file from which nothing is missing closes without an error`() throws {
        try TestFiles.withTemporaryPath { path in
            let sink = WAVSink(try WAVWriter(path: path, format: format), slack: .milliseconds(100))
            for block in 0..<50 {
                #expect(sink.write(ramp(block * 160..<block * 160 + 160).span) == 0)
                sink.serve()
            }
            try sink.close()
            #expect(sink.frameCount == 8000)
        }
    }

    @Test func `a capture is in the order of time`() throws {
        try TestFiles.withTemporaryPath { path in
            let file = try CaptureFile(path: path, unixNanosecondsAtZero: 0) { .zero }
            // What was received is looked at after the next packet has been sent.
            for time in [20, 11, 40, 31, 400, 391, 420, 411] {
                let packet = [UInt8](repeating: 1, count: 172)
                let at = MediaTime.zero + .milliseconds(time)
                file.tap.record(packet.span, from: .loopback(port: 1), to: .loopback(port: 2), at: at)
                file.serve()
            }
            try file.close()
            let times = try PcapReader(path: path).map { $0.unixNanoseconds / 1_000_000 }
            #expect(times == [11, 20, 31, 40, 391, 400, 411, 420])
        }
    }

    @Test func `a capture that lacks packets says so`() throws {
        try TestFiles.withTemporaryPath { path in
            let file = try CaptureFile(path: path, unixNanosecondsAtZero: 0, tap: PacketTap(capacity: 1024)) { .zero }
            let told = Watched<[PcapFault]>([])
            file.whenFailing { error in told.update { $0.append(error.code) } }
            let packet = [UInt8](repeating: 1, count: 172)
            for _ in 0..<10 {
                file.tap.record(packet.span, from: .loopback(port: 1), to: .loopback(port: 2), at: .zero)
            }
            #expect(file.tap.droppedCount > 0)
            file.serve()
            file.serve()
            #expect(told.value == [.incomplete])
            let error = try #require(throws: PcapError.self) { try file.close() }
            #expect(error.code == .incomplete)
        }
    }
}
