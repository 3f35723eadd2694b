import ArgumentParser
import MediaEngine

/// Looks at everything that calls need on this machine.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Checks cards, rights, timer, codecs, network, names, ports and authorities, and says what to do.",
        discussion: """
            Each role's card is opened briefly; where both directions of the call card open, silence is played for a \
            second and the latency is read. A warning means that calls work, though worse than they could. The exit \
            code is 1 when something failed, else 0. With two servers at --stun it tells the kind of NAT.

            EXAMPLES
              media-tool doctor
              media-tool doctor --json
              media-tool doctor --au 'alsa:plughw:1'
              media-tool doctor --stun stun.example.org --stun stun.example.net
            """
    )

    @OptionGroup var roles: BindingOptions
    @OptionGroup var common: CommonOptions

    @OptionGroup var servers: NATServerOptions

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let relay = try await servers.relay()
        let bindings = try roles.bindings()
        var findings = try await CardCheckup(cards: CardList(bindings: bindings), bindings: bindings).findings()
        findings += try await MachineCheckup.scheduling()
        findings += MachineCheckup.codecs(PluginRegistry.standard())
        findings.append(await MachineCheckup.network())
        findings += await SIPCheckup.findings()
        if !servers.stun.isEmpty { findings += await NATCheckup.findings(by: servers.stun) }
        if let relay { findings.append(await NATCheckup.finding(of: relay)) }
        let failures = findings.count { $0.status == .failure }
        let warnings = findings.count { $0.status == .warning }
        common.show(
            [
                "failures": .integer(failures),
                "warnings": .integer(warnings),
                "findings": .array(findings.map(\.json)),
            ],
            text: findings.map(\.text).joined() + "\(failures) failures, \(warnings) warnings\n"
        )
        if failures > 0 { throw ExitCode.failure }
    }
}
