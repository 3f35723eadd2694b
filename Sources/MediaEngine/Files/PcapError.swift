/// Why a capture file could not be read or written.
public struct PcapError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What failed.
    public enum Code: Sendable {
        /// The system refused to open, read or write the file.
        case system
        /// The file is not a classic capture.
        case notACapture
        /// The file is a capture of the newer kind, pcapng.
        case nextGeneration
        /// The capture comes from a kind of network that is not read.
        case unsupportedLinkType
        /// The file is larger than what is read at once.
        case tooLarge
    }

    /// What failed.
    public let code: Code
    /// What is wrong, and what to do about it.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
