import AgentSockets
import NIOHTTP1
import TestSupport
import Testing

extension AgentConnectionRealTimeTests {
    /// Why no connection is to be had; nil where one is.
    private func refusal(
        _ address: String,
        headers: [(name: String, value: String)] = [],
        subprotocol: String? = nil,
        authoritiesPath: String? = TestCertificates.authority,
        patience: Duration = .seconds(30)
    ) async throws -> String? {
        let address = try AgentAddress(address)
        do throws(AgentError) {
            let connection = try await AgentConnection.open(
                to: address,
                headers: headers,
                subprotocol: subprotocol,
                authoritiesPath: authoritiesPath,
                patience: patience
            )
            await connection.close()
            return nil
        } catch {
            #expect(error.code == .unreachable)
            return error.description
        }
    }

    @Test func `the request says what it is to say, and a greeting in the answer's segment is read`() async throws {
        let server = try await Server(.webSocket(greeting: Server.text("hello") + Server.text("there")))
        let connection = try await AgentConnection.open(
            to: AgentAddress("ws://localhost:\(server.port)/media?call=7"),
            headers: [("Authorization", "Bearer x"), ("X-Call", "7")],
            subprotocol: "media"
        )
        #expect(await take(2, from: connection) == [text("hello"), text("there")])
        let request = try #require(server.seen.value.request)
        #expect(request.uri == "/media?call=7" && request.method == .GET)
        for (name, value) in [
            ("Host", "localhost:\(server.port)"), ("Authorization", "Bearer x"), ("X-Call", "7"),
            ("Sec-WebSocket-Protocol", "media"), ("Sec-WebSocket-Version", "13"),
        ] {
            #expect(request.headers[name] == [value])
        }
        await connection.close()
        // The key is another each time.
        #expect(try await refusal("ws://localhost:\(server.port)") == nil)
        #expect(server.seen.value.request?.headers["Sec-WebSocket-Key"] != request.headers["Sec-WebSocket-Key"])
    }

    @Test func `an answer that is no WebSocket is told with its status`() async throws {
        let server = try await Server(.refusal(.forbidden))
        let text = try await refusal("ws://127.0.0.1:\(server.port)/secret?key=1")
        #expect(
            text == "The agent at ws://127.0.0.1:\(server.port) answers 403 Forbidden and opens no WebSocket. "
                + "Check the path, and what it wants to know of who calls."
        )
        try await server.seen.wait { $0.endedCount == 1 }
    }

    @Test(arguments: [
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
            "as a WebSocket does"
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
                + "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n", "as a WebSocket does"
        ), ("SSH-2.0-OpenSSH_9.2\r\n", "as a WebSocket does"), ("HTTP/1.1 200 OK\r\n\r\n", "answers 200 OK"),
        ("HTTP/1.1 999 \u{7}\r\n\r\n", "opens no WebSocket"), ("\0\u{1}\u{2}", "as a WebSocket does"),
        ("", "ends the connection before it has answered"),
    ])
    func `what is no answer is no connection`(answer: String, told: String) async throws {
        let server = try await Server(.stream())
        async let refused = refusal("ws://127.0.0.1:\(server.port)")
        try await server.seen.wait { !$0.bytes.isEmpty }
        if answer.isEmpty { server.disconnect() } else { server.send(Array(answer.utf8)) }
        let text = try #require(try await refused)
        #expect(text.contains(told), "\(text)")
        try await server.seen.wait { $0.endedCount == 1 }
    }

    @Test func `an agent that says nothing is waited for as long as there is patience`() async throws {
        let server = try await Server(.stream())
        let text = try await refusal("ws://127.0.0.1:\(server.port)", patience: .milliseconds(80))
        #expect(text?.hasSuffix(" does not answer within 80 ms. Check that it runs, or wait longer.") == true)
        try await server.seen.wait { $0.endedCount == 1 }
        // Nor when nobody waits any more.
        let task = Task { try await refusal("ws://127.0.0.1:\(server.port)") }
        try await server.seen.wait { $0.channels.count == 2 }
        task.cancel()
        #expect(try await task.value?.hasSuffix(" was not waited for.") == true)
        try await server.seen.wait { $0.endedCount == 2 }
    }

    @Test func `where nobody listens is told`() async throws {
        let server = try await Server()
        let port = server.port
        try await server.close()
        for address in ["ws://127.0.0.1:\(port)", "wss://localhost:\(port)", "audiosocket:127.0.0.1:\(port)"] {
            let text = try #require(try await refusal(address))
            #expect(
                text.hasSuffix(" cannot be reached: Connection refused. Start it, or check the address."),
                "\(text)"
            )
        }
        let missing = try await refusal("audiosocket:/nowhere/agent.sock")
        #expect(missing?.contains("No such file or directory") == true, "\(missing ?? "")")
    }

    @Test func `a header field that would be two is not sent`() async throws {
        let server = try await Server()
        let text = try await refusal("ws://127.0.0.1:\(server.port)", headers: [("X-Call", "7\r\nX-Other: 8")])
        #expect(text?.contains("a header field has characters that none may have") == true, "\(text ?? "")")
        #expect(server.seen.value.request == nil)
    }

    // MARK: TLS

    @Test(arguments: ["localhost", "127.0.0.1"])
    func `by TLS an agent is taken that proves its name, or its address`(host: String) async throws {
        let server = try await Server(certificate: "loopback")
        let connection = try await AgentConnection.open(
            to: AgentAddress("wss://\(host):\(server.port)/"),
            authoritiesPath: TestCertificates.authority
        )
        connection.send(text("by TLS"))
        try await server.seen.wait { $0.frames == [.text("by TLS")] }
        server.send(Server.text("answer"))
        #expect(await take(1, from: connection) == [text("answer")])
        await connection.close()
        try await server.seen.wait { $0.frames.last == .close(1000) && $0.endedCount == 1 }
        #expect(connection.failure == nil)
    }

    /// 127.1 is a name that leads to 127.0.0.1, which one of the certificates is for.
    @Test(arguments: [("domain", "localhost"), ("domain", "127.0.0.1"), ("relay", "localhost"), ("loopback", "127.1")])
    func `by TLS an agent that proves another name is asked nothing`(certificate: String, host: String) async throws {
        let server = try await Server(certificate: certificate)
        let text = try #require(try await refusal("wss://\(host):\(server.port)"))
        #expect(text.contains("shows a certificate for another name"), "\(text)")
        #expect(server.seen.value.request == nil)
    }

    @Test func `by TLS an agent that nobody proves is asked nothing`() async throws {
        let server = try await Server(certificate: "loopback")
        let text = try await refusal("wss://localhost:\(server.port)", authoritiesPath: nil)
        #expect(text?.contains("nobody who is trusted proves") == true, "\(text ?? "")")
        #expect(server.seen.value.request == nil)
        let missing = try await refusal("wss://localhost:\(server.port)", authoritiesPath: "/nowhere/ca.pem")
        #expect(missing?.contains("/nowhere/ca.pem is no file of certificates") == true, "\(missing ?? "")")
        // It takes the hello for a bad request.
        let plain = try await Server(.refusal(.ok))
        let other = try await refusal("wss://localhost:\(plain.port)")
        #expect(other?.contains("does not agree on TLS") == true, "\(other ?? "")")
    }
}
