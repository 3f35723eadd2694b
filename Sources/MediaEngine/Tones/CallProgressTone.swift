/// The tones by which a telephone network tells a caller how the call stands.
///
/// Source: ITU-T E.180/Q.35 for their meaning; `CallProgressTones` has what each country plays.
public enum CallProgressTone: String, CaseIterable, Hashable, Sendable {
    /// The network waits for digits.
    case dial
    /// The far end is being called ("ringing tone" in E.180).
    case ringback
    /// The far end is busy.
    case busy
    /// There is no way to the far end now; "reorder" in North America.
    case congestion
    /// Another call waits for a person who is in a call.
    case callWaiting = "call-waiting"
    /// An announcement tells why the call cannot be put through: three rising sounds, known as SIT.
    case specialInformation = "special-information"
    /// A service was switched on or off as asked.
    case confirmation
}
