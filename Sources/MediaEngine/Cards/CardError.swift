/// Why a sound card could not be found, opened or set.
public struct CardError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public enum Code: Hashable, Sendable {
        /// No card has that name.
        case unknownCard
        /// The card is not there, or went away.
        case absent
        /// Another program has the card.
        case busy
        /// The card cannot do what is asked: that direction, rate, or channel count.
        case unsupported
        /// The user may not use the card.
        case forbidden
        /// A binding of a role is written wrongly.
        case configuration
        /// The card or its library failed.
        case deviceFailure
    }

    /// The kind of failure.
    public let code: Code
    /// What failed, with values, and the remedy.
    public let message: String

    /// An error with a code and a message.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
