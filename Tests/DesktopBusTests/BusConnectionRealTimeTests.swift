import BusSupport
import CallBasics
import TestSupport
import Testing

@testable import DesktopBus

/// Buses that refuse, hang, lie or die.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct BusConnectionRealTimeTests {
    /// A way not to become the session's bus, and what a connection to it fails with.
    struct BadBus: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let manner: FakeBus.Manner?
        let code: BusFault

        /// How long it is waited for: who hears nothing waits for all of it.
        var limit: Duration { code == .timedOut ? .milliseconds(300) : .seconds(20) }
    }

    static let badBuses = [
        BadBus(
            testDescription: "refuses this user",
            manner: .says("DATA\r\nREJECTED EXTERNAL DBUS_COOKIE_SHA1\r\n"),
            code: .noBus
        ),
        BadBus(testDescription: "never answers", manner: .silent, code: .timedOut),
        BadBus(testDescription: "accepts nobody", manner: nil, code: .timedOut),
        BadBus(
            testDescription: "speaks something else",
            manner: .says("HTTP/1.1 400 Bad Request\r\n\r\n"),
            code: .noBus
        ),
        BadBus(
            testDescription: "never ends its line",
            manner: .says(String(repeating: "D", count: 100_000)),
            code: .noBus
        ),
        BadBus(
            testDescription: "sends no message",
            manner: .says("DATA\r\nOK 0123456789abcdef0123456789abcdef\r\n" + String(repeating: "x", count: 200)),
            code: .noBus
        ),
        BadBus(testDescription: "gives no name", manner: .answers { _ in .nothing }, code: .timedOut),
        BadBus(
            testDescription: "refuses a name",
            manner: .answers { _ in .error("org.freedesktop.DBus.Error.LimitsExceeded") },
            code: .noBus
        ),
        BadBus(
            testDescription: "gives a number as a name",
            manner: .answers { _ in .values([.uint32(7)]) },
            code: .noBus
        ),
        BadBus(testDescription: "ends when asked for a name", manner: .answers { _ in .hangUp }, code: .noBus),
    ]

    /// A bus of one client, which has the name `:1.7` and whose calls are answered by `answer`.
    static func bus(_ answer: @escaping @Sendable (BusPeer.Call) -> BusPeer.Answer) throws -> FakeBus {
        try FakeBus(.answers { $0.member == "Hello" ? .values([.string(":1.7")]) : answer($0) })
    }

    @Test(arguments: badBuses)
    func `a bad bus is an error in time, and its connection is closed`(bad: BadBus) async throws {
        let bus = try FakeBus(bad.manner)
        let error = await #expect(throws: BusError.self) {
            try await BusConnection.connect(to: [bus.address], within: bad.limit)
        }
        #expect(error?.code == bad.code)
        guard bad.manner != nil else { return }
        for await _ in bus.gone { break }
    }

    @Test(arguments: badBuses)
    func `a bad bus is passed over, and its connection is closed`(bad: BadBus) async throws {
        let bus = try FakeBus(bad.manner)
        let good = try Self.bus { _ in .values([.string("here")]) }
        // An equal share of it is for each: here a tenth for the bad one.
        let addresses = [bus.address] + Array(repeating: good.address, count: 9)
        let connection = try await BusConnection.connect(to: addresses, within: bad.limit * 10)
        #expect(try await connection.call(.bus("ListNames")) == [.string("here")])
        guard bad.manner != nil else { return }
        for await _ in bus.gone { break }
    }

    @Test func `without an address there is no bus`() async throws {
        let error = await #expect(throws: BusError.self) { try await BusConnection.connect(to: []) }
        #expect(error?.code == .noBus)
    }

    /// More of them than the concurrency pool has threads.
    @Test func `buses that never answer hold up no other task, and who is cancelled waits no longer`() async throws {
        let bus = try FakeBus(.silent)
        let waiting = (0..<32).map { _ in
            // Beyond what the suite may take.
            Task { try await BusConnection.connect(to: [bus.address], within: .seconds(3600)) }
        }
        // Who is cancelled before connects to nothing.
        for await _ in bus.arrived.prefix(waiting.count) {}
        #expect(await Task { 7 }.value == 7)
        for task in waiting {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        for await _ in bus.gone.prefix(waiting.count) {}
    }

    @Test func `a connection that is let go is closed`() async throws {
        let bus = try Self.bus { _ in .nothing }
        do {
            _ = try await BusConnection.connect(to: [bus.address])
        }
        for await _ in bus.gone { break }
    }

    @Test func `a bus that dies ends what waits for it, and the signals`() async throws {
        let bus = try Self.bus { $0.member == "Die" ? .hangUp : .nothing }
        let connection = try await BusConnection.connect(to: [bus.address])
        let waiting = Task { try await connection.call(.bus("ListNames"), until: .now + .seconds(3600)) }
        let error = await #expect(throws: BusError.self) { try await connection.call(.bus("Die")) }
        #expect(error?.code == .disconnected)
        await #expect(throws: BusError.self) { try await waiting.value }
        for await _ in connection.signals {}
        #expect(connection.hasEnded)
        // Nothing is asked of it any more.
        await #expect(throws: BusError.self) { try await connection.call(.bus("ListNames")) }
    }

    @Test func `each reply reaches its call, in whatever order they come`() async throws {
        let bus = try Self.bus { .values([.string($0.body.first?.string ?? "")]) }
        let connection = try await BusConnection.connect(to: [bus.address])
        let replies = try await withThrowingTaskGroup(of: (Int, [BusValue]).self) { group in
            for index in 0..<200 {
                group.addTask { (index, try await connection.call(.bus("Echo", [.string(String(index))]))) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(replies.count == 200 && replies.allSatisfy { $0.value == [.string(String($0.key))] })
    }

    @Test func `values of every kind come as they were sent`() async throws {
        let body: [BusValue] = [
            .byte(1), .bool(true), .int32(-2), .uint32(3), .string("grüezi"), .path("/a/b"), .bytes([0, 255]),
            .bytes([]),
            .strings(["a", ""]), .paths(["/", "/c"]), .texts(["k": "v", "": ""]), .texts([:]),
            .dictionary(["x": .strings(["y"]), "z": .dictionary([:])]), .variant(.variant(.paths([]))),
            .structure([.path("/s"), .bytes([1]), .structure([.bool(false)])]), .string("end"),
        ]
        let bus = try Self.bus { _ in .values(body) }
        let connection = try await BusConnection.connect(to: [bus.address])
        let echo = try await connection.call(.bus("Echo", body))
        #expect(echo == body)
    }

    /// What is longer than anything that is read.
    enum Long: CaseIterable {
        case bytes, text, paths, strings, texts

        var value: BusValue {
            switch self {
            case .bytes: .bytes(Array(repeating: 7, count: 1 << 20 + 1))
            case .text: .string(String(repeating: "a", count: 1 << 20))
            case .paths: .paths(Array(repeating: "/a", count: 4097))
            case .strings: .strings(Array(repeating: "", count: 4097))
            case .texts: .texts(Dictionary(uniqueKeysWithValues: (0...4096).map { (String($0), "") }))
            }
        }
    }

    @Test(arguments: Long.allCases)
    func `what is longer than anything here needs is an error of its call alone`(long: Long) async throws {
        let value = long.value
        let bus = try Self.bus { .values([$0.member == "Long" ? value : .byte(1)]) }
        let connection = try await BusConnection.connect(to: [bus.address])
        let error = await #expect(throws: BusError.self) { try await connection.call(.bus("Long")) }
        #expect(error?.code == .protocolViolation)
        #expect(try await connection.call(.bus("Short")) == [.byte(1)])
    }

    @Test func `values that lie deeper in each other than anything needs are passed over`() async throws {
        let deep = (0..<12).reduce(BusValue.byte(1)) { value, _ in .variant(value) }
        let bus = try Self.bus { _ in .values([deep, .string("end")]) }
        let connection = try await BusConnection.connect(to: [bus.address])
        let values = try await connection.call(.bus("Deep"))
        var (depth, value) = (0, values[0])
        while case .variant(let inner) = value { (depth, value) = (depth + 1, inner) }
        #expect(depth == 8 && value == .other && values.last == .string("end"))
    }

    @Test func `a member that D-Bus does not have is an error of its call alone`() async throws {
        let bus = try Self.bus { _ in .values([]) }
        let connection = try await BusConnection.connect(to: [bus.address])
        await #expect(throws: BusError.self) { try await connection.call(.bus("no member")) }
        #expect(try await connection.call(.bus("Member")) == [])
    }
}
