import ArgumentParser
import CallCore

/// Where a phone is, and how it is reached.
struct PhoneOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The own address and port. Default: the address that leads out of the machine, any port.",
            valueName: "host:port"
        )
    )
    var local: LocalAddress?

    @Option(help: "What carries SIP: udp, tcp or tls; more for more. Default: all.")
    var transport: [SIPTransportName] = []

    @OptionGroup var tls: TLSOptions

    /// The options, and whether they were given.
    var given: [(String, Bool)] { [("--local", local != nil), ("--transport", !transport.isEmpty)] + tls.given }

    func configuration() -> PhoneConfiguration {
        var configuration = PhoneConfiguration()
        (configuration.local, configuration.product) = (local?.address, "media-tool")
        if !transport.isEmpty { configuration.transports = transport.map(\.ofPhone) }
        configuration.security = tls.security()
        return configuration
    }
}

extension SIPTransportName {
    fileprivate var ofPhone: PhoneConfiguration.Transport {
        switch self {
        case .udp: .udp
        case .tcp: .tcp
        case .tls: .tls
        }
    }
}
