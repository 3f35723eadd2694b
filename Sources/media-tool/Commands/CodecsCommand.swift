import ArgumentParser
import MediaEngine

/// Lists the codecs, and those that one could expect and that are not there.
struct CodecsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "codecs",
        abstract: "Lists codecs: who registered each, what is missing, and why.",
        discussion: """
            With --log-level notice, each codec that a plugin could not register leaves the lines `Could not find \
            encoder for NAME` and `Could not find decoder for NAME` in the log.

            EXAMPLES
              media-tool codecs
              media-tool codecs --json
            """
    )

    @OptionGroup var common: CommonOptions

    func run() throws {
        common.startLogging()
        var registry = PluginRegistry.standard()
        registry.reload()
        common.show(
            [
                "codecs": .array(registry.codecs.map(Self.json)),
                "missing": .array(registry.missing.map(JSONValue.init)),
            ],
            text: Self.text(registry)
        )
    }

    private static func json(_ entry: RegisteredCodec) -> JSONValue {
        let codec = entry.description
        return [
            "name": .string(codec.name),
            "clockRate": .integer(codec.clockRate),
            "sampleRate": .integer(codec.format.sampleRate),
            "channels": .integer(codec.rtpmapChannelCount),
            "payloadType": codec.staticPayloadType.map { .integer(Int($0)) } ?? .null,
            "ptimeMs": .milliseconds(codec.defaultPtime),
            "registeredBy": .string(entry.registeredBy),
            "overrides": JSONValue(entry.overrides),
            "enabled": .bool(entry.isEnabled),
        ]
    }

    private static func text(_ registry: PluginRegistry) -> String {
        let rows = registry.codecs.map { entry in
            let codec = entry.description
            return [
                codec.name, "\(codec.clockRate)", "\(codec.format.sampleRate)", "\(codec.rtpmapChannelCount)",
                codec.staticPayloadType.map { "\($0)" } ?? "dynamic", entry.registeredBy,
                entry.overrides.isEmpty ? "" : "in place of \(entry.overrides.joined(separator: ", "))",
            ]
        }
        let heading = ["NAME", "CLOCK HZ", "SAMPLE HZ", "CHANNELS", "PAYLOAD TYPE", "REGISTERED BY"]
        let missing = registry.missing.map { ["\($0.name)", "\($0.reason) \($0.remedy)"] }
        return Table.text([heading] + rows) + "\n" + Table.text([["MISSING", "WHY, AND WHAT TO DO"]] + missing)
    }
}

extension JSONValue {
    /// Name, reason and remedy.
    init(_ missing: MissingCodec) {
        self = [
            "name": .string(missing.name),
            "reason": .string(missing.reason),
            "remedy": .string(missing.remedy),
        ]
    }
}
