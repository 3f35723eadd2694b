import BusSupport
import DesktopBus
import Foundation
import LocalMessaging
import SharedPhone
import TestSupport
import Testing

@testable import DesktopSecrets

/// Secrets in a Secret Service that a test plays, over a message bus of its own.
@Suite(
    .serialized,
    .timeLimit(.minutes(1)),
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: PrivateBus.isPossible, "dbus-daemon is not installed")
)
struct SecretServiceRealTimeTests {
    private static let name = "sip:alice@example.org"
    private static let secret = Array("wonderland-3".utf8)

    private let bus: PrivateBus
    private let group: GroupContainer

    init() throws {
        bus = try PrivateBus()
        group = try GroupContainer(directory: bus.folder("group"))
    }

    private func secrets(mayAsk: Bool = true, service: Duration = .seconds(5), person: Duration = .seconds(60))
        -> SecretService
    {
        SecretService(
            group: group,
            environment: bus.environment,
            mayAsk: mayAsk,
            SecretService.Limits(service: service, person: person)
        )
    }

    /// The error of a use that fails; it never shows the secret.
    private func error(_ body: () async throws -> Void) async throws -> SecretError {
        let error = try #require(await #expect(throws: SecretError.self) { try await body() })
        #expect(!error.message.contains("wonderland"), "\(error)")
        return error
    }

    @Test func `a secret is kept, read, replaced and forgotten`() async throws {
        let service = try FakeSecretService(bus)
        let secrets = secrets()
        #expect(try await secrets.secret(of: Self.name) == nil)
        try await secrets.set(Self.secret, of: Self.name)
        try await secrets.set([0, 255], of: "other")
        #expect(try await secrets.secret(of: Self.name) == Self.secret)
        let item = try #require(service.items.first { $0.label == Self.name })
        #expect(item.type == "text/plain" && item.attributes["name"] == Self.name)
        #expect(item.attributes["group"] == URL(fileURLWithPath: group.path).resolvingSymlinksInPath().path)
        #expect(service.items.first { $0.label == "other" }?.type == "application/octet-stream")
        try await secrets.set([], of: Self.name)
        #expect(try await secrets.secret(of: Self.name) == [])
        try await secrets.set(nil, of: Self.name)
        try await secrets.set(nil, of: Self.name)
        #expect(try await secrets.secret(of: Self.name) == nil && service.items.count == 1)
        #expect(try await secrets.secret(of: "other") == [0, 255])
    }

    @Test func `other groups, and another way to write the path of one, are told`() async throws {
        let service = try FakeSecretService(bus)
        try await secrets().set(Self.secret, of: Self.name)
        let same = try GroupContainer(directory: bus.folder("group/../group"))
        let other = try GroupContainer(directory: bus.folder("other"))
        let environment = bus.environment
        #expect(try await SecretService(group: same, environment: environment).secret(of: Self.name) == Self.secret)
        #expect(try await SecretService(group: other, environment: environment).secret(of: Self.name) == nil)
        #expect(service.items.count == 1)
    }

    @Test func `a locked keyring asks a person, once for all that waits`() async throws {
        let service = try FakeSecretService(bus)
        let secrets = secrets()
        try await secrets.set(Self.secret, of: Self.name)
        service.lock(.gives)
        try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
            for _ in 0..<5 { group.addTask { try await secrets.secret(of: Self.name) } }
            for try await secret in group { #expect(secret == Self.secret) }
        }
        #expect(service.members.filter { $0 == "Prompt" }.count == 1)
        service.lock(.gives)
        try await secrets.set([7], of: Self.name)
        service.lock(.gives)
        try await secrets.set(nil, of: Self.name)
        #expect(service.items.isEmpty)
    }

    @Test func `who refuses is asked no more by what has waited meanwhile, but by what comes later`() async throws {
        let service = try FakeSecretService(bus)
        let secrets = secrets()
        try await secrets.set(Self.secret, of: Self.name)
        service.lock(.refuses)
        await withTaskGroup(of: SecretFault?.self) { group in
            for _ in 0..<5 {
                group.addTask {
                    do {
                        _ = try await secrets.secret(of: Self.name)
                        return nil
                    } catch { return (error as? SecretError)?.code }
                }
            }
            for await code in group { #expect(code == .locked) }
        }
        let asked = service.members.filter { $0 == "Prompt" }.count
        #expect((1...5).contains(asked))
        service.lock(.gives)
        #expect(try await secrets.secret(of: Self.name) == Self.secret)
    }

    @Test func `a person who does nothing is waited for so long, and the prompt goes away`() async throws {
        let service = try FakeSecretService(bus)
        try await secrets().set(Self.secret, of: Self.name)
        service.lock(.waits)
        let patient = secrets(person: .milliseconds(50))
        let error = try await error { _ = try await patient.secret(of: Self.name) }
        #expect(error.code == .locked && error.message.contains("Unlock it at the desktop"))
        #expect(service.members.last == "Dismiss")

        // One that is cancelled waits no longer, and holds up no other.
        let waiting = secrets(person: .seconds(3600))
        let task = Task { try await waiting.secret(of: Self.name) }
        let before = service.members.count
        #expect(await Polling.eventually { service.members.dropFirst(before).contains("Prompt") })
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        service.lock(.gives)
        #expect(try await waiting.secret(of: Self.name) == Self.secret)
    }

    @Test func `where nobody may be asked, what is locked is an error at once`() async throws {
        let service = try FakeSecretService(bus)
        let secrets = secrets(mayAsk: false)
        try await secrets.set(Self.secret, of: Self.name)
        service.lock(.gives)
        for use in [{ _ = try await secrets.secret(of: Self.name) }, { try await secrets.set([1], of: Self.name) }] {
            #expect(try await error(use).code == .locked)
        }
        #expect(!service.members.contains("Prompt") && service.items.first?.secret == Self.secret)
    }

    @Test func `items that a person has to agree to are made and deleted when that is done`() async throws {
        let service = try FakeSecretService(bus)
        let secrets = secrets()
        service.askBeforeItems()
        try await secrets.set(Self.secret, of: Self.name)
        #expect(try await secrets.secret(of: Self.name) == Self.secret)
        service.askBeforeItems(.refuses)
        #expect(try await error { try await secrets.set(nil, of: Self.name) }.code == .locked)
        #expect(service.items.count == 1)
        service.askBeforeItems()
        try await secrets.set(nil, of: Self.name)
        #expect(service.items.isEmpty)
    }

    @Test func `the end of a prompt that another sends is not believed`() async throws {
        let service = try FakeSecretService(bus)
        try await secrets().set(Self.secret, of: Self.name)
        service.lock(.waits)
        let waiting = Task { try await secrets(person: .seconds(30)).secret(of: Self.name) }
        let before = service.members.count
        #expect(await Polling.eventually { service.members.dropFirst(before).contains("Prompt") })
        let prompt = try #require(service.prompts.first)
        let liar = try BusPeer(clientOf: bus.address) { _ in .nothing }
        let body: [BusValue] = [.bool(true), .variant(.string(""))]
        try liar.signal(BusPeer.Signal(prompt, "org.freedesktop.Secret.Prompt", "Completed", body))
        // Of the service, but of another prompt.
        try service.complete(prompt + "1", isDismissed: true)
        try await liar.end()
        try service.complete(prompt, isDismissed: false)
        #expect(try await waiting.value == Self.secret)
    }

    @Test func `a service that ends while it asks is told`() async throws {
        let service = try FakeSecretService(bus)
        try await secrets().set(Self.secret, of: Self.name)
        service.lock(.waits)
        let waiting = Task { try await secrets(person: .seconds(3600)).secret(of: Self.name) }
        let before = service.members.count
        #expect(await Polling.eventually { service.members.dropFirst(before).contains("Prompt") })
        try await service.end()
        #expect(try await error { _ = try await waiting.value }.code == .unavailable)
    }

    @Test func `a secret that was moved to another keyring is not found beside its new one`() async throws {
        let service = try FakeSecretService(bus)
        let secrets = secrets()
        try await secrets.set(Self.secret, of: Self.name)
        let attributes = try #require(service.items.first?.attributes)
        // As another keyring has it, which added words of its own.
        service.add([9], attributes.merging(["moved": "yes"]) { $1 })
        try await secrets.set([1], of: Self.name)
        #expect(service.items.map(\.secret) == [[1]])
        service.add([9], attributes.merging(["moved": "yes"]) { $1 })
        try await secrets.set(nil, of: Self.name)
        #expect(service.items.isEmpty)
    }

    @Test func `without a bus, a service or a keyring it says what to do`() async throws {
        let nowhere = SecretService(group: group, environment: ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"])
        #expect(try await error { _ = try await nowhere.secret(of: Self.name) }.code == .unavailable)
        let none = try await error { try await secrets().set(Self.secret, of: Self.name) }
        #expect(none.code == .unavailable && none.message.contains("gnome-keyring"))
        let service = try FakeSecretService(bus)
        service.removeKeyring()
        let empty = try await error { try await secrets().set(Self.secret, of: Self.name) }
        #expect(empty.code == .unavailable && empty.message.contains("Make one"))
        let long = try await error { try await secrets().set(Array(repeating: 1, count: 64 << 10 + 1), of: Self.name) }
        #expect(long.code == .invalid)
    }

    /// An answer that makes no sense, and what comes of it.
    struct Wrong: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let member: String
        let answer: BusPeer.Answer
        let code: SecretFault

        init(_ member: String, _ what: String, _ answer: BusPeer.Answer, _ code: SecretFault = .unavailable) {
            (self.member, self.answer, self.code) = (member, answer, code)
            testDescription = "\(member): \(what)"
        }
    }

    private static let wrongAnswers = [
        Wrong("OpenSession", "no session", .values([.variant(.string("")), .path("/")])),
        Wrong("OpenSession", "a text", .values([.string("/a")])),
        Wrong("OpenSession", "nothing", .values([])),
        Wrong("OpenSession", "an error", .error("org.freedesktop.DBus.Error.NotSupported"), .system),
        Wrong("SearchItems", "one list", .values([.paths([])])),
        Wrong("SearchItems", "texts", .values([.strings(["/a"]), .paths([])])),
        Wrong("SearchItems", "thousands", .values([.paths(Array(repeating: "/a", count: 5000)), .paths([])])),
        Wrong("GetSecret", "bare bytes", .values([.bytes(secret)])),
        Wrong("GetSecret", "nothing", .values([])),
        Wrong("GetSecret", "another session", reply(secret, session: "/b")),
        Wrong("GetSecret", "something encrypted", reply(secret, parameters: [1])),
        Wrong("GetSecret", "too much", reply(Array(repeating: 1, count: 64 << 10 + 1)), .invalid),
        Wrong("GetSecret", "far too much", reply(Array(repeating: 1, count: 2 << 20))),
        Wrong("GetSecret", "a lock", .error("org.freedesktop.Secret.Error.IsLocked"), .locked),
        Wrong("GetSecret", "an error", .error("org.freedesktop.Secret.Error.NoSuchObject"), .system),
        Wrong("GetSecret", "an end", .hangUp),
        Wrong("GetSecret", "no answer", .nothing),
    ]

    @Test(arguments: wrongAnswers)
    func `an answer that makes no sense is an error`(wrong: Wrong) async throws {
        let service = try FakeSecretService(bus)
        try await secrets().set(Self.secret, of: Self.name)
        service.answer(wrong.member, wrong.answer)
        var limit = Duration.seconds(20)
        if case .nothing = wrong.answer { limit = .milliseconds(300) }
        let secrets = secrets(service: limit)
        #expect(try await error { _ = try await secrets.secret(of: Self.name) }.code == wrong.code)
    }

    @Test(
        arguments: [
            ("ReadAlias", .values([.string("/a")])), ("Unlock", .values([.path("/")])), ("CreateItem", .values([])),
            ("CreateItem", .values([.path("/"), .path("/")])), ("CreateItem", .values([.path("/a"), .string("")])),
        ] as [(String, BusPeer.Answer)]
    )
    func `what cannot be known to be kept is an error`(member: String, wrong: BusPeer.Answer) async throws {
        let service = try FakeSecretService(bus)
        service.answer(member, wrong)
        #expect(try await error { try await secrets().set(Self.secret, of: Self.name) }.code == .unavailable)
    }

    private static func reply(
        _ secret: [UInt8],
        session: String = FakeSecretService.session,
        parameters: [UInt8] = []
    ) -> BusPeer.Answer {
        .values([.structure([.path(session), .bytes(parameters), .bytes(secret), .string("text/plain")])])
    }
}
