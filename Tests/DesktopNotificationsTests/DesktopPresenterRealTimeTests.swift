import BusSupport
import DesktopBus
import Foundation
import SharedCore
import Testing
import TestSupport

@testable import DesktopNotifications

/// Notifications on a desktop that a test plays, over a message bus of its own.
@Suite(
    .serialized,
    .timeLimit(.minutes(1)),
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: PrivateBus.isPossible, "dbus-daemon is not installed")
)
struct DesktopPresenterRealTimeTests {
    private let bus: PrivateBus
    private let ada = MessageNotification(
        IncomingMessage(callID: "1", room: "sip:r@b", sender: "Ada", text: "a < b & c")
    )

    init() throws {
        bus = try PrivateBus()
    }

    @Test func `a message is shown with sender, room, text and actions`() async throws {
        let desktop = try await FakeDesktop(bus, capabilities: ["body", "body-markup", "inline-reply"])
        let presenter = try await bus.presenter()
        try await presenter.present(ada)
        let shown = try #require(desktop.notifications.first)
        #expect(shown[0] == .string("Tests") && shown[1] == .uint32(0) && shown[3] == .string("Ada (sip:r@b)"))
        #expect(shown[4] == .string("a &lt; b &amp; c"))
        #expect(shown[5] == .strings(["inline-reply", "Antworten", "mark-as-seen", "Als gelesen markieren"]))
    }

    @Test func `without a field for answers there is no reply, without markup no entities`() async throws {
        let desktop = try await FakeDesktop(bus, capabilities: ["body"])
        let presenter = try await bus.presenter()
        try await presenter.present(ada)
        try await presenter.present(.fallback(identifier: "2", texts: .english))
        #expect(desktop.notifications.first?[4] == .string("a < b & c"))
        #expect(desktop.notifications.first?[5] == .strings(["mark-as-seen", "Als gelesen markieren"]))
        #expect(desktop.notifications.last?[3] == .string("Sie haben eine neue Nachricht erhalten"))
    }

    @Test func `a message that is shown again replaces its notification, also from another process`() async throws {
        let desktop = try await FakeDesktop(bus, capabilities: [])
        let other = MessageNotification(IncomingMessage(callID: "2", sender: "Bob", text: "hi"))
        do {
            let first = try await bus.presenter(records: bus.folder("records"))
            try await first.present(ada)
            try await first.present(other)
        }
        let second = try await bus.presenter(records: bus.folder("records"))
        try await second.present(ada)
        #expect(desktop.notifications.map { $0[1] } == [.uint32(0), .uint32(0), .uint32(1)])
        try await second.withdraw(identifier: "2")
        try await second.withdraw(identifier: "nobody's")
        #expect(desktop.closed == [2])
    }

    @Test func `numbers of a desktop that has gone mean nothing to the next one`() async throws {
        do {
            let desktop = try await FakeDesktop(bus, capabilities: [])
            let presenter = try await bus.presenter(records: bus.folder("records"))
            try await presenter.present(ada)
            try await desktop.end()
        }
        let desktop = try await FakeDesktop(bus, capabilities: [])
        let presenter = try await bus.presenter(records: bus.folder("records"))
        try await presenter.present(ada)
        #expect(desktop.notifications.map { $0[1] } == [.uint32(0)])
        #expect(try FileManager.default.contentsOfDirectory(atPath: bus.folder("records")).count == 1)
    }

    @Test func `what is done with a notification comes to each process, with the same identifier`() async throws {
        let desktop = try await FakeDesktop(bus, capabilities: ["inline-reply"])
        let first = try await bus.presenter(records: bus.folder("records"))
        let second = try await bus.presenter(records: bus.folder("records"))
        try await first.present(ada)
        try desktop.signal("ActionInvoked", [.uint32(99), .string("mark-as-seen")])
        try desktop.signal("ActionInvoked", [.uint32(1), .string("default")])
        try desktop.signal("ActionInvoked", [.uint32(1), .string("mark-as-seen")])
        try desktop.signal("NotificationReplied", [.uint32(1), .string("yes")])
        var performed: [[MessageAction]] = []
        for presenter in [first, second] {
            var actions: [MessageAction] = []
            for await action in presenter.actions {
                actions.append(action)
                if actions.count == 2 { break }
            }
            performed.append(actions)
        }
        #expect(performed[0].map(\.kind) == [.markAsSeen, .reply("yes")])
        #expect(performed[0].allSatisfy { $0.callID == "1" } && performed[0][0].id != performed[0][1].id)
        #expect(performed[0] == performed[1])
    }

    @Test func `without a desktop standard output is chosen`() async throws {
        let error = await #expect(throws: NotificationError.self) {
            try await bus.presenter()
        }
        #expect(error?.code == .refused && error?.message.contains("ServiceUnknown") == true)
        #expect(await chosen(bus.environment) is StandardOutputPresenter)
        #expect(await chosen([:]) is StandardOutputPresenter)
        let desktop = try await FakeDesktop(bus, capabilities: [])
        #expect(await chosen(bus.environment) is DesktopPresenter)
        try await desktop.end()
    }

    @Test func `a bus is found by a name without a file`() async throws {
        let connection = try await BusConnection.connect(to: ["unix:path=/nowhere", bus.abstract])
        let names = try await connection.call(.bus("ListNames"))
        #expect(names.first?.strings?.contains("org.freedesktop.DBus") == true)
    }

    @Test func `a zero byte in a text is replaced, and the rest is shown`() async throws {
        let desktop = try await FakeDesktop(bus, capabilities: [])
        let presenter = try await bus.presenter()
        try await presenter.present(MessageNotification(identifier: "1", sender: "A\0da", text: "a\0b"))
        #expect(desktop.notifications.first?[3] == .string("A\u{FFFD}da"))
        #expect(desktop.notifications.first?[4] == .string("a\u{FFFD}b"))
    }

    @Test func `a desktop that does not answer is an error in time, and a cancelled wait ends`() async throws {
        let desktop = try await FakeDesktop(bus, capabilities: [])
        let connection = try await BusConnection.connect(to: [bus.address])
        let silent = DesktopPresenter.call("Silent")
        let error = await #expect(throws: BusError.self) {
            try await connection.call(silent, until: .now + .milliseconds(20))
        }
        #expect(error?.code == .timedOut)
        // Beyond what the suite may take.
        let waiting = Task { try await connection.call(silent, until: .now + .seconds(3600)) }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        // The connection is as good as before.
        #expect(try await connection.call(DesktopPresenter.call("GetCapabilities")) == [.strings([])])
        try await desktop.end()
    }

    @Test func `without its bus a notification is an error, and the next one finds the bus that follows`() async throws
    {
        let presenter: DesktopPresenter
        do {
            let desktop = try await FakeDesktop(bus, capabilities: [])
            presenter = try await bus.presenter(records: bus.folder("records"))
            try await presenter.present(ada)
            bus.end()
            try await desktop.end()
        }
        for _ in 0..<2 {
            let error = await #expect(throws: NotificationError.self) { try await presenter.present(ada) }
            #expect(error?.code == .noBus)
        }
        try bus.start()
        let desktop = try await FakeDesktop(bus, capabilities: [])
        try await presenter.present(ada)
        #expect(desktop.notifications.map { $0[1] } == [.uint32(0)])
        // What is done is heard from the new one, by who listened before.
        try desktop.signal("ActionInvoked", [.uint32(1), .string("mark-as-seen")])
        for await action in presenter.actions {
            #expect(action.callID == ada.identifier)
            break
        }
        try await desktop.end()
    }

    @Test func `a service that takes the place of another is asked what it can do`() async throws {
        let first = try await FakeDesktop(bus, capabilities: [])
        let presenter = try await bus.presenter(records: bus.folder("records"))
        try await presenter.present(ada)
        try await first.end()
        let second = try await FakeDesktop(bus, capabilities: ["inline-reply"])
        let labels = ["inline-reply", "Antworten", "mark-as-seen", "Als gelesen markieren"]
        // The bus says who has the name now; that may come a moment after the new one was let in.
        let isAsked = try await Polling.eventually {
            try await presenter.present(ada)
            return second.notifications.last?[5] == .strings(labels)
        }
        try #require(isAsked)
        try second.signal("NotificationReplied", [.uint32(UInt32(second.notifications.count)), .string("yes")])
        for await action in presenter.actions {
            #expect(action.kind == .reply("yes"))
            break
        }
        try await second.end()
    }

    private func chosen(_ environment: [String: String]) async -> any NotificationPresenter {
        await StandardPresenter.choose(applicationName: "Tests", environment: environment, records: nil)
    }
}
