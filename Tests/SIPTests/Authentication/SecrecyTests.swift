import CallBasics
import Testing

@testable import SIP

/// Nothing that proves a password is in a description of any value.
@Suite struct SecrecyTests {
    private static let password = "hunter2hunter2"
    private static let key = Array("the key of a server".utf8)

    private static func texts(_ value: Any) -> [String] {
        var dumped = ""
        dump(value, to: &dumped)
        // An array of bytes is dumped as a line for each.
        dumped = dumped.split(separator: "\n").map { $0.drop { $0 == " " || $0 == "-" } }.joined(separator: ", ")
        return [String(describing: value), String(reflecting: value), "\([value])", "\(["x": value])", dumped]
    }

    private static func expectSilence(_ value: Any, of secrets: [Bytes]) {
        let texts = texts(value)
        for secret in secrets {
            let forms = [secret.text, secret.map { "\($0)" }.joined(separator: ", ")]
            for form in forms where texts.contains(where: { $0.contains(form) }) {
                Issue.record("\(type(of: value)) shows a secret as \(form)")
            }
        }
    }

    @Test func `no value shows a password, a hash of it, a response or a key`() throws {
        let realm = "example.org"
        let ha1 = DigestHash.sha256.hex(Bytes("bob:\(realm):\(Self.password)"))
        let credentials = Credentials(userName: "bob", password: Self.password)
        let hash = try #require(Credentials.HA1(ha1.text, realm: realm, hash: .sha256))
        var client = DigestClient(credentials: [credentials, Credentials(userName: "bob", hashes: [hash])])
        var server = DigestServer(DigestServer.Configuration(realm: realm), key: Self.key)
        var (generator, attempt) = (SeededGenerator(seed: 1), DigestAttempt())
        var request = SIPMessage(.register, to: try SIPURI("sip:example.org"))
        var response = try SIPMessage(status: 401, reason: "x")
        for value in server.challenges(at: .zero) { try response.append(.wwwAuthenticate, value) }
        let result = try client.answer(response, to: &request, &attempt, using: &generator)
        #expect(result == .retry)
        let sent = try #require(try request.authentication(.authorization).first)
        let proof = try #require(sent["response"])
        let answer = try #require(DigestAnswer(sent, DigestAlgorithm(.sha256), to: request))
        let secrets = [Bytes(Self.password), ha1, proof, Self.key[...]]
        var input = answer.input
        input.key = Secret(ha1)
        let values: [Any] = [
            credentials, hash, Credentials(userName: "bob", hashes: [hash]), Secret(Self.password), client, server,
            attempt, sent, sent.parameters, answer, input, request,
            Credentials?.some(credentials) as Any, DigestClient.Answer.retry,
        ]
        for value in values { Self.expectSilence(value, of: secrets) }
        #expect(request.description.contains("response=(secret)"))
        #expect(request.bytes[...].text.contains(proof.text))
        let verdict = server.verify(request, at: .zero) { _ in credentials }
        #expect(verdict == .accepted(Bytes("bob")))
        Self.expectSilence(server, of: secrets)
    }

    @Test func `an error does not show the header that cannot be read`() throws {
        let error = #expect(throws: SIPError.self) {
            try AuthenticationValue(parsing: Bytes("Digest response=\"5ca1ab1e\", x"))
        }
        #expect(error?.message.contains("5ca1ab1e") == false)
    }

    @Test func `a message shows neither another scheme's proof nor that of a server`() throws {
        let message = try SIPMessage(
            datagram: Messages.request(
                Messages.options,
                method: "OPTIONS",
                "Authorization: Basic Ym9iOmh1bnRlcjI=",
                "Proxy-Authorization: Bearer token=\"5ca1ab1e\"",
                "Authentication-Info: rspauth=\"5ca1ab1e\"",
                "proxy-authentication-info: rspauth=\"5ca1ab1e\""
            )
        )
        #expect(!message.description.contains("Ym9i"))
        #expect(!message.description.contains("5ca1ab1e"))
        #expect(message.bytes[...].text.contains("5ca1ab1e"))
    }
}
