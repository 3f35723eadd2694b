public import CallBasics

/// Why a capture file could not be read or written.
public typealias PcapError = Failure<PcapFault>

/// The kinds of `PcapError`.
public enum PcapFault: Hashable, Sendable {
    /// The system refused to open, read or write the file.
    case system
    /// Packets are missing in a capture, because its disk or reader was too slow.
    case incomplete
    /// The file is no capture, neither a classic one nor pcapng.
    case notACapture
    /// The capture comes from a kind of network that is not read.
    case unsupportedLinkType
    /// The file is larger than what is read at once.
    case tooLarge
}
