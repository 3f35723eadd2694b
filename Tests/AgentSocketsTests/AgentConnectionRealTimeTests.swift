@testable import AgentSockets
import CallBasics
import Foundation
import TestSupport
import Testing

/// Connections to agents, between real sockets of loopback.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct AgentConnectionRealTimeTests {
    typealias Server = TestAgentServer

    /// As many frames as are wanted, or fewer where the connection ends before.
    func take(_ count: Int = .max, from connection: AgentConnection) async -> [AgentFrame] {
        var frames: [AgentFrame] = []
        for await frame in connection.frames {
            frames.append(frame)
            if frames.count >= count { break }
        }
        return frames
    }

    func text(_ text: String) -> AgentFrame { .text(Array(text.utf8)) }

    func open(
        _ server: Server,
        _ path: String = "/",
        pace: ConnectionPace = ConnectionPace()
    ) async throws -> AgentConnection {
        try await .open(to: AgentAddress("ws://127.0.0.1:\(server.port)\(path)"), pace: pace)
    }

    // MARK: WebSocket

    @Test func `frames go both ways in order, in whatever pieces they come`() async throws {
        let server = try await Server()
        let connection = try await open(server)
        // All lengths that are written in their own way.
        let sizes = [0, 1, 125, 126, 65_535, 65_536, 200_000]
        for size in sizes { connection.insist(.binary([UInt8](repeating: 7, count: size))) }
        connection.insist(text("end"))
        let came = try await server.seen.wait { $0.frames.count == sizes.count + 1 }.frames
        #expect(came.dropLast().map(\.bytes.count) == sizes && came.dropLast().allSatisfy { $0.opcode == 2 })
        #expect(came.last == .text("end") && came.allSatisfy(\.isMasked))

        // In one segment.
        let many = (0..<500).map { "frame \($0)" }
        server.send(many.flatMap(Server.text))
        #expect(await take(500, from: connection) == many.map(text))
        // In segments of one byte.
        for byte in Server.text("grün") + Server.frame(2, [1, 2, 3]) { server.send([byte]) }
        #expect(await take(2, from: connection) == [text("grün"), .binary([1, 2, 3])])
        let large = [UInt8](repeating: 9, count: 1 << 20)
        server.send(Server.frame(2, large))
        #expect(await take(1, from: connection) == [.binary(large)])
        #expect(connection.failure == nil && connection.droppedCount == 0)
    }

    @Test func `a message in fragments is one frame, and a ping between them is answered`() async throws {
        let server = try await Server()
        let connection = try await open(server)
        let sign = Array("€".utf8)
        server.send(Server.frame(1, Array("10 ".utf8) + sign.prefix(1), isLast: false))
        server.send(Server.frame(9, [4, 5]))
        server.send(Server.frame(0, [], isLast: false) + Server.frame(0, Array(sign.dropFirst())))
        #expect(await take(1, from: connection) == [text("10 €")])
        try await server.seen.wait { $0.frames == [Server.Frame(opcode: 10, bytes: [4, 5])] }
        withExtendedLifetime(connection) {}
    }

    @Test func `what this side ends has the close handshake, behind all that was sent`() async throws {
        let server = try await Server()
        let connection = try await open(server)
        server.send(Server.text("early"))
        try await server.seen.wait { $0.sentCount == 1 }
        connection.insist(text("goodbye"))
        await connection.close()
        try await server.seen.wait { $0.frames == [.text("goodbye"), .close(1000)] && $0.endedCount == 1 }
        #expect(connection.failure == nil)
        #expect(!connection.send(text("late")) && !connection.insist(text("late")) && connection.droppedCount == 1)
        // It ends; what came before the end is there or not.
        #expect(await take(from: connection).count <= 1)
        await connection.close()
    }

    @Test func `an agent that answers no close frame is left`() async throws {
        let server = try await Server(answers: false)
        let connection = try await open(server, pace: ConnectionPace(farewell: .milliseconds(50)))
        await connection.close()
        try await server.seen.wait { $0.frames == [.close(1000)] && $0.endedCount == 1 }
        #expect(connection.failure == nil)
    }

    @Test func `a connection that nobody has ends`() async throws {
        let server = try await Server()
        var connection: AgentConnection? = try await open(server)
        #expect(connection?.failure == nil && server.seen.value.endedCount == 0)
        connection = nil
        try await server.seen.wait { $0.endedCount == 1 }
    }

    @Test(arguments: [
        ([0x03, 0xE9] + Array("so long\u{7}".utf8), " (code 1001: so long?)", true), ([], "", true),
        ([0x0F, 0xA0], " (code 4000)", true), ([], "", false),
    ])
    func `the end by the agent is told, behind all that it sent`(
        payload: [UInt8],
        told: String,
        isOrderly: Bool
    ) async throws {
        let server = try await Server()
        let connection = try await open(server)
        server.send(Server.text("last"))
        if isOrderly { server.send(Server.frame(8, payload) + Server.text("no more")) } else { server.disconnect() }
        #expect(await take(from: connection) == [text("last")])
        let error = try #require(connection.failure)
        #expect(error.code == (told.contains("4000") ? .disconnected : .ended))
        #expect(error.description == "The agent has ended the connection\(told).")
        #expect(!connection.send(text("late")) && connection.droppedCount == 1)
        if isOrderly {
            let answer = Server.Frame(opcode: 8, bytes: Array(payload.prefix(2)))
            try await server.seen.wait { $0.frames == [answer] }
        }
        await connection.close()
        #expect(connection.failure == error)
    }

    private static let violations: [(bytes: [UInt8], code: UInt16, reason: String)] = [
        ([0x82, 127, 0, 0, 0, 0, 4, 0, 0, 0] + [UInt8](repeating: 1, count: 100_000), 1009, "of more than 1 MiB"),
        ([0x82, 127, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], 1009, "of more than 1 MiB"),
        (
            Server.frame(2, [UInt8](repeating: 1, count: 1 << 20), isLast: false) + Server.frame(0, [1], isLast: false),
            1009, "of more than 1 MiB"
        ),
        (Server.frame(1, [0x61, 0xFF]), 1007, "no UTF-8"), (Server.frame(1, [0xE2, 0x82]), 1007, "no UTF-8"),
        (Server.frame(8, [0x03, 0xE8, 0xFF]), 1007, "no UTF-8"),
        (Server.frame(8, [3]), 1002, "by no code"), (Server.frame(8, [0x03, 0xED]), 1002, "by no code"),
        ([0x82, 0x81, 1, 2, 3, 4, 5], 1002, "not agreed on"), ([0xC2, 0], 1002, "not agreed on"),
        (Server.frame(0, [1]), 1002, "goes on with no message"), (Server.frame(3, []), 1002, "unknown kind"),
        (Server.frame(1, [], isLast: false) + Server.frame(1, []), 1002, "within another"),
        (Server.frame(9, [], isLast: false), 1002, "of a wrong form"),
        (Server.frame(9, [UInt8](repeating: 1, count: 126)), 1002, "of a wrong form"),
    ]

    @Test(arguments: violations)
    func `an agent that breaks the rules is told, and left`(
        bytes: [UInt8],
        code: UInt16,
        reason: String
    ) async throws {
        let server = try await Server()
        let connection = try await open(server)
        server.send(Server.text("good") + bytes + Server.text("no more"))
        #expect(await take(from: connection) == [text("good")])
        #expect(connection.failure?.code == .disconnected && connection.failure?.description.contains(reason) == true)
        try await server.seen.wait { $0.frames == [.close(code)] && $0.endedCount == 1 }
    }

    @Test func `random bytes break nothing`() async throws {
        var generator = SeededGenerator(seed: 1)
        for round in 0..<40 {
            let server = try await Server()
            let connection = try await open(server, pace: ConnectionPace(farewell: .milliseconds(1)))
            // Half of them begin as a frame does, and all end in one that is too long.
            let start: [UInt8] = round % 2 == 0 ? [[0x81, 0x82, 0x01, 0x00].randomElement(using: &generator) ?? 0] : []
            let bytes = start + (0..<300).map { _ in UInt8.random(in: 0...255, using: &generator) }
            server.send(bytes)
            server.disconnect()
            #expect(await take(from: connection).count <= 150)
            #expect(connection.failure?.code == .disconnected)
        }
    }

    // MARK: Time

    @Test func `an agent that is silent but answers pings stays, and one that does not is left`() async throws {
        let pace = ConnectionPace(ping: .milliseconds(10), silence: .milliseconds(100))
        let server = try await Server()
        let connection = try await open(server, pace: pace)
        // Three times as long as silence may be.
        try await server.seen.wait { $0.frames.count >= 30 }
        #expect(connection.failure == nil)
        #expect(server.seen.value.frames.allSatisfy { $0 == Server.Frame(opcode: 9, bytes: []) })

        let mute = try await Server(answers: false)
        let other = try await open(mute, pace: pace)
        #expect(await take(from: other) == [])
        let text = "Nothing has come from the agent for 100 ms, not even a pong."
        #expect(other.failure?.code == .disconnected && other.failure?.description == text)
        try await mute.seen.wait { $0.endedCount == 1 }
    }

    @Test func `silence is none while the reader is slow`() async throws {
        let pace = ConnectionPace(ping: .milliseconds(10), silence: .milliseconds(60))
        let server = try await Server()
        let connection = try await open(server, pace: pace)
        server.send((0..<100).flatMap { Server.text("\($0)") })
        // Nobody reads for long enough.
        try await server.seen.wait { $0.frames.count >= 20 }
        #expect(await take(100, from: connection) == (0..<100).map { text("\($0)") })
        let count = server.seen.value.frames.count
        try await server.seen.wait { $0.frames.count >= count + 20 }
        #expect(connection.failure == nil)
    }

    // MARK: Who does not read

    @Test func `an agent that does not read gets whole frames in order, and not all`() async throws {
        let server = try await Server(reads: false)
        let connection = try await open(server)
        #expect(connection.send(text("first")))
        // More than the sockets of both sides hold, so that it waits.
        let large = [UInt8](repeating: 5, count: 900_000)
        #expect(connection.insist(.binary(large)))
        #expect(!connection.send(text("lost")) && !connection.send(text("too")) && connection.droppedCount == 2)
        #expect(connection.insist(text("mark")) && connection.failure == nil)
        server.read()
        let frames: [Server.Frame] = [.text("first"), Server.Frame(opcode: 2, bytes: large), .text("mark")]
        try await server.seen.wait { $0.frames == frames }
        #expect(await Polling.eventually { connection.state.waitingByteCount == 0 })
        #expect(connection.send(text("again")))
        try await server.seen.wait { $0.frames == frames + [.text("again")] }
        #expect(connection.droppedCount == 2)
    }

    @Test func `an agent that reads nothing of what is insisted on is left`() async throws {
        for isSmall in [true, false] {
            let server = try await Server(reads: false)
            let connection = try await open(server)
            let frame = AgentFrame.binary([UInt8](repeating: 5, count: isSmall ? 0 : 100_000))
            // What both sides' sockets hold is not counted: empty ones come when nothing moves any more.
            if isSmall { #expect(connection.insist(.binary([UInt8](repeating: 6, count: 900_000)))) }
            var count = 0
            while connection.insist(frame), count < 100_000 { count += 1 }
            #expect(count < 100_000)
            #expect(connection.failure?.code == .disconnected)
            #expect(connection.failure?.description.hasPrefix("The agent does not read what it is sent") == true)
            #expect(!connection.insist(frame) && connection.droppedCount == 0)
            #expect(await take(from: connection) == [])
            // It hears of it when it reads.
            server.read()
            try await server.seen.wait { $0.endedCount == 1 }
        }
    }

    @Test func `a slow reader loses nothing, and the agent is held back`() async throws {
        let server = try await Server()
        let connection = try await open(server)
        // More than the sockets of both sides hold.
        let count = 200
        func numbered(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(number), count: 65_536) }
        for number in 0..<count { server.send(Server.frame(2, numbered(number))) }
        #expect(await Polling.eventually { connection.state.isHeld })
        #expect(await take(1, from: connection) == [.binary(numbered(0))])
        #expect(server.seen.value.sentCount < count)
        #expect(await take(count - 1, from: connection) == (1..<count).map { .binary(numbered($0)) })
        // Small ones count, too.
        server.send((0..<200).flatMap { Server.text("\($0)") })
        #expect(await Polling.eventually { connection.state.isHeld })
        server.send(Server.text("end"))
        server.disconnect()
        #expect(await take(from: connection).last == text("end"))
    }

    @Test func `a reader that is cancelled loses nothing`() async throws {
        let server = try await Server()
        let connection = try await open(server)
        let reader = Task { await take(1, from: connection) }
        reader.cancel()
        #expect(await reader.value == [])
        server.send(Server.text("one"))
        #expect(await take(1, from: connection) == [text("one")])
        server.send((0..<100).flatMap { Server.text("\($0)") })
        #expect(await Polling.eventually { connection.state.isHeld })
        await connection.close()
        #expect(connection.failure == nil)
        try await server.seen.wait { $0.frames == [.close(1000)] }
    }

    // MARK: AudioSocket

    @Test func `messages of AudioSocket go both ways by TCP and by a Unix socket`() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "agent-\(UUID()).sock").path
        defer { unlink(path) }
        for place in [nil, path] {
            let server = try await Server(.stream(path: place))
            let address = try AgentAddress("audiosocket:" + (place ?? "127.0.0.1:\(server.port)"))
            let connection = try await AgentConnection.open(to: address)
            let identifier: [UInt8] = [1, 0, 16] + (0..<16)
            let sound: [UInt8] = [0x10, 0x01, 0x40] + [UInt8](repeating: 3, count: 320)
            connection.insist(.binary(identifier))
            connection.send(.binary(sound))
            try await server.seen.wait { $0.bytes == identifier + sound }
            server.send(sound + sound)
            for byte in [0x03, 0, 1, 0x35, 0, 0, 0] as [UInt8] { server.send([byte]) }
            let frames: [AgentFrame] = [.binary(sound), .binary(sound), .binary([3, 0, 1, 0x35]), .binary([0, 0, 0])]
            #expect(await take(4, from: connection) == frames)
            // The longest there is, and half of one.
            let longest = [0x18, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 65_535)
            server.send(longest + [0x10, 0, 5, 1])
            server.disconnect()
            #expect(await take(from: connection) == [.binary(longest)])
            #expect(connection.failure?.description == "The agent has ended the connection.")
        }
    }

    @Test func `AudioSocket ends behind all that was sent, also when nothing was read`() async throws {
        let server = try await Server(.stream())
        let connection = try await AgentConnection.open(to: AgentAddress("audiosocket:127.0.0.1:\(server.port)"))
        try await server.seen.wait { $0.channels.count == 1 }
        server.send([UInt8](repeating: 0, count: 300))
        #expect(await Polling.eventually { connection.state.isHeld })
        connection.insist(.binary([0, 0, 0]))
        await connection.close()
        try await server.seen.wait { $0.bytes == [0, 0, 0] && $0.endedCount == 1 }
        #expect(connection.failure == nil)
    }
}
