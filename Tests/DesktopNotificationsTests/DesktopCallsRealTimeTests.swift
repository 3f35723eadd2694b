import BusSupport
import DesktopBus
import SharedCore
import Testing
import TestSupport

@testable import DesktopNotifications

/// Calls on a desktop that a test plays, over a message bus of its own.
@Suite(
    .serialized,
    .timeLimit(.minutes(1)),
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: PrivateBus.isPossible, "dbus-daemon is not installed")
)
struct DesktopCallsRealTimeTests {
    private let bus: PrivateBus

    init() throws { bus = try PrivateBus() }

    private func calls() async throws -> DesktopCalls {
        try await DesktopCalls.connect(
            applicationName: "Tests",
            environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address, "LANG": "de_DE.UTF-8"]
        )
    }

    @Test func `a call rings with its buttons, is on, and goes`() async throws {
        let desktop = try await FakeDesktop(bus, capabilities: ["actions", "body", "body-markup"])
        let calls = try await self.calls()
        try await calls.show("c1", caller: "<sip:ada@b>", isOn: false)
        try await calls.show("c2", caller: "Bob", isOn: false)
        let shown = try #require(desktop.notifications.first)
        #expect(
            shown[1] == .uint32(0) && shown[3] == .string("<sip:ada@b>") && shown[4] == .string("Eingehender Anruf")
        )
        #expect(shown[5] == .strings(["answer", "Annehmen", "decline", "Ablehnen"]))
        try desktop.signal("ActionInvoked", [.uint32(1), .string("answer")])
        // Another's, and what is no button.
        try desktop.signal("ActionInvoked", [.uint32(9), .string("answer")])
        try desktop.signal("ActionInvoked", [.uint32(1), .string("default")])
        try desktop.signal("ActionInvoked", [.uint32(2), .string("decline")])
        var presses: [DesktopCalls.Press] = []
        for await press in calls.presses {
            presses.append(press)
            if presses.count == 2 { break }
        }
        #expect(presses.map(\.call) == ["c1", "c2"] && presses.map(\.action) == [.answer, .decline])
        try await calls.show("c1", caller: "Ada", isOn: true)
        #expect(desktop.notifications.last?[1] == .uint32(1))
        #expect(desktop.notifications.last?[5] == .strings(["hang-up", "Auflegen"]))
        try await calls.withdraw("c1")
        try await calls.withdraw("c1")
        #expect(desktop.closed == [1])
    }

    @Test func `without a desktop it says so, and one that comes anew is used`() async throws {
        await #expect(throws: NotificationError.self) { try await self.calls() }
        var desktop = try await FakeDesktop(bus, capabilities: [])
        let calls = try await self.calls()
        try await calls.show("c1", caller: "Ada", isOn: false)
        try await desktop.end()
        desktop = try await FakeDesktop(bus, capabilities: [])
        #expect(
            try await Polling.eventually {
                try await calls.show("c1", caller: "Ada", isOn: false)
                return desktop.notifications.last?[1] == .uint32(0)
            }
        )
    }

    @Test func `a call that goes before the desktop has shown it is closed as soon as it has`() async throws {
        let desktop = try await FakeDesktop(bus, capabilities: [])
        let calls = try await self.calls()
        desktop.hold()
        async let shown: Void = calls.show("c1", caller: "Ada", isOn: false)
        #expect(await Polling.eventually { desktop.notifications.count == 1 })
        try await calls.withdraw("c1")
        desktop.release()
        try await shown
        #expect(desktop.closed == [1])
    }
}
