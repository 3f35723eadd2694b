import ArgumentParser
import MediaEngine

/// Lists the plugins and what became of each.
struct PluginsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plugins",
        abstract: "Lists plugins: what each registered, what it lacks, and why.",
        discussion: """
            EXAMPLES
              media-tool plugins
              media-tool plugins --json
            """
    )

    @OptionGroup var common: CommonOptions

    func run() throws {
        common.startLogging()
        var registry = PluginRegistry.standard()
        registry.reload()
        common.show(
            ["plugins": .array(registry.plugins.map(Self.json))],
            text: Table.text(
                [["NAME", "STATE", "WHAT IT DID"]]
                    + registry.plugins.map { [$0.name, $0.state.rawValue, $0.summary] }
            )
        )
    }

    private static func json(_ plugin: LoadedPlugin) -> JSONValue {
        [
            "name": .string(plugin.name),
            "state": .string(plugin.state.rawValue),
            "codecs": JSONValue(plugin.codecs),
            "missing": .array(plugin.missing.map(JSONValue.init)),
            "errors": JSONValue(plugin.errors),
        ]
    }
}
