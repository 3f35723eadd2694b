import Foundation
import TestSupport
import Testing

/// Runs of the tool that talk by TLS, on 127.0.0.1.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SIPSecurityRealTimeTests {
    private static func own(_ name: String) -> [String] {
        let paths = TestCertificates.of(name)
        return ["--tls-cert", paths.path, "--tls-key", paths.keyPath]
    }

    @Test func `a call by sips is answered, and ends with its report`() throws {
        let answering = try ToolRun(
            ["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--json"] + Self.own("loopback")
        )
        let calling = try ToolRun.finished(
            "sip",
            "call",
            "sips:bob@\(try answering.address(by: "tls"))",
            "--tls-ca",
            TestCertificates.authority,
            "--seconds",
            "1",
            "--json",
            "--events"
        )
        #expect(calling.status == 0, "\(calling.errors)")
        let lines = try calling.jsonLines()
        let targets = try #require(lines.first?["targets"] as? [String])
        #expect(targets.map { $0.hasPrefix("tls 127.0.0.1:") } == [true])
        #expect(lines.last?["status"] as? String == "ok")
        #expect(answering.wait() == 0, "\(answering.errors)")
    }

    @Test func `whose certificate does not fit is told with the remedy, and nothing is sent`() throws {
        let answering = try ToolRun(
            ["sip", "answer", "--local", "127.0.0.1:0", "--json", "--transport", "tls"] + Self.own("domain")
        )
        let uri = "sips:bob@\(try answering.address(by: "tls"))"
        let wrong = try ToolRun.finished("sip", "call", uri, "--tls-ca", TestCertificates.authority, "--json")
        #expect(wrong.status == 1)
        #expect(wrong.errors.contains("is for example.test, other.test, not for 127.0.0.1 (RFC 5922). Give --tls-name"))
        #expect(try wrong.json()["status"] as? String == "unreachable")
        let unknown = try ToolRun.finished("sip", "options", uri)
        #expect(unknown.status == 1)
        #expect(unknown.errors.contains("nobody that is trusted proves its certificate. Give --tls-ca"))
        let named = try ToolRun.finished(
            "sip",
            "options",
            uri,
            "--tls-ca",
            TestCertificates.authority,
            "--tls-name",
            "example.test"
        )
        #expect(named.status == 0, "\(named.errors)")
        let insecure = try ToolRun.finished("sip", "options", uri, "--tls-insecure")
        #expect(insecure.status == 0)
        #expect(insecure.errors.contains("Warning: by --tls-insecure nobody proves who they are."))
        answering.interrupt()
        #expect(answering.wait() == 0)
        #expect(try answering.jsonLines().allSatisfy { $0["event"] as? String != "incoming" })
    }

    @Test func `an account is registered by TLS at a server, whose domain its certificate is for`() throws {
        let scratch = try Scratch()
        let server = try ToolRun(
            ["sip", "server", "--domain", "example.test", "--local", "127.0.0.1:0", "--json"] + Self.own("domain")
        )
        let port = try #require(try server.address(by: "tls").split(separator: ":").last)
        let zone = scratch.file("zone")
        try Data(
            """
            _sips._tcp.example.test SRV 10 60 \(port) host.example.test
            host.example.test A 127.0.0.1

            """.utf8
        ).write(to: URL(fileURLWithPath: zone))
        let registering = try ToolRun.finished(
            "sip",
            "register",
            "--account",
            "sips:alice@example.test",
            "--once",
            "--hosts",
            zone,
            "--tls-ca",
            TestCertificates.authority,
            "--json"
        )
        #expect(registering.status == 0, "\(registering.errors)")
        #expect(server.printed(#""event":"binding""#))
        let contact = try #require(try server.jsonLines().last?["contact"] as? String)
        #expect(contact.hasPrefix("sips:alice@127.0.0.1:"))
        server.interrupt()
        #expect(server.wait() == 0)
    }
}
