public import CallBasics

/// Why a session description cannot be read, written, offered or answered.
public typealias SDPError = Failure<SDPFault>

/// The kinds of `SDPError`.
public enum SDPFault: Hashable, Sendable {
    /// The bytes hold no line of a session description.
    case notADescription
    /// There is more of something than is taken: bytes, lines, media, attributes or formats.
    case limitExceeded
    /// A character that a description cannot hold, in bytes that came or in text to be written.
    case invalidCharacter
    /// A line that everything else depends on is not understood.
    case invalidLine
    /// The configuration cannot be written as a description.
    case invalidConfiguration
    /// The call does not fit the state: an offer waits, or none does.
    case wrongState
    /// The offer breaks a rule that holds for the whole session.
    case invalidOffer
    /// Nothing of the offer can be taken; SIP answers 488.
    case notAcceptable
    /// The answer is not one to the offer that was made.
    case answerDoesNotFit
}
