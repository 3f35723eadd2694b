import CallBasics
import MediaEngine
import MediaTransport
import TURNTransport
import TestSupport
import Testing

/// Connections to a server of TURN, between real sockets of loopback.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct TURNConnectionRealTimeTests {
    /// Sends by the port of a call, and waits for as much as is to come.
    private struct Talk: PortQuery {
        var leaving: [(bytes: [UInt8], destination: SocketAddress)]
        var wanted = 0
        var taken: [[UInt8]] = []
        var end = MonotonicClock.current + Polling.limit

        mutating func advance(to now: MediaTime) -> MediaTime? { taken.count < wanted && now < end ? end : nil }

        mutating func takeDatagrams() -> [(bytes: [UInt8], destination: SocketAddress)] {
            defer { leaving = [] }
            return leaving
        }

        mutating func take(_ datagram: [UInt8], from source: SocketAddress, at _: MediaTime) { taken.append(datagram) }
    }

    private let leg: UDPSocket

    init() throws { leg = try UDPSocket(bind: .loopback(port: 0)) }

    private func open(_ server: SocketAddress, _ security: TURNConnection.Security? = nil) async throws
        -> TURNConnection
    {
        try await .open(to: server, security, beside: leg.localAddress)
    }

    private func send(_ messages: [[UInt8]], by connection: TURNConnection) {
        for message in messages { leg.send(message.span, to: connection.address, at: .zero) }
    }

    private func wait(for count: Int) -> [[UInt8]] { leg.ask(Talk(leaving: [], wanted: count)).taken }

    private static func sound(_ count: Int) -> [UInt8] {
        [0x40, 1, 0, UInt8(count)] + [UInt8](repeating: 7, count: count)
    }

    @Test func `what the call sends and what the server sends get through, each as it is`() async throws {
        let server = try await ConnectionServer()
        let connection = try await open(server.address)
        #expect(!connection.isConnected && server.connectionCount == 0)
        send([Self.sound(1), Self.sound(4), [9, 9, 9, 9, 9], []], by: connection)
        // The first is there with the connection; others behind it.
        #expect(Polling.wait { server.bytes == Self.sound(1) + [0, 0, 0] + Self.sound(4) })
        #expect(connection.isConnected)
        let stream = Self.sound(3) + [0] + Self.sound(8)
        server.send(Array(stream[..<6]))
        server.send(Array(stream[6...]))
        #expect(wait(for: 2) == [Self.sound(3), Self.sound(8)])
        withExtendedLifetime(connection) {}
    }

    @Test func `what others send to the port goes nowhere`() async throws {
        let server = try await ConnectionServer()
        let connection = try await open(server.address)
        let other = try UDPSocket(bind: .loopback(port: 0))
        other.send(Self.sound(2).span, to: connection.address, at: .zero)
        send([Self.sound(1)], by: connection)
        #expect(Polling.wait { !server.bytes.isEmpty })
        #expect(server.bytes == Self.sound(1) + [0, 0, 0])
        withExtendedLifetime(connection) {}
    }

    @Test func `that nobody takes the connection is told`() async throws {
        let server = try await ConnectionServer()
        let connection = try await open(server.address)
        try await server.close()
        send([Self.sound(1)], by: connection)
        #expect(wait(for: 1) == [[]])
        #expect(connection.failure == "no connection: Connection refused" && !connection.isConnected)
    }

    @Test func `the end of the connection, and what is no TURN, is told`() async throws {
        for isEnd in [true, false] {
            let server = try await ConnectionServer()
            let connection = try await open(server.address)
            send([Self.sound(1)], by: connection)
            #expect(Polling.wait { !server.bytes.isEmpty })
            if isEnd { server.disconnect() } else { server.send([0xFF, 0, 0, 0]) }
            #expect(wait(for: 1) == [[]])
            let reason = isEnd ? "it has ended the connection" : "\(TURNError.malformed)"
            #expect(connection.failure == reason && !connection.isConnected)
        }
    }

    private static func secured(_ name: String) -> TURNConnection.Security {
        TURNConnection.Security(name: name, authoritiesPath: TestCertificates.authority)
    }

    @Test(arguments: ["localhost", "127.0.0.1"])
    func `by TLS a server is taken that proves its name, or its address`(name: String) async throws {
        let server = try await ConnectionServer(certificate: "loopback")
        let connection = try await open(server.address, Self.secured(name))
        send([Self.sound(1)], by: connection)
        #expect(Polling.wait { server.bytes == Self.sound(1) + [0, 0, 0] })
        server.send(Self.sound(4))
        #expect(wait(for: 1) == [Self.sound(4)])
        server.disconnect()
        #expect(wait(for: 1) == [[]] && connection.failure == "it has ended the connection")
    }

    @Test(arguments: [("loopback", "example.test"), ("domain", "localhost"), ("domain", "127.0.0.1")])
    func `by TLS a server that proves another name is not`(certificate: String, name: String) async throws {
        let server = try await ConnectionServer(certificate: certificate)
        let connection = try await open(server.address, Self.secured(name))
        send([Self.sound(1)], by: connection)
        #expect(wait(for: 1) == [[]] && server.bytes.isEmpty)
        #expect(connection.failure?.hasPrefix("its certificate is for ") == true, "\(connection.failure ?? "")")
    }

    @Test func `a server that proves nobody is not taken`() async throws {
        let server = try await ConnectionServer()
        let connection = try await open(server.address, Self.secured("localhost"))
        send([Self.sound(1)], by: connection)
        #expect(Polling.wait { !server.bytes.isEmpty })
        server.send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
        #expect(wait(for: 1) == [[]])
        #expect(connection.failure?.hasPrefix("TLS with it failed: ") == true, "\(connection.failure ?? "")")
        let missing = TURNConnection.Security(name: "localhost", authoritiesPath: "/none")
        await #expect(throws: TURNError.self) { try await open(server.address, missing) }
    }

    @Test func `sound that finds the connection full is lost, and what is sent is whole`() async throws {
        let server = try await ConnectionServer(reads: false)
        let connection = try await open(server.address)
        let message = Self.sound(252)
        send([message], by: connection)
        #expect(Polling.wait { connection.isConnected && server.connectionCount == 1 })
        // Far more than the sockets of both sides hold.
        let count = 100_000
        for _ in 0..<count { send([message], by: connection) }
        try server.read()
        // What is sent last gets through again once there is room.
        let last = Self.sound(4)
        #expect(
            Polling.wait {
                send([last], by: connection)
                return server.bytes.suffix(last.count) == last[...]
            }
        )
        let bytes = server.bytes
        // What both sockets hold, of 25 MB.
        #expect(bytes.count < 1 << 20)
        var (stream, sizes) = (TURNStream(), Set<Int>())
        stream.append(bytes)
        while let next = try stream.next() { sizes.insert(next.count) }
        #expect(sizes == [message.count, last.count])
    }

    @Test func `it ends with whoever has it, and 1 s after it is closed`() async throws {
        let server = try await ConnectionServer()
        var connection: TURNConnection? = try await open(server.address)
        send([Self.sound(1)], by: try #require(connection))
        #expect(Polling.wait { !server.bytes.isEmpty })
        let closed = try await open(server.address)
        send([Self.sound(2)], by: closed)
        #expect(Polling.wait { server.openCount == 2 })
        connection = nil
        #expect(Polling.wait { server.openCount == 1 })
        closed.close()
        #expect(Polling.wait { server.openCount == 0 })
    }
}
