import ArgumentParser
import MediaEngine

/// Cards by the names that people type.
enum DeviceName {
    /// Offers the cards that are there.
    static let completion = CompletionKind.custom { _, _, _ in
        guard let list = try? CardList() else { return ["null"] }
        return list.cards.map(\.description.name) + ["null"]
    }

    /// What `--device` takes, for help texts.
    static let help = "A card's name or id, a PCM as alsa:PCM, or null."

    /// The card called `name`, or the role's.
    ///
    /// - Throws: `CardError` with a list of what there is.
    static func card(_ name: String?, role: CardRole, in cards: CardList) throws -> any SoundCard {
        if let name { return try cards.card(named: name) }
        return role == .call ? cards.callCard : cards.ringerCard
    }

    /// Says on standard error, once, that a role's card is not there and the null card stands in.
    static func noteFallback(_ card: any SoundCard) {
        guard let notice = (card as? RoleCard)?.takeNotice() else { return }
        StandardError.write("Note: \(notice)\n")
    }
}
