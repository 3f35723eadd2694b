import Synchronization

/// A WAV file on its way from the media thread: samples wait in a ring until they are written.
///
/// Thread: `write` media; the rest control or background.
package final class WAVSink: BackgroundService, @unchecked Sendable {
    /// What `write` takes, and the file holds.
    package let format: AudioFormat

    private let writer: Mutex<WAVWriter?>
    private let finalFrameCount = Atomic(0)
    private let ring: RingBuffer<Int16>
    private let failureMessage = Mutex<WAVError?>(nil)
    private let chunk: UnsafeMutableBufferPointer<Int16>

    /// A sink into `writer`.
    ///
    /// - Parameters:
    ///   - writer: The file.
    ///   - slack: Sound that may wait for the disk before some is dropped.
    package init(_ writer: consuming sending WAVWriter, slack: Duration = .seconds(2)) {
        format = writer.format
        ring = RingBuffer(minimumCapacity: format.frameCount(in: slack) * format.channelCount)
        chunk = .allocate(capacity: 4096 / format.channelCount * format.channelCount)
        chunk.initialize(repeating: 0)
        self.writer = Mutex(writer)
    }

    deinit {
        chunk.deallocate()
    }

    /// Why samples no longer reach the file, or nil.
    package var failure: WAVError? { failureMessage.withLock { $0 } }

    /// Frames in the file.
    package var frameCount: Int {
        writer.withLock { $0?.frameCount } ?? finalFrameCount.load(ordering: .acquiring)
    }

    /// Adds whole frames, or drops them all when the disk is too far behind; answers the frames dropped.
    ///
    /// Thread: media.
    package func write(_ samples: Span<Int16>) -> Int {
        guard ring.freeCount >= samples.count else { return samples.count / format.channelCount }
        ring.push(contentsOf: samples)
        return 0
    }

    /// Writes what waits.
    package func serve() {
        writer.withLock { writer in
            while let writer {
                var target = chunk.mutableSpan
                let count = ring.pop(into: &target)
                guard count > 0 else { return }
                guard failure == nil else { continue }
                do throws(WAVError) {
                    try writer.write(target.span.extracting(0..<count))
                } catch {
                    failureMessage.withLock { $0 = error }
                }
            }
        }
    }

    /// Writes what waits, completes the header and closes the file; what comes later is dropped.
    ///
    /// - Parameter frameCount: Frames to keep, when the file holds more; nil keeps all. A pipe keeps all.
    /// - Throws: `WAVError` when some samples could not be written.
    package func close(keeping frameCount: Int? = nil) throws(WAVError) {
        serve()
        try writer.withLock { writer throws(WAVError) in
            guard let open = writer.take() else { return }
            if let frameCount { try open.truncate(to: frameCount) }
            finalFrameCount.store(open.frameCount, ordering: .releasing)
            try open.close()
        }
        if let failure { throw failure }
    }
}
