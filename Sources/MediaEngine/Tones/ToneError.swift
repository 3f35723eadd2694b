public import CallBasics

/// A tone that was asked for and cannot be made.
public typealias ToneError = Failure<ToneFault>

/// The kinds of `ToneError`.
public enum ToneFault: Hashable, Sendable {
    /// A character of a digit string is neither a digit nor a pause.
    case invalidDigit
    /// A tone's frequencies, levels or durations cannot be played.
    case invalidTone
    /// No tones are known for the country.
    case unknownCountry
    /// The samples of a ring do not fit the stream that they are for.
    case unsuitableSamples
}
