/// The frames that one port carries in one tick: a view of memory that the graph's plan owns.
///
/// Shape: interleaved `Int16`, `frameCount` × `channelCount` samples.
/// Thread: media. The view is valid during the `process` call that it was handed to, and must not be kept:
/// the plan gives the same memory to other ports later in the tick.
public struct AudioBlock {
    @usableFromInline let base: UnsafeMutablePointer<Int16>
    @usableFromInline let storedFrameCount: Int32
    @usableFromInline let storedChannelCount: Int32

    @usableFromInline init(base: UnsafeMutablePointer<Int16>, frameCount: Int32, channelCount: Int32) {
        self.base = base
        storedFrameCount = frameCount
        storedChannelCount = channelCount
    }

    /// Frames in this tick.
    @inlinable public var frameCount: Int { Int(storedFrameCount) }

    /// Samples per frame.
    @inlinable public var channelCount: Int { Int(storedChannelCount) }

    /// The samples, to read.
    @inlinable public var samples: Span<Int16> {
        @_lifetime(borrow self) get {
            let buffer = UnsafeBufferPointer(start: base, count: frameCount &* channelCount)
            return _overrideLifetime(buffer.span, borrowing: self)
        }
    }

    /// The samples, to write.
    ///
    /// Only a filter's outputs may be written.
    @inlinable public var mutableSamples: MutableSpan<Int16> {
        @_lifetime(borrow self) get {
            let buffer = UnsafeMutableBufferPointer(start: base, count: frameCount &* channelCount)
            return _overrideLifetime(buffer.mutableSpan, borrowing: self)
        }
    }

    /// Writes silence to every sample.
    @inlinable public func fillWithSilence() {
        base.update(repeating: 0, count: frameCount &* channelCount)
    }

    /// Copies the samples of `other`, which must have the same shape.
    @inlinable package func copy(from other: AudioBlock) {
        precondition(other.frameCount == frameCount && other.channelCount == channelCount)
        guard base != other.base else { return }
        base.update(from: other.base, count: frameCount &* channelCount)
    }
}
