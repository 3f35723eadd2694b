/// Something that happened in an engine, outside of one call.
public enum EngineEvent: Sendable, Hashable {
    /// Something happened to a card.
    case card(CardRouteEvent)
}
