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

    /// The role of that name; nil where it is none's.
    static func role(_ name: String) -> CardRole? {
        CardRole.allCases.first { $0.rawValue == name || $0.id.description == name }
    }

    /// The card called `name`, or the role's.
    ///
    /// - Throws: `CardError` with a list of what there is.
    static func card(_ name: String?, role: CardRole, in cards: CardList) throws -> any SoundCard {
        if let name { return try cards.card(named: name) }
        return role == .call ? cards.callCard : cards.ringerCard
    }

    /// What was opened, and the name of the card that it was opened on.
    struct Opening<Result> {
        let result: Result
        let name: String
    }

    /// Opens the card called `name`, or the role's, for `direction`; where a role that nobody bound does not open the null
    /// card stands in, and a note on standard error says so.
    ///
    /// - Throws: What `body` throws for a card that was named, or that the role was bound to in this direction.
    static func open<Result>(
        _ name: String?,
        role: CardRole,
        _ direction: CardDirection,
        in cards: CardList,
        _ body: (any SoundCard) async throws -> Result
    ) async throws -> Opening<Result> {
        try await open(try card(name, role: role, in: cards), direction, body)
    }

    /// As `open(_:role:_:in:_:)`, for a card that was found.
    static func open<Result>(
        _ card: any SoundCard,
        _ direction: CardDirection,
        _ body: (any SoundCard) async throws -> Result
    ) async throws -> Opening<Result> {
        do {
            return Opening(result: try await body(card), name: card.description.name)
        } catch {
            guard let role = card as? RoleCard, !role.boundByHand.contains(direction), let reason = cardError(error)
            else { throw error }
            let result = try await body(NullCard())
            let name = card.description.name
            StandardError.write("Note: \(name) uses the built-in null card, which is silent. \(reason.message)\n")
            return Opening(result: result, name: name)
        }
    }

    private static func cardError(_ error: any Error) -> CardError? {
        if case .card(let error) = error as? EngineError { return error }
        return error as? CardError
    }
}
