internal import CallBasics
package import NIOSSL

/// Whom a certificate is for.
///
/// A common name (CN) is not looked at: certificates have had names of their own for it since RFC 2818.
/// Source: RFC 5922, section 7
package struct CertificateNames: Hashable, Sendable {
    /// The domains of its SIP URIs.
    private(set) var domains: [String] = []
    private(set) var hosts: [String] = []
    private(set) var addresses: [SocketAddress] = []

    init(uris: [String] = [], hosts: [String] = [], addresses: [SocketAddress] = []) {
        domains = uris.compactMap(Self.domain)
        (self.hosts, self.addresses) = (hosts, addresses)
    }

    package init(_ certificate: NIOSSLCertificate) {
        var (uris, hosts): ([String], [String]) = ([], [])
        var addresses: [SocketAddress] = []
        for name in certificate._subjectAlternativeNames() {
            let bytes = Array(name.contents)
            switch name.nameType {
            case .dnsName: hosts.append(String(decoding: bytes, as: UTF8.self))
            case .uri: uris.append(String(decoding: bytes, as: UTF8.self))
            case .ipAddress: if let address = Self.address(bytes) { addresses.append(address) }
            default: break
            }
        }
        self.init(uris: uris, hosts: hosts, addresses: addresses)
    }

    /// All of them, as people are told.
    package var text: String {
        let all = domains + hosts + addresses.map(\.host)
        return all.isEmpty ? "nobody" : all.prefix(8).map(Self.shown).joined(separator: ", ")
    }

    /// What the other side wrote, safe to show.
    private static func shown(_ name: String) -> String {
        String(name.unicodeScalars.prefix(64).map { (0x21...0x7E).contains($0.value) ? Character($0) : "?" })
    }

    /// Whether it is for `name`: a domain, or the address where a URI has one.
    ///
    /// A certificate that names SIP domains is for no other host.
    func include(_ name: String, acceptingWildcards: Bool) -> Bool {
        let isAddress = SocketAddress(host: name, port: 0) != nil
        guard domains.isEmpty || isAddress else {
            return domains.contains { Self.canonical($0) == Self.canonical(name) }
        }
        return includeHost(name, acceptingWildcards: acceptingWildcards)
    }

    /// Whether it is for a host, or an address, whatever domains of SIP it names.
    ///
    /// Source: RFC 6125, section 6.4
    package func includeHost(_ name: String, acceptingWildcards: Bool = true) -> Bool {
        if let address = SocketAddress(host: name, port: 0) { return addresses.contains(address) }
        return hosts.contains { host in
            if Self.canonical(host) == Self.canonical(name) { return true }
            guard acceptingWildcards, host.hasPrefix("*."), let dot = name.firstIndex(of: ".") else { return false }
            // Not of a whole top-level domain, and for one label only.
            let parent = Self.canonical(String(host.dropFirst(2)))
            return parent.contains(".") && dot > name.startIndex
                && Self.canonical(String(name[name.index(after: dot)...])) == parent
        }
    }

    /// The domain that a URI of a certificate names; nil when it is no domain's.
    private static func domain(_ uri: String) -> String? {
        let lower = uri.lowercased()
        guard lower.hasPrefix("sip:") else { return nil }
        let rest = lower.dropFirst(4)
        // With a user it is one person's, and proves no domain.
        guard !rest.isEmpty, !rest.contains("@") else { return nil }
        return String(rest.prefix { $0 != ":" && $0 != ";" && $0 != "?" })
    }

    private static func canonical(_ name: String) -> String {
        let lower = name.lowercased()
        return lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    }

    private static func address(_ bytes: [UInt8]) -> SocketAddress? {
        switch bytes.count {
        case 4: return SocketAddress(host: bytes.map { "\($0)" }.joined(separator: "."), port: 0)
        case 16:
            let words = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
            return SocketAddress(host: words.map { String($0, radix: 16) }.joined(separator: ":"), port: 0)
        default: return nil
        }
    }
}
