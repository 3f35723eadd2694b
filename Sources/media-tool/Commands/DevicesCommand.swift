import ArgumentParser
import MediaEngine

/// Lists the sound cards and what the roles stand for.
struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "Lists sound cards, and what the roles AU and AQ are bound to.",
        discussion: """
            A role stands for the PCM that a flag, the environment (MEDIA_ENGINE_AU, MEDIA_ENGINE_AU_PLAYBACK, \
            MEDIA_ENGINE_AU_CAPTURE, MEDIA_ENGINE_AQ), the file $XDG_CONFIG_HOME/media-engine/config (without that \
            variable ~/.config/media-engine/config) or, last, ALSA's `default` names. No device is opened.

            EXAMPLES
              media-tool devices
              media-tool devices --json
              media-tool devices --aq 'alsa:plughw:1'
            """
    )

    @OptionGroup var common: CommonOptions
    @OptionGroup var roles: BindingOptions

    func run() throws {
        common.startLogging()
        let bindings = try roles.bindings()
        let cards = try CardList(bindings: bindings).cards.map(\.description)
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

    private static func json(_ card: CardDescription) -> JSONValue {
        [
            "name": .string(card.name),
            "id": .string(card.id.description),
            "backend": .string(card.backend),
            "capabilities": .string(card.capabilities.text),
            "state": .string(card.state.rawValue),
        ]
    }

    private static func json(_ binding: CardBinding) -> JSONValue {
        ["device": .string(binding.device), "source": .string(binding.source)]
    }

    private static func text(_ cards: [CardDescription], _ bindings: CardBindings) -> String {
        func row(_ name: String, _ binding: CardBinding) -> [String] { [name, binding.device, binding.source] }
        let heading = ["NAME", "ID", "BACKEND", "CAPABILITIES", "STATE"]
        let rows = cards.map { [$0.name, $0.id.description, $0.backend, $0.capabilities.text, $0.state.rawValue] }
        return Table.text([heading] + rows) + "\n"
            + Table.text([
                ["ROLE", "BOUND TO", "BY"],
                row("\(CardRole.call.rawValue), playback", bindings.callPlayback),
                row("\(CardRole.call.rawValue), capture", bindings.callCapture),
                row(CardRole.ringer.rawValue, bindings.ringer),
            ])
    }
}
