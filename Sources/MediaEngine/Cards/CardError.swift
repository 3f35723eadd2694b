public import CallBasics

/// Why a sound card could not be found, opened or set.
public typealias CardError = Failure<CardFault>

/// The kinds of `CardError`.
public enum CardFault: Hashable, Sendable {
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
    /// The card did not answer in time.
    case timedOut
    /// Another card was asked for before this one was open.
    case superseded
}
