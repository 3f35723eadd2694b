import CallBasics
import Testing

@testable import SIPTransport

/// Whom a certificate is for, by the rules of RFC 5922.
@Suite struct CertificateNamesTests {
    @Test(
        arguments: [
            (["sip:example.test"], [], "example.test", true), (["sip:example.test"], [], "EXAMPLE.test.", true),
            (["SIP:Example.Test:5061;transport=tls"], [], "example.test", true),
            // With a SIP domain, names of hosts are no proof.
            (["sip:example.test"], ["other.test"], "other.test", false),
            // One person's, and other schemes, are no domain's.
            (["sip:alice@example.test"], [], "example.test", false),
            (["https://example.test"], [], "example.test", false),
            (["https://example.test"], ["example.test"], "example.test", true),
            ([], ["example.test"], "example.test", true), ([], ["Example.TEST."], "example.test", true),
            ([], ["example.test"], "a.example.test", false), ([], ["a.example.test"], "example.test", false),
            ([], ["*.example.test"], "a.example.test", false), ([], [], "example.test", false),
            ([], ["example.test"], "", false), ([], [""], "example.test", false),
        ] as [([String], [String], String, Bool)]
    )
    func `a name is proved by a SIP domain, else by the name of a host`(
        uris: [String],
        hosts: [String],
        name: String,
        isProved: Bool
    ) {
        let names = CertificateNames(uris: uris, hosts: hosts)
        #expect(names.include(name, acceptingWildcards: false) == isProved)
    }

    @Test(arguments: [
        ("*.example.test", "a.example.test", true), ("*.example.test", "A.EXAMPLE.test", true),
        ("*.example.test", "a.b.example.test", false), ("*.example.test", "example.test", false),
        ("*.test", "example.test", false), ("*", "example", false), ("a*.example.test", "ab.example.test", false),
        ("*.example.test", ".example.test", false), ("*.example.test", "*.example.test", true),
    ])
    func `where they are asked for, a wildcard stands for one label`(host: String, name: String, isProved: Bool) {
        #expect(CertificateNames(hosts: [host]).include(name, acceptingWildcards: true) == isProved)
    }

    @Test func `an address is proved by the same address alone`() throws {
        let address = try #require(SocketAddress(host: "192.0.2.1", port: 0))
        let other = try #require(SocketAddress(host: "2001:db8::1", port: 0))
        let names = CertificateNames(uris: ["sip:example.test"], hosts: ["192.0.2.2"], addresses: [address, other])
        #expect(names.include("192.0.2.1", acceptingWildcards: false))
        #expect(names.include("2001:DB8:0::1", acceptingWildcards: false))
        #expect(!names.include("192.0.2.2", acceptingWildcards: true))
        #expect(names.text == "example.test, 192.0.2.2, 192.0.2.1, 2001:db8::1")
    }

    @Test func `what a certificate says is told without control characters, and not at any length`() {
        let names = CertificateNames(hosts: ["a\u{1B}[31m\r\nb", String(repeating: "x", count: 500)])
        #expect(names.text == "a?[31m??b, " + String(repeating: "x", count: 64))
        #expect(CertificateNames().text == "nobody")
    }
}
