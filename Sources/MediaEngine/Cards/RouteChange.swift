/// Another card has taken over one direction of the calls.
public struct RouteChange: Sendable, Hashable {
    /// Why it has.
    public enum Cause: String, Sendable, Hashable {
        /// The application wanted it.
        case asked
        /// The card before went away.
        case unplugged
        /// The card that the application had wanted came back.
        case returned
    }

    /// Which way sound goes through the card.
    public var direction: CardDirection
    /// The name of the card before.
    public var from: String
    /// The name of the card since.
    public var to: String
    /// Why.
    public var cause: Cause
    /// When, on the engine's clock, in seconds.
    public var seconds: Double
    /// Sound in the card before, while it still moved.
    public var latencyBeforeMs: Double
    /// Sound in the card since, once it moved; nil when it did not within two seconds.
    public var latencyAfterMs: Double?

    /// The change as one line for people.
    package var line: String {
        let after = latencyAfterMs.map { "\($0) ms" } ?? "nothing moves"
        return "\(direction) from \(from) (\(latencyBeforeMs) ms) to \(to) (\(after)), \(cause.rawValue)"
    }
}
