import CallBasics
import Testing

@testable import SIP

@Suite struct DigestClientTests {
    static let password = "Circle of Life"
    private var generator = SeededGenerator(seed: 7)
    private var attempt = DigestAttempt()
    private var client = DigestClient(credentials: [Credentials(userName: "Mufasa", password: password)])

    private static func request(_ method: SIPMethod = .register, to uri: String = "sip:example.org") throws
        -> SIPMessage
    {
        SIPMessage(method, to: try SIPURI(uri))
    }

    private static func sent(_ request: SIPMessage, _ kind: DigestKind = .server) throws -> [AuthenticationValue] {
        try request.authentication(kind.credentialsHeader)
    }

    private mutating func expect(
        _ answer: DigestClient.Answer,
        for request: inout SIPMessage,
        _ challenges: (DigestKind, String)...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let result = try self.answer(&request, challenges)
        #expect(result == answer, sourceLocation: sourceLocation)
    }

    private mutating func answer(
        _ request: inout SIPMessage,
        _ challenges: [(DigestKind, String)]
    ) throws -> DigestClient.Answer {
        var response = try SIPMessage(status: 401, reason: "x")
        for (kind, text) in challenges { try response.append(kind.challengeHeader, Bytes("Digest " + text)) }
        return try client.answer(response, to: &request, &attempt, using: &generator)
    }

    /// What an independent server would compute from the values that were sent.
    private func expected(
        _ value: AuthenticationValue,
        _ hash: DigestHash,
        _ a2: String,
        _ user: String = "Mufasa",
        _ password: String = password
    ) throws -> String {
        let key = hash.hex(Bytes("\(user):\(value["realm"]?.text ?? ""):\(password)")).text
        let parts = try [value["nonce"], value["nc"], value["cnonce"], value["qop"]].map { try #require($0).text }
        return hash.hex(Bytes(([key] + parts + [hash.hex(Bytes(a2)).text]).joined(separator: ":"))).text
    }

    @Test mutating func `of several challenges of a realm the topmost that is understood is answered`() throws {
        var request = try Self.request()
        try expect(
            .retry,
            for: &request,
            (.server, "realm=\"r\", nonce=\"0\", algorithm=SHA-1024, qop=\"auth\""),
            (.server, "realm=\"r\", nonce=\"1\", algorithm=\"sha-256\", qop=\"auth-int, auth\", opaque=\"o\\\"o\""),
            (.server, "realm=\"r\", nonce=\"2\", algorithm=MD5, qop=\"auth\"")
        )
        let value = try #require(try Self.sent(request).first)
        #expect(try Self.sent(request).count == 1)
        #expect(value["nonce"]?.text == "1")
        #expect(value.rawValue("algorithm")?.text == "SHA-256")
        #expect(value.rawValue("qop")?.text == "auth")
        #expect(value.rawValue("nc")?.text == "00000001")
        #expect(value.rawValue("opaque")?.text == "\"o\\\"o\"")
        #expect(value["uri"]?.text == "sip:example.org")
        #expect(value["cnonce"]?.count == 32)
        #expect(try value["response"]?.text == expected(value, .sha256, "REGISTER:sip:example.org"))
    }

    @Test mutating func `auth-int is answered when nothing else is offered`() throws {
        var request = try Self.request(.message)
        request.setBody(Array("v=0".utf8))
        try expect(.retry, for: &request, (.server, "realm=\"r\", nonce=\"1\", qop=\"auth-int\", algorithm=MD5"))
        let value = try #require(try Self.sent(request).first)
        let body = DigestHash.md5.hex(Bytes("v=0")).text
        #expect(try value["response"]?.text == expected(value, .md5, "MESSAGE:sip:example.org:\(body)"))
    }

    @Test mutating func `without qop and algorithm the form of RFC 2069 is sent`() throws {
        var request = try Self.request()
        try expect(.retry, for: &request, (.server, "realm=r, nonce=\"1\""))
        let value = try #require(try Self.sent(request).first)
        #expect(value.parameters.map(\.name.text) == ["username", "realm", "nonce", "uri", "response"])
        #expect(value.rawValue("realm")?.text == "\"r\"")
    }

    @Test mutating func `a hidden name is sent as its hash`() throws {
        var request = try Self.request()
        let challenge = "realm=\"r\", nonce=\"1\", algorithm=SHA-256, qop=\"auth\", userhash=true"
        try expect(.retry, for: &request, (.server, challenge))
        let value = try #require(try Self.sent(request).first)
        #expect(value["username"] == DigestHash.sha256.hex(Bytes("Mufasa:r")))
        #expect(value.rawValue("userhash")?.text == "true")
        #expect(try value["response"]?.text == expected(value, .sha256, "REGISTER:sip:example.org"))
    }

    @Test mutating func `all who ask are answered in one request, servers and proxies apart`() throws {
        var request = try Self.request(.invite)
        try expect(
            .retry,
            for: &request,
            (.proxy, "realm=\"a\", nonce=\"1\", qop=\"auth\""),
            (.proxy, "realm=\"b\", nonce=\"2\", qop=\"auth\""),
            (.server, "realm=\"a\", nonce=\"3\", qop=\"auth\"")
        )
        #expect(try Self.sent(request, .proxy).map { $0["nonce"]?.text } == ["1", "2"])
        #expect(try Self.sent(request, .server).map { $0["nonce"]?.text } == ["3"])
        #expect(client.realmCount == 3)
    }

    @Test mutating func `who asks later is answered along with who asked before`() throws {
        var request = try Self.request(.invite)
        try expect(.retry, for: &request, (.proxy, "realm=\"a\", nonce=\"1\", qop=\"auth\""))
        try expect(.retry, for: &request, (.server, "realm=\"b\", nonce=\"2\", qop=\"auth\""))
        #expect(try Self.sent(request, .proxy).map { $0["nc"]?.text } == ["00000002"])
        #expect(try Self.sent(request, .server).map { $0["nc"]?.text } == ["00000001"])
    }

    @Test mutating func `later requests carry credentials at once, with the next count`() throws {
        var request = try Self.request()
        let challenge = "realm=\"r\", nonce=\"1\", qop=\"auth\""
        try expect(.retry, for: &request, (.server, challenge), (.proxy, challenge))
        var next = try Self.request(.message, to: "sip:bob@EXAMPLE.org")
        try client.authorize(&next, using: &generator)
        #expect(try Self.sent(next).map { $0["nc"]?.text } == ["00000002"])
        #expect(try Self.sent(next, .proxy).map { $0["nc"]?.text } == ["00000002"])
        #expect(try Self.sent(next).first?["uri"]?.text == "sip:bob@EXAMPLE.org")
        var other = try Self.request(.message, to: "sip:bob@example.net")
        try client.authorize(&other, using: &generator)
        #expect(try Self.sent(other).isEmpty)
        #expect(try Self.sent(other, .proxy).map { $0["nc"]?.text } == ["00000003"])
    }

    @Test mutating func `an ACK has the credentials of its INVITE, a CANCEL none`() throws {
        var invite = try Self.request(.invite)
        try expect(.retry, for: &invite, (.proxy, "realm=\"r\", nonce=\"1\", qop=\"auth\""))
        for method in [SIPMethod.ack, .cancel] {
            var request = try Self.request(method)
            try client.authorize(&request, using: &generator)
            #expect(try Self.sent(request, .proxy).isEmpty)
        }
        var ack = try Self.request(.ack)
        try DigestClient.copyCredentials(of: invite, to: &ack)
        #expect(ack.values(of: .proxyAuthorization) == invite.values(of: .proxyAuthorization))
        #expect(ack.count(of: .proxyAuthorization) == 1)
    }

    @Test(arguments: ["nonce=\"1\"", "nonce=\"2\"", "nonce=\"2\", stale=false"])
    mutating func `credentials that are refused again have a wrong password`(again: String) throws {
        var request = try Self.request()
        try expect(.retry, for: &request, (.server, "realm=\"r\", nonce=\"1\", qop=\"auth\""))
        let refused = request.bytes
        try expect(
            .refused(.wrongPassword(realm: "r")),
            for: &request,
            (.server, "realm=\"r\", \(again), qop=\"auth\"")
        )
        #expect(request.bytes == refused)
        var next = try Self.request()
        try client.authorize(&next, using: &generator)
        #expect(try Self.sent(next).isEmpty)
    }

    @Test mutating func `a stale nonce is replaced, at most three times for a request`() throws {
        var request = try Self.request()
        for round in 1...3 {
            let challenge = "realm=\"r\", nonce=\"\(round)\", qop=\"auth\", stale=TRUE"
            try expect(.retry, for: &request, (.server, challenge))
            #expect(try Self.sent(request).map { $0["nonce"]?.text } == ["\(round)"])
            #expect(try Self.sent(request).map { $0["nc"]?.text } == ["00000001"])
        }
        try expect(
            .refused(.tooManyRounds),
            for: &request,
            (.server, "realm=\"r\", nonce=\"4\", qop=\"auth\", stale=true")
        )
    }

    @Test mutating func `a nonce that is called stale and comes again is not tried again`() throws {
        var request = try Self.request()
        try expect(.retry, for: &request, (.server, "realm=\"r\", nonce=\"1\", qop=\"auth\""))
        try expect(
            .refused(.tooManyRounds),
            for: &request,
            (.server, "realm=\"r\", nonce=\"1\", qop=\"auth\", stale=true")
        )
    }

    @Test mutating func `a server that forgets the word stale gets one answer to its new nonce`() throws {
        var request = try Self.request()
        try expect(.retry, for: &request, (.server, "realm=\"r\", nonce=\"1\", qop=\"auth\""))
        var next = try Self.request()
        try client.authorize(&next, using: &generator)
        attempt = DigestAttempt()
        try expect(.retry, for: &next, (.server, "realm=\"r\", nonce=\"2\", qop=\"auth\""))
        try expect(
            .refused(.wrongPassword(realm: "r")),
            for: &next,
            (.server, "realm=\"r\", nonce=\"3\", qop=\"auth\"")
        )
    }

    @Test mutating func `a nonce that comes again to a request without credentials is counted on`() throws {
        var request = try Self.request()
        try expect(.retry, for: &request, (.server, "realm=\"r\", nonce=\"1\", qop=\"auth\""))
        var other = try Self.request(.options, to: "sip:example.net")
        attempt = DigestAttempt()
        try expect(.retry, for: &other, (.server, "realm=\"r\", nonce=\"1\", qop=\"auth\""))
        #expect(try Self.sent(other).map { $0["nc"]?.text } == ["00000002"])
    }

    @Test mutating func `the next nonce of a response is taken, and a session keeps its key`() throws {
        var request = try Self.request()
        let challenge = "realm=\"r\", nonce=\"1\", qop=\"auth\", algorithm=MD5-sess"
        try expect(.retry, for: &request, (.server, challenge))
        let first = try #require(try Self.sent(request).first)
        var ok = try SIPMessage(status: 200, reason: "OK")
        try ok.append(.authenticationInfo, Bytes("qop=auth, nextnonce=\"2\""))
        client.handleSuccess(ok, to: request)
        var next = try Self.request()
        try client.authorize(&next, using: &generator)
        let value = try #require(try Self.sent(next).first)
        #expect(value["nonce"]?.text == "2")
        #expect(value["nc"]?.text == "00000001")
        let cnonce = try #require(first["cnonce"])
        #expect(value["cnonce"] == cnonce)
        let md5 = DigestHash.md5
        let key = md5.hex(md5.hex(Bytes("Mufasa:r:\(Self.password)")), Bytes("1"), cnonce)
        let request2 = md5.hex(Bytes("REGISTER:sip:example.org"))
        let response = md5.hex(key, Bytes("2"), Bytes("00000001"), cnonce, Bytes("auth"), request2)
        #expect(value["response"] == response)
    }

    @Test mutating func `MD5 can be refused`() throws {
        client.refusesMD5 = true
        var request = try Self.request()
        try expect(
            .refused(.notUnderstood),
            for: &request,
            (.server, "realm=\"r\", nonce=\"1\", qop=\"auth\""),
            (.server, "realm=\"r\", nonce=\"1\", qop=\"auth\", algorithm=MD5-sess")
        )
        #expect(try Self.sent(request).isEmpty)
    }

    @Test(arguments: [
        "realm=\"r\"", "nonce=\"1\"", "realm=\"r\", nonce=\"1\", qop=\"token\"",
        "realm=\"r\", nonce=\"1\", algorithm=MD5-sess", "realm=\"r\", nonce=\"1", "x",
        "realm=\"r\", nonce=\"\(String(repeating: "1", count: 1024))\"",
    ])
    mutating func `what is no challenge that can be answered is passed over`(challenge: String) throws {
        var request = try Self.request()
        try expect(.refused(.notUnderstood), for: &request, (.server, challenge))
        try expect(.retry, for: &request, (.server, challenge), (.server, "realm=\"r\", nonce=\"2\""))
    }

    @Test mutating func `a hash in place of the password proves the user in its realm only`() throws {
        let digits = DigestHash.sha256.hex(Bytes("Mufasa:r:\(Self.password)")).text.uppercased()
        let hash = try #require(Credentials.HA1(digits, realm: "r", hash: .sha256))
        #expect(Credentials.HA1(digits, realm: "r", hash: .md5) == nil)
        client.credentials = [Credentials(userName: "Mufasa", hashes: [hash])]
        var request = try Self.request()
        try expect(
            .refused(.noCredentials(realm: "q")),
            for: &request,
            (.server, "realm=\"q\", nonce=\"1\", algorithm=SHA-256, qop=\"auth\"")
        )
        // MD5 comes first, but only a hash for SHA-256 is known.
        try expect(
            .retry,
            for: &request,
            (.server, "realm=\"r\", nonce=\"1\", algorithm=MD5, qop=\"auth\""),
            (.server, "realm=\"r\", nonce=\"2\", algorithm=SHA-256, qop=\"auth\"")
        )
        let value = try #require(try Self.sent(request).first)
        #expect(try value["response"]?.text == expected(value, .sha256, "REGISTER:sip:example.org"))
    }

    @Test mutating func `a change of credentials forgets what was known`() throws {
        var request = try Self.request()
        try expect(.retry, for: &request, (.server, "realm=\"r\", nonce=\"1\", qop=\"auth\""))
        client.credentials = [Credentials(userName: "Mufasa", password: "other", realm: "q")]
        #expect(client.realmCount == 0)
        attempt = DigestAttempt()
        request = try Self.request()
        try expect(
            .refused(.noCredentials(realm: "r")),
            for: &request,
            (.server, "realm=\"r\", nonce=\"2\", qop=\"auth\"")
        )
    }

    @Test mutating func `the realms that were asked last are remembered`() throws {
        for realm in 0..<40 {
            var request = try Self.request()
            attempt = DigestAttempt()
            try expect(.retry, for: &request, (.proxy, "realm=\"\(realm)\", nonce=\"1\", qop=\"auth\""))
        }
        #expect(client.realmCount == 16)
        var next = try Self.request()
        try client.authorize(&next, using: &generator)
        #expect(try Self.sent(next, .proxy).map { $0["realm"]?.text } == (24..<40).map { "\($0)" })
    }

    @Test mutating func `a name that would end the line is refused, and the request stays as it is`() throws {
        client.credentials = [Credentials(userName: "a\r\nVia: x", password: "b")]
        var request = try Self.request()
        let before = request.bytes
        var code: SIPFault?
        do {
            try expect(.retry, for: &request, (.server, "realm=\"r\", nonce=\"1\""))
        } catch let error as SIPError { code = error.code }
        #expect(code == .invalidCharacter)
        #expect(request.bytes == before)
    }

    @Test mutating func `each realm is answered by its own credentials, by the next process, too`() throws {
        let known = ["q", "r"].map { (realm: String) in
            Credentials(userName: "\(realm)-user", password: "\(realm)-word", realm: realm)
        }
        func check(_ request: SIPMessage, nonces: [String]) throws {
            for (kind, realm, nonce) in [(DigestKind.server, "r", nonces[0]), (.proxy, "q", nonces[1])] {
                let value = try #require(try Self.sent(request, kind).first)
                #expect(value["username"]?.text == "\(realm)-user" && value["nonce"]?.text == nonce)
                let a2 = "REGISTER:sip:example.org"
                let right = try expected(value, .sha256, a2, "\(realm)-user", "\(realm)-word")
                #expect(value["response"]?.text == right)
            }
        }
        client.credentials = known
        var request = try Self.request()
        func challenge(_ realm: String, _ nonce: String) -> String {
            "realm=\"\(realm)\", nonce=\"\(nonce)\", qop=\"auth\", algorithm=SHA-256"
        }
        try expect(.retry, for: &request, (.server, challenge("r", "1")), (.proxy, challenge("q", "2")))
        try check(request, nonces: ["1", "2"])
        var ok = try SIPMessage(status: 200, reason: "OK")
        try ok.append(.authenticationInfo, Bytes("nextnonce=\"3\""))
        client.handleSuccess(ok, to: request)
        let memories = client.memories
        client = DigestClient(credentials: known.reversed())
        client.recall(memories)
        var next = try Self.request()
        try client.authorize(&next, using: &generator)
        try check(next, nonces: ["3", "2"])
    }

    @Test mutating func `a challenge may be cut or spoiled anywhere`() throws {
        let whole = "realm=\"r\", nonce=\"1\", algorithm=SHA-256-sess, qop=\"auth-int,x\", opaque=\"\\\"\", stale=true"
        let bytes = Array(whole.utf8)
        var texts = (0...bytes.count).map { Array(bytes.prefix($0)) }
        for place in bytes.indices {
            for byte in [UInt8.quote, .backslash, .comma, .equals, 0xFF] {
                var spoiled = bytes
                spoiled[place] = byte
                texts.append(spoiled)
            }
        }
        var retryCount = 0
        for text in texts {
            var (request, response) = (try Self.request(), try SIPMessage(status: 401, reason: "x"))
            try response.append(.wwwAuthenticate, Bytes("Digest ") + text)
            attempt = DigestAttempt()
            let result = try client.answer(response, to: &request, &attempt, using: &generator)
            #expect((result == .retry) == (request.count(of: .authorization) == 1))
            retryCount += result == .retry ? 1 : 0
            try client.authorize(&request, using: &generator)
        }
        #expect(retryCount > 0 && retryCount < texts.count)
        #expect(client.realmCount <= 16)
    }
}
