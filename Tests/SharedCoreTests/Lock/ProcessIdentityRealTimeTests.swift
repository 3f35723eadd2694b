import Foundation
import Glibc
import TestSupport
import Testing

@testable import SharedCore

@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct ProcessIdentityRealTimeTests {
    @Test func `this process is alive`() {
        #expect(ProcessIdentity.current.isAlive)
        #expect(ProcessIdentity.current.pid == getpid())
        #expect(ProcessIdentity(pid: getpid()) == .current)
    }

    @Test func `a process is alive until it ends`() throws {
        let child = try Child()
        #expect(child.identity.isAlive)
        child.end()
        #expect(!child.identity.isAlive)
        #expect(ProcessIdentity(pid: child.identity.pid) == nil)
    }

    @Test func `another process of the same number is not the same process`() throws {
        let child = try Child()
        let earlier = ProcessIdentity(pid: child.identity.pid, startTime: child.identity.startTime - 1)
        #expect(!earlier.isAlive)
        #expect(!earlier.signal(SIGKILL))
        #expect(child.identity.isAlive)
    }

    @Test func `a signal reaches the process`() throws {
        let child = try Child()
        #expect(child.identity.signal(SIGTERM))
        child.end()
        #expect(!child.identity.signal(SIGTERM))
    }

    @Test(arguments: [0, -1, 1 << 30] as [pid_t])
    func `a number that no process has is dead`(pid: pid_t) {
        #expect(!ProcessIdentity(pid: pid, startTime: 0).isAlive)
        #expect(!ProcessIdentity(pid: pid, startTime: 0).signal(0))
        #expect(ProcessIdentity(pid: pid) == nil)
    }

    @Test func `the number of a thread is no process`() async throws {
        let told = Watched<[pid_t: Bool]>([:])
        try await onThreads(1) { _ in
            // PROCESS/task/THREAD
            let link = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
            guard let number = link.split(separator: "/").last.flatMap({ pid_t($0) }) else { return }
            let isAlive = ProcessIdentity(pid: number, startTime: 1).isAlive
            told.update { $0[number] = isAlive }
        }
        let thread = try #require(told.value.first)
        #expect(thread.key != getpid())
        #expect(!thread.value)
    }

    @Test(
        arguments: [
            ("7 (sh) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1", 4711),
            ("7 (a) b (c)) R 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 18446744073709551615 1", UInt64.max),
            ("7 (sh) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 x 1", nil),
            ("7 (sh) S 1 7", nil), ("7 sh S", nil), ("", nil),
        ] as [(String, UInt64?)]
    )
    func `the start time is the 22nd field, whatever the name holds`(stat: String, expected: UInt64?) {
        #expect(ProcessIdentity.startTime(parsing: Array(stat.utf8)) == expected)
    }
}
