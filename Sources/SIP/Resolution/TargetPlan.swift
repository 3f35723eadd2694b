internal import CallBasics

/// What a URI says about its targets before any name was asked.
///
/// Source: RFC 3263, section 4
struct TargetPlan: Hashable, Sendable {
    enum Host: Hashable, Sendable {
        case address(SocketAddress)
        case name(DNSName)
    }

    /// The host of the URI, or its maddr.
    let host: Host
    let port: UInt16?
    /// What the certificate is checked against, with TLS.
    let domain: String
    /// What may be used for this URI, in our order; not empty.
    let transports: [Flow.Transport]
    /// The one that the URI names.
    let named: Flow.Transport?
    let families: [ResolutionWishes.Family]
    let usesPointers: Bool

    /// What a URI and the wishes of its user say.
    ///
    /// Throws: `unsuitableURI` or `noTransport`
    init(_ uri: SIPURI, _ wishes: ResolutionWishes) throws(ResolutionError) {
        guard uri.scheme == .sip || uri.scheme == .sips else {
            throw Self.unsuitable(uri, "Only sip and sips lead on.")
        }
        let isSecure = uri.scheme == .sips || wishes.isSecure
        named = try Self.namedTransport(of: uri, isSecure: isSecure)
        let usable = wishes.transports.filter { !isSecure || $0 == .tls }
        transports = named.map { name in usable.filter { $0 == name } } ?? usable
        guard !transports.isEmpty else {
            let needed = named.map { "\($0.name)" } ?? (isSecure ? "TLS" : "some transport")
            throw ResolutionError(
                .noTransport,
                "\"\(uri.bytes.excerpt)\" needs \(needed), which may not be used. Allow it."
            )
        }
        domain = Self.plain(uri.hostBytes).text
        let target = Self.plain(uri.parameters.value("maddr") ?? uri.hostBytes)
        port = uri.port
        if let address = SocketAddress(host: target.text, port: 0) {
            guard !address.isUnspecified else { throw Self.unsuitable(uri, "Its address is nobody's.") }
            host = .address(address)
        } else if let name = DNSName(target), !name.isRoot {
            host = .name(name)
        } else {
            throw Self.unsuitable(uri, "Its host is neither an address nor a name.")
        }
        guard port != 0 else { throw Self.unsuitable(uri, "Port 0 is nobody's.") }
        (families, usesPointers) = (wishes.families, wishes.usesPointers)
    }

    /// Where neither the URI nor records choose: UDP when it may be used; for sips it never may.
    ///
    /// `isDenied` says of which ones the names tell that they are not there.
    func fallback(without isDenied: (Flow.Transport) -> Bool) -> Flow.Transport? {
        let left = transports.filter { !isDenied($0) }
        return left.contains(.udp) ? .udp : left.first
    }

    func target(_ transport: Flow.Transport, _ address: SocketAddress, port: UInt16?) -> Target {
        Target(
            transport,
            address.with(port: port ?? transport.defaultPort),
            tlsName: transport == .tls ? domain : nil
        )
    }

    private static func namedTransport(of uri: SIPURI, isSecure: Bool) throws(ResolutionError) -> Flow.Transport? {
        guard let value = uri.parameters.value("transport") else { return nil }
        if value.isNamed("tls") || isSecure && value.isNamed("tcp") { return .tls }
        if value.isNamed("tcp") { return .tcp }
        guard value.isNamed("udp") else { throw noTransport(uri, "is not known") }
        guard !isSecure else { throw noTransport(uri, "would send in the clear") }
        return .udp
    }

    private static func noTransport(_ uri: SIPURI, _ why: String) -> ResolutionError {
        ResolutionError(.noTransport, "The transport of \"\(uri.bytes.excerpt)\" \(why). Write udp, tcp or tls.")
    }

    private static func unsuitable(_ uri: SIPURI, _ why: String) -> ResolutionError {
        ResolutionError(.unsuitableURI, "No target can be found for \"\(uri.bytes.excerpt)\". \(why)")
    }

    /// A host without the brackets of an IPv6 address.
    private static func plain(_ host: Bytes) -> Bytes {
        host.first == .openBracket && host.last == .closeBracket ? host.dropFirst().dropLast() : host
    }
}

extension Flow.Transport {
    /// The port of a URI without one.
    ///
    /// Source: RFC 3261, section 19.1.2
    var defaultPort: UInt16 { self == .tls ? 5061 : 5060 }

    /// The labels before a domain whose SRV records are those of this transport.
    var serviceLabels: String {
        switch self {
        case .udp: "_sip._udp"
        case .tcp: "_sip._tcp"
        case .tls: "_sips._tcp"
        }
    }
}
