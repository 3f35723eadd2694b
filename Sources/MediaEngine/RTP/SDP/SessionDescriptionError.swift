/// Why a text is not a session description that this engine can use.
public struct SessionDescriptionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of defect was found.
    public enum Code: Sendable {
        /// Larger than any honest description.
        case tooLarge
        /// There is no audio in it.
        case noAudio
        /// The audio travels by a protocol that the engine does not speak.
        case unsupportedProtocol
        /// The line that describes the audio is not understood.
        case invalidMedia
        /// No address says where the audio goes.
        case noAddress
    }

    /// The kind of defect.
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
