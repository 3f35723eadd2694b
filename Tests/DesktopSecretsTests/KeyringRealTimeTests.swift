import BusSupport
import Foundation
import Glibc
import LocalMessaging
import SharedPhone
import Synchronization
import TestSupport
import Testing

@testable import DesktopSecrets

/// Secrets in GNOME's keyring, over a message bus of its own, with libsecret's tool as the judge.
@Suite(
    .serialized,
    .timeLimit(.minutes(1)),
    .tags(.realtime),
    .onSteadyMachine,
    WhileKeyringRuns(),
    .enabled(if: PrivateBus.isPossible, "dbus-daemon is not installed"),
    .enabled(if: KeyringRun.isPossible, "needs gnome-keyring and secret-tool (Debian: libsecret-tools)")
)
struct KeyringRealTimeTests {
    private static let name = "sip:alice@example.org"
    private static let secret = Array("wonderland-3".utf8)

    private let bus: PrivateBus
    private let group: GroupContainer
    private let keyring: KeyringRun

    init() throws {
        bus = try PrivateBus()
        group = try GroupContainer(directory: bus.folder("group"))
        keyring = try KeyringRun(on: bus)
    }

    private func secrets(mayAsk: Bool = true) -> SecretService {
        SecretService(
            group: group,
            environment: bus.environment,
            mayAsk: mayAsk,
            SecretService.Limits(service: .seconds(20), person: .seconds(20))
        )
    }

    private var attributes: [String] { ["group", group.path, "name", Self.name] }

    @Test func `a secret is kept, read, replaced and forgotten, and another program finds it`() async throws {
        let secrets = secrets()
        #expect(try await secrets.secret(of: Self.name) == nil)
        try await secrets.set(Self.secret, of: Self.name)
        try await secrets.set([0, 255], of: "other")
        #expect(try await secrets.secret(of: Self.name) == Self.secret)
        #expect(try await secrets.secret(of: "other") == [0, 255])
        #expect(try keyring.tool(["lookup"] + attributes).output == "wonderland-3")
        try await secrets.set([7], of: Self.name)
        #expect(try await secrets.secret(of: Self.name) == [7])
        #expect(try keyring.tool(["lookup"] + attributes).output == "\u{7}")
        try await secrets.set(nil, of: Self.name)
        #expect(try await secrets.secret(of: Self.name) == nil)
        #expect(try keyring.tool(["lookup"] + attributes).status == 1)
        #expect(try await secrets.secret(of: "other") == [0, 255])
    }

    @Test func `what another program has replaced is read`() async throws {
        let secrets = secrets()
        try await secrets.set(Self.secret, of: Self.name)
        let schema = ["xdg:schema", "media-engine.Secret"]
        let stored = try keyring.tool(["store", "--label=x"] + attributes + schema, says: "looking-glass")
        #expect(stored.status == 0, "\(stored.errors)")
        #expect(try await secrets.secret(of: Self.name) == Array("looking-glass".utf8))
    }

    @Test func `a keyring that is locked is an error, at once where nobody may be asked`() async throws {
        try await secrets().set(Self.secret, of: Self.name)
        try keyring.lock()
        for mayAsk in [false, true] {
            // Nobody is there who could be asked.
            let secrets = secrets(mayAsk: mayAsk)
            let error = await #expect(throws: SecretError.self) { try await secrets.secret(of: Self.name) }
            #expect(error?.code == .locked, "\(mayAsk): \(String(describing: error))")
        }
    }
}

/// GNOME's keyring in folders of its own, unlocked, and libsecret's tool beside it.
private final class KeyringRun {
    static let isPossible = program != nil && toolPath != nil
    /// The one that runs, or ran last.
    private static let latest = Watched<ProgramRun?>(nil)
    /// What that has printed when it has ended, which nobody has told it to while a test runs; nil while it runs.
    static var lastWords: String? {
        latest.value.flatMap { $0.ends(within: .milliseconds(500)) ? $0.errors : nil }
    }
    private static let program = Program.path("gnome-keyring-daemon")
    private static let toolPath = Program.path("secret-tool")

    private let run: ProgramRun
    private let environment: [String: String]
    private let folder: String

    /// Starts it, and waits until it is on the bus.
    init(on bus: PrivateBus) throws {
        folder = try bus.folder("keyring")
        let data = try bus.folder("keyring/data/keyrings")
        environment = ProcessInfo.processInfo.environment.merging(bus.environment) { $1 }.merging([
            "HOME": folder, "XDG_DATA_HOME": URL(filePath: data).deletingLastPathComponent().path,
            "XDG_RUNTIME_DIR": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder,
        ]) { $1 }
        let password = folder + "/password"
        try Data("master".utf8).write(to: URL(filePath: password))
        run = try Self.run(
            try #require(Self.program),
            ["--foreground", "--unlock", "--components=secrets", "--control-directory=\(folder)/control"],
            from: password,
            environment
        )
        Self.latest.update { [run] in $0 = run }
        let isThere = try Polling.wait {
            let looking = try tool(["lookup", "no", "such"])
            return looking.status == 1 && looking.errors.isEmpty
        }
        try #require(isThere, "\(run.errors)")
    }

    deinit {
        run.send(SIGKILL)
        run.wait()
    }

    /// Locks it, as a person does at the desktop.
    func lock() throws {
        let (name, service) = ("org.freedesktop.secrets", "/org/freedesktop/secrets")
        let run = try Self.run(
            try #require(Program.path("dbus-send")),
            [
                "--session", "--print-reply", "--dest=\(name)", service, "org.freedesktop.Secret.Service.Lock",
                "array:objpath:\(service)/aliases/default",
            ],
            from: "/dev/null",
            environment
        )
        try #require(run.wait() == 0, "\(run.errors)")
    }

    /// A run of libsecret's tool, to its end.
    func tool(_ arguments: [String], says: String = "") throws -> ProgramRun {
        let input = folder + "/input"
        try Data(says.utf8).write(to: URL(filePath: input))
        let run = try Self.run(try #require(Self.toolPath), arguments, from: input, environment)
        run.wait()
        return run
    }

    private static func run(
        _ program: String,
        _ arguments: [String],
        from input: String,
        _ environment: [String: String]
    ) throws -> ProgramRun {
        let script = ["-c", "input=$1; shift; exec \"$0\" \"$@\" <\"$input\"", program, input]
        return try ProgramRun("/bin/sh", script + arguments, environment: environment)
    }
}

/// Runs a test again in which gnome-keyring has ended by itself, three times in all: now and then GLib traps in it.
private struct WhileKeyringRuns: TestTrait, SuiteTrait, TestScoping {
    var isRecursive: Bool { true }

    private static let attempts = 3

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        for attempt in 1...Self.attempts {
            let hasEnded = Atomic(false)
            try await withKnownIssue("gnome-keyring has ended by itself", isIntermittent: true) {
                try await function()
            } matching: { _ in
                guard attempt < Self.attempts, let words = KeyringRun.lastWords else { return false }
                print("gnome-keyring has ended by itself: \(words)")
                hasEnded.store(true, ordering: .relaxed)
                return true
            }
            guard hasEnded.load(ordering: .relaxed) else { return }
        }
    }
}
