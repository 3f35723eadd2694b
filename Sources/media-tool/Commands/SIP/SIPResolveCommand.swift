import ArgumentParser
import CallBasics
import MediaEngine
import SIP
import SIPTransport

/// Finds the targets of a URI, as a request to it would.
struct SIPResolveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resolve",
        abstract: "Shows where requests to a SIP URI go, in order (RFC 3263); it sends nothing but DNS.",
        discussion: """
            A numeric host is its own target. Else NAPTR records, then SRV records, then addresses lead to the targets; a \
            port or a transport in the URI leaves out what comes before. It fails when there is no target.

            With --hosts, names are looked up in a file alone, with a record on a line:

              _sip._tcp.example.org  SRV   10 60 5060 a.example.org
              a.example.org          A     192.0.2.7

            EXAMPLES
              media-tool sip resolve sip:example.org
              media-tool sip resolve 'sip:example.org;transport=tcp' --dns 192.0.2.53:53 --json
              media-tool sip resolve sips:example.org --hosts zone.txt
            """
    )

    @Argument(help: "The URI.")
    var uri: String

    @Option(help: ArgumentHelp("The name server to ask. Default: those of the machine.", valueName: "host:port"))
    var dns: String?

    @Option(help: ArgumentHelp("A file with the records. \(InputPath.help)", valueName: "file"), completion: .file())
    var hosts: String?

    @Option(help: ArgumentHelp("What the order of equal servers is drawn by.", valueName: "n"))
    var seed: UInt64?

    @OptionGroup var common: CommonOptions

    /// A file of records has no more bytes.
    private static let longestZone = 1 << 22

    func validate() throws {
        guard dns == nil || hosts == nil else {
            throw ValidationError("'--hosts' takes the place of name servers. Leave out '--dns', or it.")
        }
        _ = try server()
    }

    func run() async throws {
        common.startLogging()
        let names = try names()
        let parsed: SIPURI
        do { parsed = try SIPURI(uri) } catch { throw ToolFailure(error.message) }
        var random = SystemRandomNumberGenerator()
        var lookup = NameLookup(seed: seed ?? random.next())
        let start = MonotonicClock.current
        let resolution = try await lookup.resolve(parsed, by: names)
        let milliseconds = (MonotonicClock.current - start).milliseconds
        common.show(lookup.json(uri, resolution, milliseconds), text: lookup.text(resolution))
    }

    private func server() throws -> SocketAddress? {
        guard let dns else { return nil }
        guard let colon = dns.lastIndex(of: ":"), let port = UInt16(dns[dns.index(after: colon)...]), port > 0,
            let address = SocketAddress(host: String(dns[..<colon].filter { $0 != "[" && $0 != "]" }), port: port)
        else {
            throw ValidationError(
                "The value '\(dns)' of '--dns' is no server. Give ADDRESS:PORT, such as 192.0.2.53:53."
            )
        }
        return address
    }

    private func names() throws -> NameLookup.Names {
        if let hosts {
            let bytes = try TextFile.read(InputPath.path(of: hosts), limit: Self.longestZone)
            do {
                return .file(try ZoneFile(parsing: String(decoding: bytes, as: UTF8.self)))
            } catch {
                throw ToolFailure("\(InputPath.name(of: hosts)): \(error.message)")
            }
        }
        return .servers(try DNSClient(servers: try server().map { [$0] } ?? []))
    }
}
