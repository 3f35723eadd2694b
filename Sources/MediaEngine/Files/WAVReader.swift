import CallBasics

/// Reads the samples of a WAV file as 16 bits, a stretch at a time, whatever the file's length.
///
/// Takes 8, 16, 24 and 32-bit integers, 32 and 64-bit floats, µ-law and A-law, plain or under the extensible header,
/// RIFF and RF64, files and pipes. A file that is cut off inside its samples plays what is there.
/// Thread: one at a time, never the media thread: it waits for the disk. `FilePlayerFilter` brings a file to the graph.
package final class WAVReader {
    /// What the file says of itself.
    package let header: WAVHeader
    /// Whether the file holds fewer samples than it says; for a pipe, known only at its end.
    package private(set) var isTruncated = false
    /// Frames in the file, or nil for a pipe that does not say.
    package let frameCount: Int?
    /// The frame that `read` gives next.
    package private(set) var position = 0

    /// Whether reading may wait for whoever writes into the other end.
    package var isPipe: Bool { source.byteCount == nil }

    private let source: any ByteSource
    /// Bytes of samples that are not read yet; `Int.max` for a pipe that does not say.
    private var remainingByteCount: Int
    private let byteCount: Int
    private let scratch: UnsafeMutableRawBufferPointer

    /// Opens the file at `path` and reads its header.
    ///
    /// - Throws: `WAVError` when the file cannot be read, is empty or cut off, is no WAV, or is coded in an
    ///   unsupported way; also when the wait for a pipe's writer was given up (`ReadingEnd`).
    package convenience init(path: String) throws(WAVError) {
        let file = try POSIXFile(reading: path)
        do throws(WAVError) {
            try self.init(source: file)
        } catch {
            // What had come by then says nothing of what the file is.
            guard file.isGivenUp else { throw error }
            throw WAVError(.ioFailure, "Interrupted before \(path) gave its first sample. Start it again.")
        }
    }

    /// Reads a WAV file that is in memory.
    ///
    /// - Parameters:
    ///   - bytes: The file's content.
    ///   - name: What messages call it.
    /// - Throws: `WAVError`, as for a file.
    package convenience init(bytes: [UInt8], name: String = "The WAV") throws(WAVError) {
        try self.init(source: MemoryByteSource(bytes, name: name))
    }

    /// So many frames, 49 hours at 48 kHz, are not counted: whoever says so does not say how long it is.
    static var largestFrameCount: Int { 1 << 33 }

    init(source: any ByteSource) throws(WAVError) {
        self.source = source
        header = try WAVHeader(reading: source)
        if let all = source.byteCount {
            let present = max(0, all - header.dataOffset)
            let declared = header.declaredByteCount ?? present
            byteCount = min(present, declared)
            isTruncated = present < declared || (header.declaredByteCount == nil && present % header.bytesPerFrame != 0)
        } else {
            byteCount = header.declaredByteCount ?? .max
        }
        let frameCount = byteCount / header.bytesPerFrame
        self.frameCount = frameCount < Self.largestFrameCount ? frameCount : nil
        remainingByteCount = byteCount
        scratch = .allocate(byteCount: max(4096, header.bytesPerFrame), alignment: 8)
    }

    deinit {
        scratch.deallocate()
    }

    /// Rate and channels of the samples that `read` gives.
    package var format: AudioFormat { header.format }

    /// Reads the next frames into `target` and answers how many; 0 at the end.
    ///
    /// - Parameter target: Interleaved samples; what does not fill a frame at its end stays untouched.
    /// - Returns: The frames read.
    /// - Throws: `WAVError` when the disk fails.
    package func read(into target: inout MutableSpan<Int16>) throws(WAVError) -> Int {
        let channelCount = format.channelCount
        let wanted = target.count / channelCount
        var done = 0
        while done < wanted {
            let frameCount = min(wanted - done, scratch.count / header.bytesPerFrame)
            let byteCount = min(frameCount * header.bytesPerFrame, remainingByteCount)
            guard byteCount >= header.bytesPerFrame else { break }
            let got = try source.read(into: UnsafeMutableRawBufferPointer(rebasing: scratch[..<byteCount]))
            if got < byteCount {
                isTruncated = header.declaredByteCount != nil || got % header.bytesPerFrame != 0
                remainingByteCount = 0
            } else if remainingByteCount != .max {
                remainingByteCount -= got
            }
            let gotFrames = got / header.bytesPerFrame
            let range = done * channelCount..<(done + gotFrames) * channelCount
            target.withUnsafeMutableBufferPointer { target in
                let part = UnsafeMutableBufferPointer(rebasing: target[range])
                header.coding.decode(UnsafeRawBufferPointer(scratch), into: part)
            }
            done += gotFrames
        }
        position += done
        return done
    }

    /// Goes back to the first frame.
    ///
    /// - Throws: `WAVError` where the file is a pipe.
    package func rewind() throws(WAVError) {
        guard source.seek(to: header.dataOffset) else {
            throw WAVError(.ioFailure, "\(source.name) cannot be played again: it is a pipe. Copy it to a file first.")
        }
        remainingByteCount = byteCount
        position = 0
    }
}
