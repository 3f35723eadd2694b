public import CallBasics

/// Why a WAV file could not be read or written.
public typealias WAVError = Failure<WAVFault>

/// The kinds of `WAVError`.
public enum WAVFault: Hashable, Sendable {
    /// The file could not be opened for reading.
    case unreadable
    /// The file could not be created or opened for writing.
    case unwritable
    /// The file holds no byte.
    case empty
    /// The bytes do not start a RIFF or RF64 file of type WAVE.
    case notWAV
    /// The file ends before its samples begin.
    case truncatedHeader
    /// The file is a WAV whose samples are coded in a way that is not supported.
    case unsupported
    /// The file holds more than the caller asked to keep in memory, or more than a WAV can hold.
    case tooLarge
    /// Sound is missing in a recording, because its disk or reader was too slow; in a file it is silent, in a pipe left out.
    case incomplete
    /// A read or write failed in the middle: a full disk, a device that went away.
    case ioFailure
}
