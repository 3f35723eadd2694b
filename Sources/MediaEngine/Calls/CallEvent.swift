/// Something that happened in a call.
public enum CallEvent: Sendable, Equatable {
    /// The other side pressed a key (RFC 4733, or tones where the call listens for them).
    case keyDown(DTMFDigit)
    /// The other side released it after it was held for `duration`.
    case keyUp(DTMFDigit, duration: Duration)
    /// The other side told what it receives: round trip and loss are new.
    case report(fractionLost: Double)
    /// In-band FEC was switched because of what the other side reported.
    case fec(isOn: Bool)
    /// Another sender took the place of the one that was heard.
    case sourceChanged
    /// The other side said goodbye (RTCP BYE).
    case goodbye
    /// The source (file, samples) has been played to its end.
    case sourceEnded
}
