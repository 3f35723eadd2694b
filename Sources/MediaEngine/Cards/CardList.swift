/// The cards of this machine: the two roles, ALSA's cards, and the built-in ones.
///
/// Thread: control. A list is a picture of one moment; make another to see what was plugged in since.
public struct CardList: Sendable {
    /// All cards, in order of preference.
    public let cards: [any SoundCard]
    /// The call card.
    package let callCard: RoleCard
    /// The ringer card.
    package let ringerCard: RoleCard

    /// The cards that are there now; no device is opened.
    ///
    /// Thread: it blocks while ALSA is asked, some milliseconds as a rule.
    /// - Parameter bindings: What the roles stand for.
    /// - Throws: `CardError` when a binding is the name of a role.
    package init(bindings: CardBindings = CardBindings()) throws(CardError) {
        try self.init(devices: ALSAEnumeration.cards() + Self.builtIn(), bindings: bindings)
    }

    /// The roles and the built-in cards alone; ALSA is not asked.
    ///
    /// - Throws: `CardError` when a binding is the name of a role.
    init(builtInBeside bindings: CardBindings) throws(CardError) {
        try self.init(devices: Self.builtIn(), bindings: bindings)
    }

    /// The roles over `devices`, in place of what is really there.
    ///
    /// - Throws: `CardError` when a binding is the name of a role.
    package init(devices: [any SoundCard], bindings: CardBindings) throws(CardError) {
        func card(_ binding: CardBinding) throws(CardError) -> any SoundCard {
            guard !CardRole.allCases.contains(where: { $0.isNamed(binding.device) }) else {
                throw CardError(
                    .configuration,
                    "\(binding.source) binds a role to the role \(binding.device). Name a PCM instead."
                )
            }
            return Self.find(binding.device, in: devices) ?? ALSACard(pcm: binding.device)
        }
        let call = [(CardDirection.playback, bindings.callPlayback), (.capture, bindings.callCapture)]
        callCard = RoleCard(
            .call,
            playback: try card(bindings.callPlayback),
            capture: try card(bindings.callCapture),
            boundByHand: Set(call.filter(\.1.isByHand).map(\.0))
        )
        ringerCard = RoleCard(
            .ringer,
            playback: try card(bindings.ringer),
            capture: nil,
            boundByHand: bindings.ringer.isByHand ? [.playback] : []
        )
        cards = [callCard, ringerCard] + devices
    }

    /// The card that has the name or the identity `name`; "null" is the built-in one, "alsa:PCM" any PCM.
    ///
    /// - Throws: `CardError` with a list of what there is.
    public func card(named name: String) throws(CardError) -> any SoundCard {
        if CardRole.call.isNamed(name) { return callCard }
        if CardRole.ringer.isNamed(name) { return ringerCard }
        if let card = Self.find(name, in: cards) { return card }
        let names = cards.map { "\($0.description.name) (\($0.description.id))" }.joined(separator: ", ")
        throw CardError(.unknownCard, "There is no card \(name). There are: \(names); or name a PCM as alsa:PCM.")
    }

    private static func find(_ name: String, in cards: [any SoundCard]) -> (any SoundCard)? {
        if name == "null" { return cards.first { $0.description.id == "builtin:null" } ?? NullCard() }
        if let card = cards.first(where: { $0.description.id.description == name }) { return card }
        if let card = cards.first(where: { $0.description.name == name }) { return card }
        guard name.hasPrefix("alsa:"), name.count > 5 else { return nil }
        return ALSACard(pcm: String(name.dropFirst(5)))
    }

    private static func builtIn() -> [any SoundCard] {
        let (one, other) = LoopbackCard.pair()
        return [NullCard(), one, other]
    }
}
