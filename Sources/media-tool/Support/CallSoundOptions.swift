import ArgumentParser
import CallCore
import MediaEngine

/// How the sound of calls travels.
struct MediaFormatOptions: ParsableArguments {
    @Option(help: ArgumentHelp("A codec, see `codecs`; more for more, the preferred one first.", valueName: "name"))
    var codec: [String] = []

    @Option(help: ArgumentHelp("Audio per packet that is asked for, 10 to 120.", valueName: "ms"))
    var ptime: Int?

    func validate() throws {
        try Quantity.check("--ptime", ptime, in: 10...120, "ms")
        if let ptime, ptime % 10 != 0 {
            throw ValidationError("The value '\(ptime)' of '--ptime' is no multiple of 10 ms. Give 10, 20, 40, 60.")
        }
    }

    /// The preferred one first.
    var codecs: [String] { codec.isEmpty ? ["opus", "G722", "PCMU", "PCMA"] : codec }
}

extension PluginRegistry {
    /// Refuses names of codecs that are not there.
    ///
    /// - Throws: `CodecError` of the first one
    func check(codecs names: [String]) throws(CodecError) {
        for name in names { _ = try codec(named: name) }
    }
}

/// Where the sound of calls comes from and goes to, and how it travels.
struct CallSoundOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The WAV file to send, once. With it, or --output, no card is used. \(InputPath.help)",
            valueName: "file"
        ),
        completion: .file(extensions: ["wav"])
    )
    var input: String?

    @Option(
        help: ArgumentHelp("The WAV file to write what is heard to.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var output: String?

    @Option(
        help: ArgumentHelp("The card to call with, in the place of --au.", valueName: "device"),
        completion: DeviceName.completion
    )
    var device: String?

    @OptionGroup var format: MediaFormatOptions

    @Option(
        help: ArgumentHelp("The capture (pcap) of all RTP and RTCP to write.", valueName: "file"),
        completion: .file(extensions: ["pcap"])
    )
    var pcap: String?

    @OptionGroup var roles: BindingOptions

    func validate() throws {
        try roles.check(device: device, isRoleTaken: false)
        try roles.check(device: device, beside: "--input", input)
        try roles.check(device: device, beside: "--output", output)
    }

    /// Refuses other ends of calls that give back what they hear.
    ///
    /// - Throws: `ValidationError`
    func check(echo: Bool) throws {
        guard echo else { return }
        if let other = [("--input", input), ("--output", output)].first(where: { $0.1 != nil })?.0 {
            throw ValidationError("'--echo' sends back what is heard, in the place of '\(other)'. Leave out one.")
        }
        try roles.check(device: device, beside: "--echo", "")
    }

    /// Files that are read and written; an error names two that are one.
    func check(_ files: inout FileArguments) throws {
        try files.read("--input", input.map { InputPath.path(of: $0) })
        try files.write("--output", output)
        try files.write("--pcap", pcap)
    }

    /// Refuses, before calls come, what each of them would fail by.
    ///
    /// - Throws: `CodecError` of a codec that is not there, `WAVError` of an input that cannot be read, `ToolFailure` of a file
    ///   that cannot be written
    func check(by registry: PluginRegistry) throws {
        try registry.check(codecs: format.codecs)
        if let input { _ = try AudioInput(path: input, seconds: nil, format: CallEngine.cardFormat) }
        try FileArguments.checkWritable(output)
        try FileArguments.checkWritable(pcap)
    }

    /// How the engine is made that has the sound.
    func engineConfiguration() throws -> CallEngineConfiguration { try roles.engineConfiguration(device: device) }

    /// Where a call's sound comes from and goes to.
    func ends(echo: Bool = false) -> @Sendable (inout CallConfiguration) -> Void {
        let (input, output, pcap) = (input.map { InputPath.path(of: $0) }, output, pcap)
        return { configuration in
            configuration.capturePath = pcap
            guard !echo else { return CallSound.echo(&configuration) }
            guard input != nil || output != nil else { return }
            configuration.source = input.map { .file($0) } ?? .silence
            configuration.sink = output.map { .file($0) } ?? .none
        }
    }
}
