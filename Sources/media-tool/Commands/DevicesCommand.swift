import ArgumentParser
import MediaEngine

/// Lists the sound cards and what the roles stand for.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "Lists sound cards, whether they open, and what the roles AU and AQ are bound to.",
        discussion: """
            A role stands for the PCM that a flag, the environment (MEDIA_ENGINE_AU, MEDIA_ENGINE_AU_PLAYBACK, \
            MEDIA_ENGINE_AU_CAPTURE, MEDIA_ENGINE_AQ), the file $XDG_CONFIG_HOME/media-engine/config (without that \
            variable ~/.config/media-engine/config) or, last, ALSA's `default` names.

            Each card is opened for a moment as a call would open it; why one does not open is said below the list.

            EXAMPLES
              media-tool devices
              media-tool devices --json
              media-tool devices --aq 'alsa:plughw:1'
            """
    )

    @OptionGroup var common: CommonOptions
    @OptionGroup var roles: BindingOptions

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let bindings = try roles.bindings()
        let cards = try await CardTrial.of(CardList(bindings: bindings).cards)
        common.show(
            [
                "devices": .array(cards.map(Self.json)),
                "roles": [
                    [
                        "name": .string(CardRole.call.rawValue),
                        "role": "AU",
                        "playback": Self.json(bindings.callPlayback),
                        "capture": Self.json(bindings.callCapture),
                    ],
                    [
                        "name": .string(CardRole.ringer.rawValue),
                        "role": "AQ",
                        "playback": Self.json(bindings.ringer),
                        "capture": .null,
                    ],
                ],
            ],
            text: Self.text(cards, bindings)
        )
    }

    private static func json(_ trial: CardTrial) -> JSONValue {
        let card = trial.card
        return [
            "name": .string(card.name),
            "id": .string(card.id.description),
            "backend": .string(card.backend),
            "capabilities": .string(card.directions.text),
            "state": .string(card.state.rawValue),
            "playbackProblem": JSONValue(trial.problems[.playback]),
            "captureProblem": JSONValue(trial.problems[.capture]),
        ]
    }

    private static func json(_ binding: CardBinding) -> JSONValue {
        ["device": .string(binding.device), "source": .string(binding.source)]
    }

    private static func text(_ trials: [CardTrial], _ bindings: CardBindings) -> String {
        func row(_ name: String, _ binding: CardBinding) -> [String] { [name, binding.device, binding.source] }
        let heading = ["NAME", "ID", "BACKEND", "CAPABILITIES", "STATE", "OPENS"]
        let rows = trials.map { trial in
            let card = trial.card
            return [
                card.name, card.id.description, card.backend, card.directions.text, card.state.rawValue, trial.opens,
            ]
        }
        let problems = trials.flatMap(\.explanation)
        return Table.text([heading] + rows) + (problems.isEmpty ? "" : "\n" + problems.joined(separator: "\n") + "\n")
            + "\n"
            + Table.text([
                ["ROLE", "BOUND TO", "BY"],
                row("\(CardRole.call.rawValue), playback", bindings.callPlayback),
                row("\(CardRole.call.rawValue), capture", bindings.callCapture),
                row(CardRole.ringer.rawValue, bindings.ringer),
            ])
    }
}
