import BusSupport
import DesktopBus
import Foundation
import SharedCore
import Testing
import TestSupport

@testable import DesktopNotifications

/// Services of notifications that answer slowly, never, or with what they should not.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct DesktopSessionRealTimeTests {
    private static let message = MessageNotification(IncomingMessage(callID: "1", sender: "Ada", text: "hi"))

    /// What a good bus and a good service answer.
    private static func answer(_ call: BusPeer.Call) -> BusPeer.Answer {
        switch call.member {
        case "Hello": .values([.string(":1.7")])
        case "AddMatch", "CloseNotification": .values([])
        case "GetCapabilities": .values([.strings(["inline-reply"])])
        case "GetNameOwner": .values([.string(":1.5")])
        case "GetId": .values([.string("0123")])
        case "Notify": .values([.uint32(4)])
        default: .nothing
        }
    }

    private static func presenter(
        _ limit: Duration = .seconds(5),
        answer: @escaping @Sendable (BusPeer.Call) -> BusPeer.Answer
    ) async throws -> (FakeBus, DesktopPresenter) {
        let bus = try FakeBus(.answers(answer))
        let presenter = try await DesktopPresenter.connect(
            applicationName: "Tests",
            environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address],
            records: nil,
            limit: limit
        )
        return (bus, presenter)
    }

    @Test func `a good service is shown a notification`() async throws {
        let (_, presenter) = try await Self.presenter(answer: Self.answer)
        try await presenter.present(Self.message)
        try await presenter.withdraw(identifier: "1")
    }

    @Test(
        arguments: [
            ("AddMatch", .error("org.freedesktop.DBus.Error.MatchRuleInvalid"), .refused),
            ("GetCapabilities", .values([.uint32(1)]), .protocolViolation),
            ("GetCapabilities", .values([]), .protocolViolation),
            ("GetCapabilities", .hangUp, .disconnected),
            ("GetNameOwner", .values([.string(":1/../../etc")]), .protocolViolation),
            ("GetNameOwner", .values([.string("org.example.NotUnique")]), .protocolViolation),
            ("GetNameOwner", .values([.string(":" + String(repeating: "1", count: 1000))]), .protocolViolation),
            ("GetId", .values([.string("../0123")]), .protocolViolation),
            ("GetId", .values([.byte(1)]), .protocolViolation),
        ] as [(String, BusPeer.Answer, NotificationFault)]
    )
    func `an answer that makes no sense is an error`(
        member: String,
        wrong: BusPeer.Answer,
        code: NotificationFault
    ) async throws {
        let error = await #expect(throws: NotificationError.self) {
            try await Self.presenter { $0.member == member ? wrong : Self.answer($0) }
        }
        #expect(error?.code == code)
    }

    @Test(
        arguments: [
            (.values([]), .protocolViolation), (.values([.string("4")]), .protocolViolation),
            (.values([.uint32(0)]), .protocolViolation), (.error("org.example.Full"), .refused),
            (.nothing, .timedOut),
        ] as [(BusPeer.Answer, NotificationFault)]
    )
    func `a notification that has no number was not shown`(
        wrong: BusPeer.Answer,
        code: NotificationFault
    ) async throws {
        let (_, presenter) = try await Self.presenter(code == .timedOut ? .seconds(2) : .seconds(20)) {
            $0.member == "Notify" ? wrong : Self.answer($0)
        }
        let error = await #expect(throws: NotificationError.self) { try await presenter.present(Self.message) }
        #expect(error?.code == code)
    }

    /// Each answer alone comes in time.
    @Test func `a service that answers each question late is given up in time`() async throws {
        let error = await #expect(throws: NotificationError.self) {
            try await Self.presenter(.seconds(1)) { call in
                if call.member != "Hello" { pass(.milliseconds(400)) }
                return Self.answer(call)
            }
        }
        #expect(error?.code == .timedOut)
    }

    @Test func `a program that only keeps a core links no D-Bus`() throws {
        let this = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let first = try #require(CommandLine.arguments.first)
        let tests = [this, URL(fileURLWithPath: first)].first { Self.mentions("libsystemd.so", $0) == true }
        let folder = try #require(tests, "the tests themselves link it").deletingLastPathComponent()
        #expect(Self.mentions("libsystemd.so", folder.appendingPathComponent("SharedCorePeer")) == false)
    }

    /// Whether a file holds the text; nil when there is no such file.
    private static func mentions(_ text: String, _ file: URL) -> Bool? {
        (try? Data(contentsOf: file, options: .alwaysMapped)).map { $0.range(of: Data(text.utf8)) != nil }
    }
}
