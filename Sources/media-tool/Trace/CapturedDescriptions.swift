import MediaEngine
import SDP

/// What session descriptions in a capture say of the streams in it: payload types, and whether they are encrypted.
///
/// A description tells of the address that its writer receives at. A stream is looked up by where it goes to, then by where
/// it comes from, then by the port alone, for hosts are often rewritten on the way. Of several descriptions of one
/// address the last one holds.
/// Thread: control; it allocates, but not without bound: see `maximumEndpointCount`.
struct CapturedDescriptions: Sendable {
    /// What a payload type stands for, and in which medium.
    struct Format: Sendable, Hashable {
        let format: SDP.PayloadFormat
        /// "audio", "video" or another.
        let kind: String
    }

    /// Whether what comes to an address is encrypted.
    enum Security: Sendable, Hashable {
        /// Nothing is said of keys.
        case plain
        /// Keys are offered beside plain RTP.
        case optional(String)
        /// Nothing comes in the clear. The text names the protocol.
        case secured(String)
    }

    private struct Endpoint: Sendable {
        var formats: [UInt8: Format] = [:]
        var security: Security?
    }

    /// Addresses beyond these are left out.
    static let maximumEndpointCount = 4096

    private var endpoints: [SocketAddress: Endpoint] = [:]
    private var addresses: [UInt16: SocketAddress] = [:]
    /// What any description says; of several, the last, and audio before all others.
    private var common: [UInt8: Format] = [:]

    /// Takes in one description.
    mutating func add(_ description: SDP.SessionDescription) {
        var fresh: [SocketAddress: Endpoint] = [:]
        for medium in description.media where medium.port > 0 {
            let address =
                medium.host.flatMap { SocketAddress(host: $0, port: medium.port) }
                ?? SocketAddress(ipv4: 0, port: medium.port)
            var endpoint = fresh[address] ?? Endpoint()
            for format in medium.formats {
                let described = Format(format: format, kind: medium.kind)
                endpoint.formats[format.payloadType] = described
                guard medium.kind == "audio" || common[format.payloadType]?.kind != "audio" else { continue }
                common[format.payloadType] = described
            }
            let attributes = description.attributes + medium.attributes
            endpoint.security = Self.merged(endpoint.security, Self.security(medium.transport, attributes))
            fresh[address] = endpoint
        }
        for (address, endpoint) in fresh
        where endpoints[address] != nil || endpoints.count < Self.maximumEndpointCount {
            endpoints[address] = endpoint
            addresses[address.port] = address
        }
    }

    /// What the payload types of a stream from `source` to `destination` stand for.
    func formats(from source: SocketAddress, to destination: SocketAddress) -> [UInt8: Format] {
        common.merging(endpoint(source)?.formats ?? [:]) { $1 }
            .merging(endpoint(destination)?.formats ?? [:]) { $1 }
    }

    /// What says that a stream from `source` to `destination` is encrypted; nil where nothing does.
    ///
    /// Of one who offers both, the other side's answer decides. What is said of the addresses themselves comes before what is
    /// said of their ports, which another call may use, too.
    func encryption(
        from source: SocketAddress,
        to destination: SocketAddress
    ) -> (name: String, isByPort: Bool)? {
        let (there, here) = (endpoints[destination]?.security, endpoints[source]?.security)
        if there == .plain || here == .plain { return nil }
        if let name = Self.encryption(there, here) { return (name, false) }
        return Self.encryption(there ?? endpoint(destination)?.security, here ?? endpoint(source)?.security)
            .map { ($0, true) }
    }

    private static func encryption(_ there: Security?, _ here: Security?) -> String? {
        switch (there, here) {
        case (.plain, _), (_, .plain): nil
        case (.secured(let name), _), (_, .secured(let name)): name
        case (.optional(let name), .optional): name
        default: nil
        }
    }

    private func endpoint(_ address: SocketAddress) -> Endpoint? {
        endpoints[address] ?? addresses[address.port].flatMap { endpoints[$0] }
    }

    private static func security(_ transport: MediaProtocol, _ attributes: [SDPAttribute]) -> Security {
        let keys = ["crypto", "fingerprint", "zrtp-hash"].first { name in
            attributes.contains { $0.name.lowercased() == name }
        }
        let text = transport.name + (keys.map { " with a=\($0)" } ?? "")
        if transport.isSecured { return .secured(text) }
        return keys == nil ? .plain : .optional(text)
    }

    /// What two media at one address say together: the other side takes one of them.
    private static func merged(_ one: Security?, _ other: Security) -> Security {
        guard let one else { return other }
        switch (one, other) {
        case (.plain, .plain): return .plain
        case (.secured, .secured), (.optional, .optional): return other
        case (.secured(let name), _), (_, .secured(let name)), (.optional(let name), _), (_, .optional(let name)):
            return .optional(name)
        }
    }
}
