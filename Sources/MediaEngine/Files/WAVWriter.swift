import CallBasics

/// Writes 16-bit samples to a WAV file that is valid at every moment.
///
/// The sizes in the header never exceed what is written, and follow it at least once per second of sound: after a
/// crash the file still opens, and lacks at most that second. A pipe or device, where nothing can be rewritten, gets
/// the sizes that mean "until the end".
/// Thread: one at a time, never the media thread: it waits for the disk. `FileRecorderFilter` brings a graph to a file.
package final class WAVWriter {
    /// Rate and channels of the samples.
    package let format: AudioFormat
    /// Frames written so far.
    package private(set) var frameCount = 0

    /// The file's path.
    var path: String { file.name }
    /// What is waited for when it is a pipe or a terminal.
    var pipe: PipeEnd? { file.pipe }

    private let file: POSIXFile
    private let isSeekable: Bool
    private let byteLimit: Int
    private var declaredFrameCount = 0
    private var isClosed = false
    private let scratch: UnsafeMutableBufferPointer<Int16>

    /// Creates the file at `path`, or replaces the one that is there.
    ///
    /// - Throws: `WAVError` when the file cannot be written, or the format does not fit a WAV.
    package convenience init(path: String, format: AudioFormat) throws(WAVError) {
        try self.init(path: path, format: format, byteLimit: Self.maximumByteCount)
    }

    /// As the public one, but full at `byteLimit` bytes of samples.
    init(path: String, format: AudioFormat, byteLimit: Int) throws(WAVError) {
        guard
            (1...WAVHeader.maximumChannelCount).contains(format.channelCount),
            WAVHeader.sampleRates.contains(format.sampleRate)
        else {
            throw WAVError(
                .unsupported,
                "A WAV of \(format) cannot be written. Ask for 1000 to 768000 Hz, 1 to 64 channels."
            )
        }
        self.format = format
        self.byteLimit = byteLimit
        file = try POSIXFile(writing: path)
        isSeekable = file.isSeekable
        scratch = .allocate(capacity: 4096)
        let size = isSeekable ? 0 : UInt32.max
        try Self.withBytes(of: header(dataByteCount: size)) { bytes throws(WAVError) in try file.write(bytes) }
    }

    deinit {
        if !isClosed { try? flush() }
        scratch.deallocate()
    }

    /// Writes interleaved samples, a whole number of frames.
    ///
    /// - Throws: `WAVError` when the disk fails, and when the file is full at 4 GiB: what fits is then written.
    package func write(_ samples: Span<Int16>) throws(WAVError) {
        precondition(!isClosed && samples.count % format.channelCount == 0)
        let room = (byteLimit / bytesPerFrame - frameCount) * format.channelCount
        let accepted = min(samples.count, room)
        var done = 0
        while done < accepted {
            let count = min(accepted - done, scratch.count)
            for index in 0..<count { scratch[index] = samples[done + index].littleEndian }
            try file.write(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: scratch[..<count])))
            done += count
        }
        frameCount += accepted / format.channelCount
        if frameCount - declaredFrameCount >= format.sampleRate { try flush() }
        if accepted < samples.count { try throwFull() }
    }

    /// Leaves out frames, which are silent.
    ///
    /// Where the file system has holes, they take neither time nor room. In a pipe they do not exist.
    /// - Throws: `WAVError` when the disk fails, and when the file is full at 4 GiB.
    package func skip(_ count: Int) throws(WAVError) {
        precondition(!isClosed)
        guard isSeekable, count > 0 else { return }
        let accepted = min(count, byteLimit / bytesPerFrame - frameCount)
        try file.truncate(to: headerByteCount + (frameCount + accepted) * bytesPerFrame)
        frameCount += accepted
        if accepted < count { try throwFull() }
    }

    private func throwFull() throws(WAVError) {
        try flush()
        throw WAVError(
            .tooLarge,
            "\(file.name) is full: a WAV holds 4 GiB, \(frameCount / format.sampleRate) s of \(format). "
                + "Start another file."
        )
    }

    /// Makes the header tell of every frame written so far.
    ///
    /// - Throws: `WAVError` when the disk fails.
    package func flush() throws(WAVError) {
        guard isSeekable, frameCount > declaredFrameCount else { return }
        let bytes = header(dataByteCount: UInt32(frameCount * bytesPerFrame))
        try Self.withBytes(of: bytes) { bytes throws(WAVError) in try file.overwrite(bytes, at: 0) }
        declaredFrameCount = frameCount
    }

    /// Drops the frames after the first `count`; a pipe, where nothing can be taken back, keeps them.
    ///
    /// - Throws: `WAVError` when the disk fails.
    package func truncate(to count: Int) throws(WAVError) {
        guard isSeekable, count < frameCount else { return }
        frameCount = max(count, 0)
        let bytes = header(dataByteCount: UInt32(frameCount * bytesPerFrame))
        try Self.withBytes(of: bytes) { bytes throws(WAVError) in try file.overwrite(bytes, at: 0) }
        try file.truncate(to: headerByteCount + frameCount * bytesPerFrame)
        declaredFrameCount = frameCount
    }

    /// Completes the header and closes the file; closing again does nothing.
    ///
    /// - Throws: `WAVError` when the disk fails.
    package func close() throws(WAVError) {
        guard !isClosed else { return }
        isClosed = true
        defer { file.close() }
        try flush()
    }

    private var headerByteCount: Int { 44 }

    /// The samples that fit under 32-bit sizes, with the header.
    private static var maximumByteCount: Int { Int(UInt32.max) - 36 - 1 }

    private var bytesPerFrame: Int { format.channelCount * 2 }

    private func header(dataByteCount: UInt32) -> [UInt8] {
        var bytes: [UInt8] = []
        func append(_ text: StaticString) { text.withUTF8Buffer { bytes.append(contentsOf: $0) } }
        func append16(_ value: Int) { bytes.append(contentsOf: [UInt8(value & 0xFF), UInt8(value >> 8 & 0xFF)]) }
        func append32(_ value: Int) {
            append16(value)
            append16(value >> 16)
        }
        append("RIFF")
        append32(dataByteCount == .max ? Int(UInt32.max) : Int(dataByteCount) + 36)
        append("WAVEfmt ")
        append32(16)
        append16(1)
        append16(format.channelCount)
        append32(format.sampleRate)
        append32(format.sampleRate * bytesPerFrame)
        append16(bytesPerFrame)
        append16(16)
        append("data")
        append32(Int(dataByteCount))
        return bytes
    }

    private static func withBytes(
        of bytes: [UInt8],
        _ body: (UnsafeRawBufferPointer) throws(WAVError) -> Void
    ) throws(WAVError) {
        try bytes.withUnsafeBytes { buffer in Result { () throws(WAVError) in try body(buffer) } }.get()
    }
}
