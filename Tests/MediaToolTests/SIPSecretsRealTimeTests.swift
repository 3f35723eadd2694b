import Foundation
import Glibc
import TestSupport
import Testing

/// What proves a password, wakes a phone or opens sound is in nothing that runs of the tool print and write, unless a trace is asked for
/// that has it.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SIPSecretsRealTimeTests {
    private static let (alice, bob, wrong) = ("wonderland-5f2e", "builder-9c1d", "queen-77aa")
    private static let token = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"

    /// What the runs are given, and the trace that has all.
    private let given: Scratch
    /// What they write.
    private let written: Scratch

    init() throws { (given, written) = (try Scratch(), try Scratch()) }

    private func run(_ arguments: [String], password: String? = nil) throws -> ToolRun {
        var environment = ["XDG_STATE_HOME": written.file("state")]
        environment["MEDIA_TOOL_SIP_PASSWORD"] = password
        return try ToolRun(["sip"] + arguments + ["--json", "--log-level", "trace"], environment: environment)
    }

    /// All bytes that somebody may read who is not meant to know secrets, and where they are.
    private func readable(_ runs: [ToolRun]) throws -> [(place: String, bytes: Data)] {
        var all = runs.enumerated().map { ("run \($0)", Data(($1.output + $1.errors).utf8)) }
        for name in try FileManager.default.subpathsOfDirectory(atPath: written.path) {
            if let bytes = FileManager.default.contents(atPath: written.file(name)) { all.append((name, bytes)) }
        }
        return all
    }

    @Test func `no output, log, trace, capture or story of accounts and their secured call has a secret`() throws {
        try #"{"alice": {"password": "\#(Self.alice)"}, "bob": {"password": "\#(Self.bob)"}}"#
            .write(toFile: given.file("users.json"), atomically: true, encoding: .utf8)
        try Self.bob.write(toFile: given.file("password"), atomically: true, encoding: .utf8)
        chmod(given.file("password"), 0o600)
        let server = try run([
            "server", "--domain", "example.test", "--users", given.file("users.json"), "--local", "127.0.0.1:0",
        ])
        let way = ["--proxy", "sip:\(try server.address());lr;transport=tcp"]
        let alice = ["--account", "sip:alice@example.test"] + way
        let push = ["--push-team", "ABCD", "--push-bundle", "org.example.phone", "--push-voip-token", Self.token]
        let answering = try run(
            ["answer", "--echo", "--calls", "1", "--srtp", "sdes", "--account", "sip:bob@example.test"]
                + ["--password-file", given.file("password"), "--sip-trace", given.file("whole"), "--unredacted"]
                + ["--story", written.file("answer.json"), "--pcap", written.file("answer.pcap")] + way + push
        )
        try #require(answering.printed(#""event":"registered""#), "\(answering.errors)")
        let refused = try run(["register", "--once"] + alice, password: Self.wrong)
        #expect(refused.wait() == 1)
        let registering = try run(
            ["register", "--once", "--sip-trace", written.file("register.pcap")]
                + ["--story", written.file("register.json")] + alice + push,
            password: Self.alice
        )
        #expect(registering.wait() == 0, "\(registering.errors)")
        let calling = try run(
            ["call", "sip:bob@example.test", "--srtp", "sdes", "--seconds", "0.5"]
                + ["--output", written.file("heard.wav"), "--pcap", written.file("call.pcap"), "--events"]
                + ["--sip-trace", written.file("call.txt"), "--story", written.file("call.json")] + alice,
            password: Self.alice
        )
        #expect(calling.wait() == 0, "\(calling.errors)")
        #expect(answering.wait() == 0, "\(answering.errors)")
        server.interrupt()
        #expect(server.wait() == 0)

        // What there is to be found: Bob's proofs, and the keys of both.
        let whole = try String(contentsOfFile: given.file("whole"), encoding: .utf8)
        let proofs = whole.matches(of: /response="([0-9a-f]{32,})"/).map { String($0.1) }
        let keys = Set(whole.matches(of: /inline:([A-Za-z0-9+\/]{20,}=*)/).map { String($0.1) })
        #expect(!proofs.isEmpty && keys.count >= 2 && whole.contains(Self.token), "\(whole)")
        let words = [Self.alice, Self.bob, Self.wrong, Self.token] + proofs + keys
        let secrets = words.map { Data($0.utf8) } + keys.compactMap { Data(base64Encoded: $0)?.prefix(16) }
        for (place, bytes) in try readable([server, answering, refused, registering, calling]) {
            for secret in secrets {
                #expect(bytes.range(of: secret) == nil, "\(String(decoding: secret, as: UTF8.self)) is in \(place)")
            }
            // Alice's proofs, which nobody else has written down.
            for proof in bytes.ranges(of: Data(#"response=""#.utf8)) {
                #expect(bytes[proof.upperBound] == UInt8(ascii: "x"), "a proof is in \(place)")
            }
        }
        // They tell all else.
        let trace = try String(contentsOfFile: written.file("call.txt"), encoding: .utf8)
        for word in ["INVITE sip:bob@example.test", "inline:xxxx", #"response="xxxx"#] {
            #expect(trace.contains(word), "\(word)")
        }
        let capture = Data(try written.bytes("register.pcap"))
        for word in [#"response="xxxx"#, "pn-prid=xxxx"] {
            #expect(capture.range(of: Data(word.utf8)) != nil, "\(word)")
        }
    }
}
