import CallBasics
import Testing

@testable import SIP

@Suite struct DigestServerTests {
    private static let user = Credentials(userName: "bob", password: "zanzibar")
    private static let key = Array("a key of some length".utf8)
    private var generator = SeededGenerator(seed: 3)
    private var server = Self.server { _ in }
    private var now = MediaTime.zero + .seconds(5)

    private static func server(_ change: (inout DigestServer.Configuration) -> Void) -> DigestServer {
        var configuration = DigestServer.Configuration(realm: "biloxi.com")
        change(&configuration)
        return DigestServer(configuration, key: key)
    }

    /// The request with the client's answer to a new challenge.
    private mutating func answered(
        by credentials: Credentials = user,
        _ method: SIPMethod = .register,
        body: String = ""
    ) throws -> (SIPMessage, DigestClient) {
        var client = DigestClient(credentials: [credentials])
        var attempt = DigestAttempt()
        var request = SIPMessage(method, to: try SIPURI("sip:biloxi.com"))
        request.setBody(Array(body.utf8))
        let kind = server.configuration.kind
        var response = try SIPMessage(status: kind.statusCode, reason: "x")
        for value in server.challenges(at: now) { try response.append(kind.challengeHeader, value) }
        let answer = try client.answer(response, to: &request, &attempt, using: &generator)
        #expect(answer == .retry)
        return (request, client)
    }

    private mutating func expect(
        _ verdict: DigestServer.Verdict,
        for request: SIPMessage,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let result = server.verify(request, at: now) { $0 == .name(Bytes("bob")) ? Self.user : nil }
        #expect(result == verdict, sourceLocation: sourceLocation)
    }

    private static func editing(
        _ request: SIPMessage,
        _ name: String,
        _ change: (String) -> String?
    ) throws -> SIPMessage {
        var (request, value) = (request, try #require(try request.authentication(.authorization).first))
        let old = value.parameters
        value.parameters = old.compactMap { parameter in
            guard parameter.name.text == name else { return parameter }
            return change(parameter.value.text).map {
                AuthenticationValue.Parameter(name: parameter.name, value: Bytes($0))
            }
        }
        try request.set(.authorization, to: value)
        return request
    }

    @Test mutating func `challenges name realm, algorithms in their order, and a new nonce`() throws {
        let values = server.challenges(isStale: true, at: now)
        #expect(values.map { $0["algorithm"]?.text } == ["SHA-256", "MD5"])
        #expect(values.allSatisfy { $0["realm"]?.text == "biloxi.com" && $0["qop"]?.text == "auth" })
        #expect(values.allSatisfy { $0["stale"]?.text == "true" })
        #expect(values[0]["nonce"] == values[1]["nonce"])
        let next = server.challenges(at: now)
        #expect(next[0]["nonce"] != values[0]["nonce"])
        #expect(next[0]["stale"] == nil)
    }

    @Test(arguments: [DigestHash.md5, .sha256, .sha512_256], [false, true])
    mutating func `a right answer is accepted`(hash: DigestHash, isSession: Bool) throws {
        server = Self.server {
            $0.algorithms = [DigestAlgorithm(hash, isSession: isSession)]
            $0.qops = [.authInt]
            $0.kind = .proxy
        }
        let (request, _) = try answered(body: "v=0")
        expect(.accepted(Bytes("bob")), for: request)
        var changed = request
        changed.setBody(Array("v=1".utf8))
        expect(.wrong, for: changed)
    }

    @Test mutating func `a server knows its users by hashes of their passwords`() throws {
        let digits = "3d9f6d6ad6d2b3ee0bb3b64d7ef1d0ab"
        let known = try #require(Credentials.HA1(digits, realm: "biloxi.com", hash: .md5))
        let stored = Credentials(userName: "bob", hashes: [known])
        server = Self.server { $0.algorithms = [DigestAlgorithm(.md5)] }
        let (request, _) = try answered(by: stored)
        #expect(server.verify(request, at: now) { _ in stored } == .accepted(Bytes("bob")))
        expect(.wrong, for: request)
    }

    @Test mutating func `no credentials, those for another realm or algorithm, and other schemes are missing`() throws {
        var request = SIPMessage(.register, to: try SIPURI("sip:biloxi.com"))
        expect(.missing, for: request)
        try request.append(.authorization, Bytes("Bearer realm=x"))
        try request.append(.authorization, Bytes("Digest realm=\"atlanta.com\", nonce=\"1\""))
        try request.append(.authorization, Bytes("Digest realm=\"biloxi.com\", algorithm=SHA-512-256"))
        expect(.missing, for: request)
        try request.append(.proxyAuthorization, Bytes("Digest realm=\"biloxi.com\""))
        expect(.missing, for: request)
    }

    @Test mutating func `a wrong password and a stranger are wrong`() throws {
        let (wrong, _) = try answered(by: Credentials(userName: "bob", password: "x"))
        expect(.wrong, for: wrong)
        let (stranger, _) = try answered(by: Credentials(userName: "eve", password: "zanzibar"))
        expect(.wrong, for: stranger)
        #expect(server.nonceCount == 0)
    }

    @Test(arguments: ["username", "nonce", "uri", "response", "nc", "cnonce"])
    mutating func `credentials that lack something are a bad request`(name: String) throws {
        let (request, _) = try answered()
        try expect(.badRequest, for: Self.editing(request, name) { _ in nil })
        expect(.accepted(Bytes("bob")), for: request)
    }

    @Test(arguments: [
        ("uri", "\"sip:other.com\""), ("qop", "auth-int"), ("qop", "x"), ("nc", "00000000"), ("nc", "1"),
        ("nc", "0000000x"), ("response", "\"00\""), ("cnonce", "\"\""), ("nonce", "1, nonce=2"),
        ("username", "\"\(String(repeating: "b", count: 1100))\""),
    ])
    mutating func `credentials that were not asked for are a bad request`(name: String, value: String) throws {
        let (request, _) = try answered()
        try expect(.badRequest, for: Self.editing(request, name) { _ in value })
        expect(.accepted(Bytes("bob")), for: request)
    }

    @Test mutating func `what cannot be read is a bad request`() throws {
        var request = SIPMessage(.register, to: try SIPURI("sip:biloxi.com"))
        try request.append(.authorization, Bytes("Digest realm=\"biloxi.com"))
        expect(.badRequest, for: request)
    }

    @Test mutating func `a nonce lives for a time, then it is stale`() throws {
        var (request, client) = try answered()
        now += .seconds(300)
        expect(.accepted(Bytes("bob")), for: request)
        try client.authorize(&request, using: &generator)
        #expect(server.nonceCount == 1)
        now += .nanoseconds(1)
        expect(.stale, for: request)
        #expect(server.nonceCount == 0)
    }

    @Test mutating func `a nonce of another key, realm or kind is stale`() throws {
        let (request, _) = try answered()
        let configuration = server.configuration
        server = DigestServer(configuration, key: Array("another key of some length".utf8))
        expect(.stale, for: request)
        let nonce = DigestNonce(time: now, number: 1)
        let text = nonce.bytes(realm: Bytes("r"), kind: .server, key: Secret("k"))
        #expect(DigestNonce(parsing: text, realm: Bytes("r"), kind: .server, key: Secret("k")) == nonce)
        #expect(DigestNonce(parsing: text, realm: Bytes("q"), kind: .server, key: Secret("k")) == nil)
        #expect(DigestNonce(parsing: text, realm: Bytes("r"), kind: .proxy, key: Secret("k")) == nil)
        for place in text.indices {
            var forged = text
            forged[place] = forged[place] == 0x30 ? 0x31 : 0x30
            #expect(DigestNonce(parsing: forged, realm: Bytes("r"), kind: .server, key: Secret("k")) == nil)
        }
    }

    @Test mutating func `a request that comes again is stale`() throws {
        var (request, client) = try answered()
        let first = request
        expect(.accepted(Bytes("bob")), for: first)
        expect(.stale, for: first)
        try client.authorize(&request, using: &generator)
        let second = request
        try client.authorize(&request, using: &generator)
        expect(.accepted(Bytes("bob")), for: request)
        expect(.accepted(Bytes("bob")), for: second)
        expect(.stale, for: second)
        #expect(server.nonceCount == 1)
    }

    @Test func `counts are known for 64, and the oldest nonces are forgotten`() {
        var window = NonceWindow(capacity: 2)
        let nonces = (0..<3).map { DigestNonce(time: .zero, number: $0) }
        let uses: [(count: UInt32, nonce: Int, isNew: Bool)] = [
            (100, 1, true), (37, 1, true), (37, 1, false), (36, 1, false), (.max, 1, true), (100, 1, false),
            (.max - 1, 1, true), (1, 2, true), (1, 0, true), (2, 0, false), (2, 2, true),
        ]
        for use in uses {
            let isNew = window.use(use.count, of: nonces[use.nonce])
            #expect(isNew == use.isNew, "\(use)")
        }
        #expect(window.count == 2)
    }

    @Test mutating func `a hidden name is found by its hash`() throws {
        server = Self.server { $0.takesUserHash = true }
        let (request, _) = try answered()
        let hash = DigestUser.hash(Self.user.userHash(realm: Bytes("biloxi.com"), hash: .sha256), .sha256)
        #expect(server.verify(request, at: now) { $0 == hash ? Self.user : nil } == .accepted(Bytes("bob")))
        var shy = server.configuration
        shy.takesUserHash = false
        server = DigestServer(shy, key: Self.key)
        expect(.badRequest, for: request)
    }

    @Test mutating func `the form of RFC 2069 is taken by wish, once for each nonce`() throws {
        let nonce = server.challenges(at: now)[0]["nonce"]
        let made = try #require(nonce)
        let md5 = DigestHash.md5
        let response = md5.hex(
            md5.hex(Bytes("bob:biloxi.com:zanzibar")),
            made,
            md5.hex(Bytes("REGISTER:sip:biloxi.com"))
        )
        var request = SIPMessage(.register, to: try SIPURI("sip:biloxi.com"))
        let text = "username=\"bob\", realm=\"biloxi.com\", nonce=\"\(made.text)\", uri=\"sip:biloxi.com\""
        try request.append(.authorization, Bytes("Digest \(text), response=\"\(response.text.uppercased())\""))
        expect(.badRequest, for: request)
        var old = server.configuration
        old.takesPlainForm = true
        server = DigestServer(old, key: Self.key)
        expect(.accepted(Bytes("bob")), for: request)
        expect(.stale, for: request)
    }

    @Test mutating func `behind proxies the URI may be another`() throws {
        var (request, _) = try answered()
        request.setRequestURI(try SIPURI("sip:bob@192.0.2.4"))
        expect(.badRequest, for: request)
        var open = server.configuration
        open.checksURI = false
        server = DigestServer(open, key: Self.key)
        expect(.accepted(Bytes("bob")), for: request)
    }

    @Test mutating func `credentials that end too soon, or whose proof is spoiled, are not accepted`() throws {
        let (request, _) = try answered()
        let text = try #require(request.first(.authorization))
        let proof = try #require(try request.authentication(.authorization).first?["response"])
        var tampered = (0..<text.count).map { text.prefix($0) }
        for place in proof.indices {
            var spoiled = Array(text)
            spoiled[place - text.startIndex] ^= 1
            tampered.append(spoiled[...])
        }
        for value in tampered {
            var message = request
            try message.set(.authorization, to: value)
            let verdict = server.verify(message, at: now) { _ in Self.user }
            if case .accepted = verdict { Issue.record("accepted: \(value.text)") }
        }
        #expect(server.nonceCount == 0)
        expect(.accepted(Bytes("bob")), for: request)
    }
}
