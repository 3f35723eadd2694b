import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import SharedCore

/// Notifications on a desktop that a test plays, over a message bus of its own.
@Suite(
    .serialized,
    .timeLimit(.minutes(1)),
    .tags(.realtime),
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
            await desktop.end()
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
        desktop.signal("ActionInvoked", [.uint32(99), .string("mark-as-seen")])
        desktop.signal("ActionInvoked", [.uint32(1), .string("default")])
        desktop.signal("ActionInvoked", [.uint32(1), .string("mark-as-seen")])
        desktop.signal("NotificationReplied", [.uint32(1), .string("yes")])
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
        await desktop.end()
    }

    @Test func `a bus is found by a name without a file`() async throws {
        let connection = try await DBusConnection.connect(to: [.path("/nowhere"), bus.abstract])
        let names = try await connection.call(
            .call(DBusConnection.bus, DBusConnection.busPath, DBusConnection.bus, "ListNames")
        )
        #expect(names.first?.strings?.contains("org.freedesktop.DBus") == true)
        connection.close()
    }

    @Test func `a desktop that does not answer is an error in time, and a cancelled wait ends`() async throws {
        let desktop = try await FakeDesktop(bus, capabilities: [])
        let connection = try await DBusConnection.connect(to: DBusAddress.session(environment: bus.environment))
        let silent = DBusMessage.call(
            DesktopPresenter.service,
            DesktopPresenter.path,
            DesktopPresenter.service,
            "Silent"
        )
        let error = await #expect(throws: NotificationError.self) {
            try await connection.call(silent, timeout: .milliseconds(20))
        }
        #expect(error?.code == .timedOut)
        let waiting = Task { try await connection.call(silent) }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        connection.close()
        await desktop.end()
    }

    @Test func `without its bus a notification is an error, and the next one finds the bus that follows`() async throws
    {
        let presenter: DesktopPresenter
        do {
            let desktop = try await FakeDesktop(bus, capabilities: [])
            presenter = try await bus.presenter(records: bus.folder("records"))
            try await presenter.present(ada)
            bus.end()
            await desktop.end()
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
        desktop.signal("ActionInvoked", [.uint32(1), .string("mark-as-seen")])
        for await action in presenter.actions {
            #expect(action.callID == ada.identifier)
            break
        }
        await desktop.end()
    }

    @Test func `a service that takes the place of another is asked what it can do`() async throws {
        let first = try await FakeDesktop(bus, capabilities: [])
        let presenter = try await bus.presenter(records: bus.folder("records"))
        try await presenter.present(ada)
        await first.end()
        let second = try await FakeDesktop(bus, capabilities: ["inline-reply"])
        let labels = ["inline-reply", "Antworten", "mark-as-seen", "Als gelesen markieren"]
        // The bus says who has the name now; that may come a moment after the new one was let in.
        let isAsked = try await Polling.eventually {
            try await presenter.present(ada)
            return second.notifications.last?[5] == .strings(labels)
        }
        try #require(isAsked)
        second.signal("NotificationReplied", [.uint32(UInt32(second.notifications.count)), .string("yes")])
        for await action in presenter.actions {
            #expect(action.kind == .reply("yes"))
            break
        }
        await second.end()
    }

    private func chosen(_ environment: [String: String]) async -> any NotificationPresenter {
        await StandardPresenter.choose(applicationName: "Tests", environment: environment, records: nil)
    }
}

/// A `dbus-daemon` that only this test knows.
private final class PrivateBus: Sendable {
    static let isPossible = FileManager.default.isExecutableFile(atPath: program)

    let abstract: DBusAddress
    private let root: URL
    private let process = Mutex<Process?>(nil)

    init() throws {
        root = FileManager.default.temporaryDirectory.appendingPathComponent("bus-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        abstract = .abstract(root.path)
        try """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
            "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig>
            <type>session</type>
            <listen>unix:path=\(root.path)/bus</listen>
            <listen>unix:abstract=\(root.path)</listen>
            <auth>EXTERNAL</auth>
            <policy context="default">
                <allow send_destination="*"/>
                <allow receive_type="method_call"/>
                <allow receive_type="method_return"/>
                <allow receive_type="error"/>
                <allow receive_type="signal"/>
                <allow own="*"/>
            </policy>
        </busconfig>
        """.write(to: root.appendingPathComponent("bus.conf"), atomically: true, encoding: .utf8)
        try start()
    }

    /// Starts the daemon, also one that follows another.
    func start() throws {
        let process = Process()
        let address = Pipe()
        process.executableURL = URL(fileURLWithPath: Self.program)
        process.arguments = ["--config-file=\(root.path)/bus.conf", "--nofork", "--print-address=1"]
        process.standardOutput = address
        process.standardError = FileHandle.nullDevice
        try process.run()
        // It prints its address when it listens.
        _ = address.fileHandleForReading.availableData
        self.process.withLock { $0 = process }
    }

    deinit {
        end()
        try? FileManager.default.removeItem(at: root)
    }

    var environment: [String: String] {
        ["DBUS_SESSION_BUS_ADDRESS": "unix:path=\(root.path)/bus", "LANG": "de_CH.UTF-8"]
    }

    func presenter(records: String? = nil) async throws -> DesktopPresenter {
        try await DesktopPresenter.connect(applicationName: "Tests", environment: environment, records: records)
    }

    /// A folder beside the bus, made when it is not there.
    func folder(_ name: String) throws -> String {
        let folder = root.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder.path
    }

    func end() {
        let running = process.withLock { process in
            defer { process = nil }
            return process
        }
        guard let running else { return }
        // The daemon has inherited that the test runner's threads block SIGTERM.
        kill(running.processIdentifier, SIGKILL)
        running.waitUntilExit()
    }

    private static let program = "/usr/bin/dbus-daemon"
}

/// A service of notifications that keeps what it is asked to show.
private final class FakeDesktop: Sendable {
    private let connection: DBusConnection
    private let requests: Requests
    private let answering: Task<Void, Never>

    init(_ bus: PrivateBus, capabilities: [String]) async throws {
        let connection = try await DBusConnection.connect(to: DBusAddress.session(environment: bus.environment))
        let requests = Requests()
        self.connection = connection
        self.requests = requests
        answering = Task {
            for await message in connection.arrivals where message.kind == .call {
                guard let body = requests.answer(message, capabilities) else { continue }
                var reply = DBusMessage(.reply)
                reply.replySerial = message.serial
                reply.destination = message.sender
                reply.body = body
                connection.send(reply)
            }
        }
        let name = DBusValue.string(DesktopPresenter.service)
        let bus = DBusConnection.bus
        try await connection.call(.call(bus, DBusConnection.busPath, bus, "RequestName", [name, .uint32(0)]))
    }

    /// The arguments of each `Notify`.
    var notifications: [[DBusValue]] { requests.notifications.withLock(\.self) }
    /// The numbers of what was to be closed.
    var closed: [UInt32] { requests.closed.withLock(\.self) }

    func signal(_ member: String, _ body: [DBusValue]) {
        var signal = DBusMessage(.signal)
        signal.path = DesktopPresenter.path
        signal.interface = DesktopPresenter.service
        signal.member = member
        signal.body = body
        connection.send(signal)
    }

    /// Gives its name back, for the next one.
    func end() async {
        let name = DBusValue.string(DesktopPresenter.service)
        let bus = DBusConnection.bus
        // A bus that has ended has taken the name already.
        _ = try? await connection.call(.call(bus, DBusConnection.busPath, bus, "ReleaseName", [name]))
        connection.close()
        await answering.value
    }

    private final class Requests: Sendable {
        let notifications = Mutex<[[DBusValue]]>([])
        let closed = Mutex<[UInt32]>([])

        /// The body of the answer; nil where none is to come.
        func answer(_ message: DBusMessage, _ capabilities: [String]) -> [DBusValue]? {
            switch message.member {
            case "GetCapabilities":
                return [.strings(capabilities)]
            case "Notify":
                let count = notifications.withLock { all in
                    all.append(message.body)
                    return UInt32(all.count)
                }
                return [.uint32(message.body[1].uint32.flatMap { $0 == 0 ? nil : $0 } ?? count)]
            case "CloseNotification":
                closed.withLock { $0 += message.body.compactMap(\.uint32) }
                return []
            default:
                return nil
            }
        }
    }
}
