import Foundation
import Glibc
import LocalMessaging
import TestSupport
import Testing

@testable import SharedCore

/// Cores for which the system has no descriptor, no room, or no permission left.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine)
struct ResourceExhaustionRealTimeTests {
    @Test func `without descriptors lock, store and core say so, and work once there are some`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            let group = try GroupContainer(directory: path)
            let server = ScriptedService.Server()
            server.put(.sample("a"))
            let core = try ExecutorCore(group: group, service: ScriptedService(server))
            _ = MessagingExecutor.shared
            // What is made once in a process: threads of the pool and of connections, and the timer, by waiting twice. Each second
            // libdispatch counts its threads in /proc, and ends a process that has no descriptor for that: it has just done so.
            var looks = 0
            let hasCounted = await Polling.eventually {
                looks += 1
                return looks > 2 && ResourceExhaustionRealTimeTests.timeToNextCount() > .milliseconds(600)
            }
            #expect(hasCounted)
            let before = ResourceExhaustionRealTimeTests.openCount()
            let taken = ResourceExhaustionRealTimeTests.takeAllDescriptors()

            let lockError = #expect(throws: LockError.self) { try CoreLock(group: group) }
            #expect(lockError?.code == .system)
            #expect(lockError?.message.contains("ulimit -n") == true)
            let storeError = #expect(throws: StoreError.self) { try SharedStore(group: group) }
            #expect(storeError?.message.contains("ulimit -n") == true, "\(storeError?.message ?? "")")
            let error = await #expect(throws: (any Error).self) { try await core.newMessage(callID: "a") }
            #expect("\(error ?? CancellationError())".contains("ulimit -n"), "\(String(describing: error))")
            #expect(await !core.isRunning)

            for descriptor in taken { close(descriptor) }
            #expect(ResourceExhaustionRealTimeTests.openCount() <= before)
            #expect(try CoreLock(group: group).tryLock(.writer))
            guard case .message(let claim, .executor) = try await core.newMessage(callID: "a") else {
                Issue.record("it was lost")
                return
            }
            #expect(!claim.isRepeated)
            try await core.acknowledge(claim)
            await core.stop()
            #expect(try await core.store.counts() == MessageCounts(pending: 0, acknowledged: 1))
        }
    }

    @Test(.enabled(if: Mount.isPossible, "needs the right to mount"))
    func `a main on a full disk says so, and starts when there is room`() async throws {
        let directory = try TemporaryDirectory()
        let mount = try Mount(directory.path, options: "size=1m")
        let group = try GroupContainer(directory: directory.path + "/group")
        let server = ScriptedService.Server()
        server.put(.sample("a"))
        do {
            let main = try MainCore(group: group, service: ScriptedService(server))
            let ballast = directory.path + "/ballast"
            let descriptor = open(ballast, O_WRONLY | O_CREAT, 0o600)
            let page = [UInt8](repeating: 1, count: 4096)
            while write(descriptor, page, page.count) > 0 {}
            close(descriptor)
            let error = await #expect(throws: (any Error).self) { try await main.start() }
            #expect(
                "\(error ?? CancellationError())".contains("No space left on device"),
                "\(String(describing: error))"
            )
            let lock = try CoreLock(group: group)
            for byte in CoreLock.Byte.allCases { #expect(try !lock.isHeldElsewhere(byte)) }
            unlink(ballast)
            try await main.start()
            try await server.state.wait { $0.messages.isEmpty }
            #expect(try await main.store.message(callID: "a") != nil)
            await main.stop()
        }
        mount.end()
    }

    @Test(.enabled(if: Mount.isPossible || geteuid() != 0, "needs the right to mount"))
    func `in a read-only group a core is refused with the remedy`() async throws {
        let directory = try TemporaryDirectory()
        let mount = Mount.isPossible ? try Mount(directory.path, options: "size=1m") : nil
        let group = try GroupContainer(directory: directory.path + "/group")
        if let mount { try mount.makeReadOnly() } else { chmod(group.path, 0o500) }
        let error = #expect(throws: LockError.self) {
            try MainCore(group: group, service: ScriptedService(ScriptedService.Server()))
        }
        #expect(error?.code == .readOnly)
        #expect(error?.message.contains("A core needs a group directory that this user may write to.") == true)
        chmod(group.path, 0o700)
        mount?.end()
    }

    /// The number of open descriptors, the one of the listing not among them.
    private static func openCount() -> Int {
        ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 1) - 1
    }

    /// When libdispatch counts its threads next, as the kernel tells of its timer; those of tasks are by another clock.
    ///
    /// Zero while it counts, and before it has begun to.
    private static func timeToNextCount() -> Duration {
        let folder = "/proc/self/fdinfo/"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names {
            guard let text = try? String(contentsOfFile: folder + name, encoding: .utf8),
                // CLOCK_MONOTONIC, set, and not gone off.
                let match = text.firstMatch(of: /clockid: 1\nticks: 0\n[\s\S]*it_value: \((\d+), (\d+)\)/),
                let seconds = Int64(match.1), let nanoseconds = Int64(match.2)
            else { continue }
            return .seconds(seconds) + .nanoseconds(nanoseconds)
        }
        return .zero
    }

    /// Takes every descriptor that this process may still have.
    private static func takeAllDescriptors() -> [CInt] {
        var limit = rlimit(rlim_cur: 128, rlim_max: 128)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        var taken: [CInt] = []
        while case let descriptor = dup(0), descriptor >= 0 { taken.append(descriptor) }
        return taken
    }
}
