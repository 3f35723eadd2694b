import MediaEngine
import TestSupport
import Testing

@testable import AgentSockets

/// Agents that dial in, between real sockets of loopback.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct AgentReceptionRealTimeTests {
    private static func open(_ options: AgentReception.Options = .init()) async throws -> AgentReception {
        try await .open(at: "127.0.0.1", port: 0, options)
    }

    private static func port(of reception: AgentReception) throws -> UInt16 {
        try #require(reception.address.split(separator: ":").last.flatMap { UInt16($0) })
    }

    /// Dials as an agent does.
    private static func dial(
        _ address: String,
        subprotocol: String? = "media"
    ) async throws -> AgentConnection {
        try await AgentConnection.open(
            to: AgentAddress(address),
            subprotocol: subprotocol,
            authoritiesPath: TestCertificates.authority
        )
    }

    private static func refusal(_ address: String, subprotocol: String? = "media") async throws -> String {
        do {
            await (try await dial(address, subprotocol: subprotocol)).close()
            return "none"
        } catch {
            return "\(error)"
        }
    }

    private static func text(_ frame: AgentFrame?) -> String {
        if case .text(let bytes)? = frame { String(decoding: bytes, as: UTF8.self) } else { "\(frame as Any)" }
    }

    /// A line, and the agent that has dialled in for it.
    private static func line(
        _ reception: AgentReception,
        _ call: AgentCall? = nil,
        subprotocol: String? = "media"
    ) async throws -> (line: AgentLine, agent: AgentConnection, path: String) {
        let agent = Watched<(AgentConnection, String)?>(nil)
        let line = try await reception.line(call, within: .seconds(30)) { path in
            let connection = try await dial(reception.address + path, subprotocol: subprotocol)
            agent.update { $0 = (connection, path) }
        }
        let (connection, path) = try #require(agent.value)
        return (line, connection, path)
    }

    @Test(arguments: [AgentFormat.asterisk, .asteriskPlain], ["media", nil])
    func `an agent that dials where it was told is the other end of the line`(
        format: AgentFormat,
        subprotocol: String?
    ) async throws {
        var options = AgentReception.Options()
        (options.format, options.sampleRate) = (format, 16_000)
        let reception = try await Self.open(options)
        let call = AgentCall(callID: "one", parameters: ["from": "alice"])
        let (line, agent, path) = try await Self.line(reception, call, subprotocol: subprotocol)
        #expect(line.voice.format.sampleRate == 16_000)
        var frames = agent.frames.makeAsyncIterator()
        let start = Self.text(await frames.next())
        let identifier = path.dropFirst("/media/".count)
        #expect(start.contains("MEDIA_START") && start.contains("\(identifier)"), "\(start)")
        #expect(
            start.contains("slin16") && (format == .asteriskPlain || start.contains(#""from":"alice""#)),
            "\(start)"
        )
        // All lengths that are masked in their own way.
        for size in [0, 2, 124, 126, 65_536, 200_000] { agent.insist(.binary([UInt8](repeating: 7, count: size))) }
        let hangUp = format == .asterisk ? #"{"command":"HANGUP"}"# : "HANGUP"
        agent.insist(.text(Array(hangUp.utf8)))
        var events = line.events.makeAsyncIterator()
        while let event = await events.next(), event != .hangUp {}
        line.press(try #require(DTMFDigit("5")))
        #expect(Self.text(await frames.next()).contains("DTMF_END"))
        #expect(line.report.malformed == 0 && reception.refusedCount == 0)
        // Taken once.
        #expect(try await Self.refusal(reception.address + path).contains("answers 404 Not Found"))
        // The line goes on without the place.
        await reception.close()
        line.press(try #require(DTMFDigit("6")))
        #expect(Self.text(await frames.next()).contains("DTMF_END"))
        await line.end()
        #expect(await frames.next() == nil && agent.failure?.code == .ended)
    }

    @Test func `by TLS an agent knows whom it has dialled`() async throws {
        let files = TestCertificates.of("loopback")
        var options = AgentReception.Options()
        options.certificate = AgentReception.Certificate(path: files.path, keyPath: files.keyPath)
        let reception = try await Self.open(options)
        #expect(reception.address.hasPrefix("wss://127.0.0.1:"))
        let (line, agent, _) = try await Self.line(reception, AgentCall(callID: "one"))
        var frames = agent.frames.makeAsyncIterator()
        #expect(Self.text(await frames.next()).contains("MEDIA_START"))
        let clear = try await Self.refusal("ws" + reception.address.dropFirst(3) + "/")
        #expect(clear.contains("ends the connection before it has answered"), "\(clear)")
        await line.end()
        for (path, keyPath, told) in [
            (files.path, TestCertificates.of("domain").keyPath, "is not that of"),
            ("/nowhere", files.keyPath, "No such file"), (files.keyPath, files.keyPath, "has no certificate in PEM"),
            (files.path, files.path, "has no key in PEM"),
        ] {
            options.certificate = AgentReception.Certificate(path: path, keyPath: keyPath)
            let error = await #expect(throws: AgentError.self) { _ = try await Self.open(options) }
            #expect(error?.code == .invalidOptions && error?.description.contains(told) == true, "\(error as Any)")
        }
    }

    @Test func `whoever asks for something else is refused, and takes nobody's place`() async throws {
        let reception = try await Self.open()
        let port = try Self.port(of: reception)
        let agent = Watched<AgentConnection?>(nil)
        let line = try await reception.line(within: .seconds(30)) { path in
            let line = "GET \(path)?a=b HTTP/1.1\r\n"
            let plain = line + "Host: x\r\n"
            let upgrade = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
            let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            let version = "Sec-WebSocket-Version: 13\r\n"
            for (request, status) in [
                ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404 Not Found"), (plain + "\r\n", "426 Upgrade Required"),
                (plain + upgrade + key + "Sec-WebSocket-Version: 12\r\n\r\n", "426 Upgrade Required"),
                (plain + upgrade.replacing("websocket", with: "h2c") + version + "\r\n", "426 Upgrade Required"),
                (plain + upgrade + version + "\r\n", "400 Bad Request"),
                (plain + upgrade + version + "Sec-WebSocket-Key: a\r\n\r\n", "400 Bad Request"),
                (plain + "Upgrade: websocket\r\n" + key + version + "\r\n", "400 Bad Request"),
                (plain + "Host: y\r\n" + upgrade + key + version + "\r\n", "400 Bad Request"),
                (plain + "Content-Length: 10\r\n" + upgrade + key + version + "\r\n", "400 Bad Request"),
                (line + upgrade + key + version + "\r\n", "400 Bad Request"),
                (plain.replacing("GET", with: "POST") + upgrade + key + version + "\r\n", "400 Bad Request"),
                (plain.replacing("1.1", with: "1.0") + upgrade + key + version + "\r\n", "400 Bad Request"),
                ("POST / HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n", "404 Not Found"),
                ("no request\r\n\r\n", "400 Bad Request"),
                (plain + "A: \(String(repeating: "a", count: 20_000))\r\n\r\n", ""),
            ] {
                let client = try StreamClient(to: port)
                client.send(request)
                let answer = client.read()
                #expect(status.isEmpty ? answer.isEmpty : answer.contains(" \(status)\r\n"), "\(request) \(answer)")
                #expect(answer.contains("Sec-WebSocket-Version: 13\r\n") == status.hasPrefix("426"))
            }
            #expect(try await Self.refusal(reception.address + path, subprotocol: "other").contains("400 Bad Request"))
            #expect(try await Self.refusal(reception.address + "/media/").contains("404 Not Found"))
            let connection = try await Self.dial(reception.address + path)
            agent.update { $0 = connection }
        }
        #expect(await Polling.eventually { reception.refusedCount == 17 })
        await line.end()
    }

    @Test func `an agent that does not mask what it sends is sent away`() async throws {
        let reception = try await Self.open()
        let port = try Self.port(of: reception)
        let agent = Watched<StreamClient?>(nil)
        let line = try await reception.line(within: .seconds(30)) { path in
            let client = try StreamClient(to: port)
            client.send(
                "GET \(path) HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            // In the same segment as the request, or behind it.
            client.send(TestAgentServer.text("GET_STATUS"))
            agent.update { $0 = client }
        }
        let bytes = try #require(agent.value).readBytes()
        let answer = String(decoding: bytes, as: UTF8.self)
        #expect(answer.contains("HTTP/1.1 101 ") && answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "\(answer)")
        #expect(bytes.suffix(4) == [0x88, 2, 0x03, 0xEA])
        var events = line.events.makeAsyncIterator()
        guard case .ended(let error?)? = await events.next() else {
            Issue.record("not ended")
            return
        }
        #expect(error.description.contains("it sends frames that were not agreed on"))
    }

    @Test func `an agent that does not come is told, also where nobody waits any more`() async throws {
        let reception = try await Self.open()
        func missing(_ limit: Duration, _ tell: @escaping @Sendable (String) async throws -> Void) async
            -> String
        {
            do {
                await (try await reception.line(within: limit, telling: tell)).end()
                return "there"
            } catch {
                return "\(error)"
            }
        }
        let path = Watched("")
        let late = await missing(.milliseconds(50)) { told in path.update { $0 = told } }
        #expect(
            late == "No agent has come within 50 ms. Check that it was told where to dial, or wait longer."
        )
        #expect(try await Self.refusal(reception.address + path.value).contains("404 Not Found"))
        // What could not be told is thrown as it is, and one that has come nevertheless has come for nothing.
        let agent = Watched<AgentConnection?>(nil)
        let untold = await missing(.seconds(30)) { path in
            let connection = try await Self.dial(reception.address + path)
            agent.update { $0 = connection }
            throw AgentError(.unreachable, "cannot be told")
        }
        #expect(untold == "cannot be told")
        var frames = try #require(agent.value).frames.makeAsyncIterator()
        #expect(await frames.next() == nil)
        let before = path.value
        let task = Task { await missing(.seconds(30)) { told in path.update { $0 = told } } }
        try await path.wait { $0 != before }
        task.cancel()
        #expect(await task.value == "The agent was not waited for.")
        let last = path.value
        let other = Task { await missing(.seconds(30)) { told in path.update { $0 = told } } }
        try await path.wait { $0 != last }
        await reception.close()
        #expect(await other.value == "No agent can come: the place where they dial in is closed.")
        // Nobody is told to come then.
        let closed = await missing(.seconds(30)) { _ in Issue.record("told") }
        #expect(closed == "No agent can come: the place where they dial in is closed.")
        #expect(try await Self.refusal(reception.address + path.value).contains("Connection refused"))
    }

    @Test func `too many that say nothing keep no agent out`() async throws {
        let reception = try await Self.open()
        let port = try Self.port(of: reception)
        let silent = try (0..<129).map { _ in try StreamClient(to: port) }
        let (line, agent, _) = try await Self.line(reception)
        await reception.close()
        // Nobody is left behind.
        #expect(silent[128].read().isEmpty)
        #expect(await Polling.eventually { reception.refusedCount == 129 })
        #expect(agent.failure == nil)
        await line.end()
    }

    @Test func `an agent that ends its connection need not wait for the end`() async throws {
        let reception = try await Self.open()
        let (line, agent, _) = try await Self.line(reception, AgentCall(callID: "one"))
        // It closes once the other side has: after a second where that does not.
        let time = await ContinuousClock().measure { await agent.close() }
        #expect(time < .milliseconds(800), "\(time)")
        var events = line.events.makeAsyncIterator()
        #expect(await events.next() == .ended(AgentError(.ended, "The agent has ended the connection (code 1000).")))
        await line.end()
    }

    @Test func `only formats whose agents dial in are spoken, at an address that is ours`() async throws {
        var options = AgentReception.Options()
        options.format = .twilio
        func failure(_ host: String = "127.0.0.1", _ port: UInt16 = 0) async -> String {
            do {
                await (try await AgentReception.open(at: host, port: port, options)).close()
                return "none"
            } catch {
                return "\(error)"
            }
        }
        #expect(await failure() == "Agents of the format twilio are dialled. Take asterisk.")
        options.format = .asterisk
        options.sampleRate = 44_100
        #expect(await failure() == "The format asterisk has no sound of 44100 Hz. Take 8000.")
        options.sampleRate = nil
        let taken = try await Self.open()
        let address = try "127.0.0.1:\(Self.port(of: taken))"
        #expect(
            await failure("127.0.0.1", try Self.port(of: taken))
                == "Agents cannot dial \(address): Address already in use. Give an own address, and a port that is free."
        )
        #expect(await failure("192.0.2.1").contains("Cannot assign requested address"))
    }
}
