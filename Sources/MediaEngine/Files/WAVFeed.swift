import Synchronization

/// Whether and how a file starts over at its end.
public enum FileRepetition: Hashable, Sendable {
    /// It is played once.
    case once
    /// It is played again and again with silence between.
    case forever(pause: Duration)
}

/// A WAV file on its way to the media thread: read, converted and kept ready a second ahead.
///
/// Its `serve` reads the file and converts channels and rate; the media thread takes samples from a ring.
/// Thread: `read` and `isEnded` media; the rest control or background.
package final class WAVFeed: BackgroundService, @unchecked Sendable {
    /// What `read` gives.
    package let format: AudioFormat
    /// Frames of one pass at `format`'s rate, or nil where the file does not say (a pipe).
    package let frameCount: Int?
    /// Whether the file holds fewer samples than it says.
    package let isTruncated: Bool
    /// Whether `serve` may wait for whoever writes into the other end: then it needs a thread of its own, `PipeService`.
    let isPipe: Bool

    private let reader: WAVReader
    private let resampler: Resampler?
    private let repetition: FileRepetition
    private let ring: RingBuffer<Int16>
    private let completed = Atomic(false)
    private let failureMessage = Mutex<WAVError?>(nil)
    private var phase = Phase.reading
    /// Frames of the file, in its own channels and rate, from `raw.start` on.
    private var raw: Chunk
    private let mapped: UnsafeMutableBufferPointer<Int16>
    private var mappedFrames = 0..<0
    private let converted: UnsafeMutableBufferPointer<Int16>

    private enum Phase {
        case reading
        case draining
        case pausing(framesLeft: Int)
        case complete
    }

    private typealias Chunk = UnsafeMutableBufferPointer<Int16>
    private static var chunkFrameCount: Int { 1024 }

    /// A feed from the start of `reader`, filled once so that the first tick finds sound, unless that is a pipe.
    ///
    /// - Parameters:
    ///   - reader: The file.
    ///   - format: What the media thread wants.
    ///   - repetition: What follows the file's end.
    ///   - prefetch: Sound kept ready.
    package init(
        _ reader: consuming sending WAVReader,
        format: AudioFormat,
        repetition: FileRepetition = .once,
        prefetch: Duration = .seconds(1)
    ) {
        self.format = format
        self.repetition = repetition
        let source = reader.format
        if source.sampleRate == format.sampleRate {
            resampler = nil
            frameCount = reader.frameCount
        } else {
            resampler = Resampler(
                from: source.sampleRate,
                to: format.sampleRate,
                channelCount: format.channelCount,
                quality: .high,
                skipsDelay: true
            )
            frameCount = reader.frameCount.map {
                ($0 * format.sampleRate + source.sampleRate - 1) / source.sampleRate
            }
        }
        isTruncated = reader.isTruncated
        raw = .allocate(capacity: Self.chunkFrameCount * source.channelCount)
        raw.initialize(repeating: 0)
        mapped = .allocate(capacity: Self.chunkFrameCount * format.channelCount)
        mapped.initialize(repeating: 0)
        converted = .allocate(capacity: Self.chunkFrameCount * format.channelCount)
        converted.initialize(repeating: 0)
        let samples = format.frameCount(in: prefetch) * format.channelCount
        ring = RingBuffer(minimumCapacity: samples + Self.chunkFrameCount * format.channelCount)
        self.reader = reader
        isPipe = reader.isPipe
        if !isPipe { serve() }
    }

    deinit {
        raw.deallocate()
        mapped.deallocate()
        converted.deallocate()
    }

    /// Why the feed ended before the file did, or nil.
    package var failure: WAVError? { failureMessage.withLock { $0 } }

    /// Whether nothing more will come.
    var isComplete: Bool { completed.load(ordering: .acquiring) }

    /// Whether the last sample has been taken.
    package var isEnded: Bool { isComplete && ring.count == 0 }

    /// Moves the next samples into `target` and answers how many; the rest of `target` is untouched.
    ///
    /// Thread: media.
    package func read(into target: inout MutableSpan<Int16>) -> Int { ring.pop(into: &target) }

    /// Refills the ring.
    package func serve() {
        while ring.freeCount >= Self.chunkFrameCount * format.channelCount {
            guard produce() else { return }
        }
    }

    /// Puts at most one chunk into the ring; answers false at the end of all.
    private func produce() -> Bool {
        switch phase {
        case .reading:
            if mappedFrames.isEmpty, !readChunk() { return true }
            push()
            return true
        case .draining:
            drain()
            return true
        case .pausing(let framesLeft):
            let count = min(framesLeft, Self.chunkFrameCount)
            for _ in 0..<count * format.channelCount { ring.push(0) }
            phase = count < framesLeft ? .pausing(framesLeft: framesLeft - count) : .reading
            return true
        case .complete:
            return false
        }
    }

    private func readChunk() -> Bool {
        do throws(WAVError) {
            var target = raw.mutableSpan
            let count = try reader.read(into: &target)
            guard count > 0 else {
                phase = .draining
                return false
            }
            mapChannels(frameCount: count)
            mappedFrames = 0..<count
            return true
        } catch {
            finish(with: error)
            return false
        }
    }

    private func push() {
        let channelCount = format.channelCount
        let waiting = UnsafeBufferPointer(
            rebasing: mapped[mappedFrames.lowerBound * channelCount..<mappedFrames.upperBound * channelCount]
        )
        guard let resampler else {
            ring.push(contentsOf: waiting.span)
            mappedFrames = 0..<0
            return
        }
        var output = converted.mutableSpan
        let (consumed, produced) = resampler.process(waiting.span, into: &output)
        mappedFrames = mappedFrames.lowerBound + consumed..<mappedFrames.upperBound
        ring.push(contentsOf: output.span.extracting(0..<produced * channelCount))
    }

    private func drain() {
        var output = converted.mutableSpan
        if let resampler, case let count = resampler.drain(into: &output), count > 0 {
            ring.push(contentsOf: output.span.extracting(0..<count * format.channelCount))
            return
        }
        guard case .forever(let pause) = repetition, reader.position > 0 else { return finish(with: nil) }
        do throws(WAVError) {
            try reader.rewind()
            resampler?.reset()
            phase = .pausing(framesLeft: max(format.frameCount(in: pause), 0))
        } catch {
            finish(with: error)
        }
    }

    private func finish(with error: WAVError?) {
        failureMessage.withLock { $0 = error }
        phase = .complete
        completed.store(true, ordering: .releasing)
    }

    /// One channel goes to all; all go, averaged, to one; otherwise each to its own, and those without one are silent.
    private func mapChannels(frameCount: Int) {
        let from = reader.format.channelCount
        let to = format.channelCount
        for frame in 0..<frameCount {
            if from == 1 {
                for channel in 0..<to { mapped[frame * to + channel] = raw[frame] }
            } else if to == 1 {
                var sum = 0
                for channel in 0..<from { sum += Int(raw[frame * from + channel]) }
                mapped[frame] = Int16(clamping: sum / from)
            } else {
                for channel in 0..<to {
                    mapped[frame * to + channel] = channel < from ? raw[frame * from + channel] : 0
                }
            }
        }
    }
}
