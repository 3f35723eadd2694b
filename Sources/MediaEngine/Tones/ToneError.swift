/// A tone that was asked for and cannot be made.
public struct ToneError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of thing was wrong.
    public enum Code: Hashable, Sendable {
        /// A character of a digit string is neither a digit nor a pause.
        case invalidDigit
        /// A tone's frequencies, levels or durations cannot be played.
        case invalidTone
        /// No tones are known for the country.
        case unknownCountry
        /// The country has no tone of that name.
        case unknownTone
        /// The samples of a ring do not fit the stream that they are for.
        case unsuitableSamples
    }

    /// What kind of thing was wrong.
    public let code: Code
    /// What failed, with its values, and the remedy.
    public let message: String

    /// The message.
    public var description: String { message }

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
