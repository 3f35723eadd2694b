import Foundation
import Glibc
import LocalMessaging
import TestSupport
import Testing

@testable import SharedCore

@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine) struct CoreLockRealTimeTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test(arguments: CoreLock.Byte.allCases)
    func `two locks of one process exclude each other`(byte: CoreLock.Byte) throws {
        let first = try CoreLock(group: directory.group)
        let second = try CoreLock(group: directory.group)
        #expect(try first.tryLock(byte))
        #expect(try !second.tryLock(byte))
        #expect(try second.isHeldElsewhere(byte))
        #expect(try !first.isHeldElsewhere(byte))
        #expect(first.holds(byte) && !second.holds(byte))
        first.unlock(byte)
        #expect(try second.tryLock(byte))
    }

    @Test func `the two bytes do not exclude each other`() throws {
        let executor = try CoreLock(group: directory.group)
        let main = try CoreLock(group: directory.group)
        #expect(try executor.tryLock(.writer))
        #expect(try main.tryLock(.main))
        #expect(try executor.isHeldElsewhere(.main) && main.isHeldElsewhere(.writer))
    }

    @Test func `one lock is not taken twice by its own core`() async throws {
        let lock = try CoreLock(group: directory.group)
        #expect(try lock.tryLock(.writer))
        #expect(try !lock.tryLock(.writer))
        let error = await #expect(throws: LockError.self) { try await lock.wait(for: .writer) }
        #expect(error?.code == .inUse)
        #expect(lock.holds(.writer))
    }

    @Test func `a lock that is let go of is free`() throws {
        let second = try CoreLock(group: directory.group)
        do {
            let first = try CoreLock(group: directory.group)
            #expect(try first.tryLock(.writer))
        }
        #expect(try second.tryLock(.writer))
    }

    @Test func `a waiting core gets the lock when its holder lets go`() async throws {
        let first = try CoreLock(group: directory.group)
        let second = try CoreLock(group: directory.group)
        var times: [Duration] = []
        for _ in 0..<50 {
            #expect(try first.tryLock(.writer))
            let clock = ContinuousClock()
            async let taken = { () async throws -> ContinuousClock.Instant in
                try await second.wait(for: .writer)
                return clock.now
            }()
            try await directory.untilLockIsWaitedFor()
            let start = clock.now
            first.unlock(.writer)
            times.append(try await taken - start)
            #expect(second.holds(.writer))
            second.unlock(.writer)
        }
        times.sort()
        print("lock handed over in one process: p50 \(times[25]), most \(times[49])")
        #expect(times[25] < .seconds(1))
    }

    @Test func `a cancelled wait ends, and takes nothing afterwards`() async throws {
        let holder = try CoreLock(group: directory.group)
        let waiter = try CoreLock(group: directory.group)
        #expect(try holder.tryLock(.writer))
        let wait = Task { try await waiter.wait(for: .writer) }
        try await directory.untilLockIsWaitedFor()
        wait.cancel()
        await #expect(throws: CancellationError.self) { try await wait.value }
        holder.unlock(.writer)
        #expect(!waiter.holds(.writer))
        #expect(try holder.tryLock(.writer))
        holder.unlock(.writer)
        // It can wait again.
        try await waiter.wait(for: .writer)
        #expect(waiter.holds(.writer))
    }

    @Test func `a wait of a cancelled task does not begin`() async throws {
        let lock = try CoreLock(group: directory.group)
        let wait = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await lock.wait(for: .main)
        }
        await #expect(throws: CancellationError.self) { try await wait.value }
        #expect(!lock.holds(.main))
        #expect(try CoreLock(group: directory.group).tryLock(.main))
    }

    /// A program may have a use of its own for each of them, before and after.
    @Test func `a wait needs and takes no signal of the program`() async throws {
        await #expect(processExitsWith: .success) {
            let signals = Array(__libc_current_sigrtmin()...__libc_current_sigrtmax())
            for isUsed in [false, true] {
                if isUsed { for number in signals { signal(number) { _ in exit(1) } } }
                let before = signals.map { Self.handler(of: $0) }
                let directory = try TemporaryDirectory()
                let holder = try CoreLock(group: directory.group)
                let waiter = try CoreLock(group: directory.group)
                #expect(try holder.tryLock(.writer))
                let cancelled = Task { try await waiter.wait(for: .writer) }
                try await directory.untilLockIsWaitedFor()
                cancelled.cancel()
                await #expect(throws: CancellationError.self) { try await cancelled.value }
                let waiting = Task { try await waiter.wait(for: .writer) }
                try await directory.untilLockIsWaitedFor()
                holder.unlock(.writer)
                try await waiting.value
                #expect(signals.map { Self.handler(of: $0) } == before)
            }
        }
    }

    private static func handler(of number: CInt) -> UInt {
        var present = sigaction()
        sigaction(number, nil, &present)
        return unsafeBitCast(present.__sigaction_handler.sa_handler, to: UInt.self)
    }

    @Test func `a cancelled wait leaves no thread in the kernel`() async throws {
        let holder = try CoreLock(group: directory.group)
        let waiter = try CoreLock(group: directory.group)
        #expect(try holder.tryLock(.writer))
        for _ in 0..<50 {
            let wait = Task { try await waiter.wait(for: .writer) }
            try await directory.untilLockIsWaitedFor()
            wait.cancel()
            await #expect(throws: CancellationError.self) { try await wait.value }
            #expect(try directory.lockWaiterCount() == 0)
        }
    }

    @Test func `a wait cancelled while the lock arrives either has it or leaves it`() async throws {
        let holder = try CoreLock(group: directory.group)
        let waiter = try CoreLock(group: directory.group)
        var taken = 0
        for round in 0..<300 {
            #expect(try holder.tryLock(.writer))
            let wait = Task { try await waiter.wait(for: .writer) }
            if round.isMultiple(of: 2) {
                try await directory.untilLockIsWaitedFor()
                holder.unlock(.writer)
                wait.cancel()
            } else {
                async let cancelled: Void = { wait.cancel() }()
                holder.unlock(.writer)
                await cancelled
            }
            switch await wait.result {
            case .success:
                taken += 1
                #expect(waiter.holds(.writer))
                #expect(try holder.isHeldElsewhere(.writer))
                waiter.unlock(.writer)
            case .failure(let error):
                #expect(error is CancellationError)
                #expect(!waiter.holds(.writer))
                #expect(try !holder.isHeldElsewhere(.writer))
            }
        }
        print("waits cancelled while the lock arrived: \(taken) of 300 had it")
    }

    @Test func `the owner is readable while it owns`() throws {
        let owner = try CoreLock(group: directory.group)
        let reader = try CoreLock(group: directory.group)
        let record = OwnerRecord(process: .current, role: .main, epoch: Epoch(rawValue: 3), why: "the application")
        #expect(try reader.owner() == nil)
        #expect(throws: LockError.self) { try owner.write(record) }
        #expect(try owner.tryLock(.writer))
        #expect(try reader.owner() == nil)
        try owner.write(record)
        #expect(try reader.owner() == record)
        #expect(try owner.owner() == record)
        owner.unlock(.writer)
        #expect(try reader.owner() == nil)
        #expect(directory.text(of: "core.lock")?.allSatisfy { $0 == " " } == true)
    }

    @Test func `a record of a dead owner is none`() throws {
        let owner = try CoreLock(group: directory.group)
        #expect(try owner.tryLock(.writer))
        try owner.write(OwnerRecord(process: .dead, role: .main, epoch: Epoch(rawValue: 1), why: ""))
        #expect(try owner.owner() == nil)
    }

    @Test func `a lock file of another program says nothing about an owner`() throws {
        try directory.write("{\"pid\": 1}\n", to: "core.lock")
        let lock = try CoreLock(group: directory.group)
        #expect(try lock.tryLock(.writer))
        #expect(try lock.owner() == nil)
    }

    @Test func `a link in place of the lock file is refused`() throws {
        try directory.write("", to: "elsewhere")
        symlink(directory.path + "/elsewhere", directory.path + "/core.lock")
        let error = #expect(throws: LockError.self) { try CoreLock(group: directory.group) }
        #expect(error?.code == .foreign)
    }

    @Test func `a pipe in place of the lock file is refused`() throws {
        mkfifo(directory.path + "/core.lock", 0o600)
        let error = #expect(throws: LockError.self) { try CoreLock(group: directory.group) }
        #expect(error?.code == .foreign)
    }

    @Test func `a directory that was removed is named`() throws {
        let group = try GroupContainer(directory: directory.path + "/none")
        rmdir(group.path)
        let error = #expect(throws: LockError.self) { try CoreLock(group: group) }
        #expect(error?.message.contains(directory.path + "/none/core.lock") == true)
    }

    /// Whoever opens the group by its name gets another lock.
    @Test func `the lock of a group that was moved away is not taken`() throws {
        let group = try GroupContainer(directory: directory.path + "/group")
        let lock = try CoreLock(group: group)
        rename(group.path, directory.path + "/elsewhere")
        let error = #expect(throws: LockError.self) { try lock.tryLock(.writer) }
        #expect(error?.code == .replaced)
    }

    @Test func `a lock file that was replaced is not taken`() throws {
        let lock = try CoreLock(group: directory.group)
        unlink(lock.path)
        _ = try CoreLock(group: directory.group)
        let error = #expect(throws: LockError.self) { try lock.tryLock(.writer) }
        #expect(error?.code == .replaced)
        #expect(!lock.holds(.writer))
    }

    @Test func `the death of a holder hands the lock over at once`() async throws {
        let path = directory.path
        let parent = try CoreLock(group: GroupContainer(directory: path))
        #expect(try parent.tryLock(.main))
        async let killed = #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let lock = try CoreLock(group: GroupContainer(directory: path))
            #expect(try lock.tryLock(.writer))
            try lock.write(OwnerRecord(process: .current, role: .executor, epoch: Epoch(rawValue: 1), why: "test"))
            // Lives until the parent waits for WRITER and lets go of MAIN.
            try await lock.wait(for: .main)
            var now = timespec()
            clock_gettime(CLOCK_MONOTONIC, &now)
            try Data("\(now.tv_sec * 1_000_000_000 + now.tv_nsec)".utf8).write(to: URL(fileURLWithPath: path + "/time"))
            kill(getpid(), SIGKILL)
        }
        #expect(try await Polling.eventually { try parent.owner() != nil })
        let child = try #require(try parent.owner())
        #expect(child.role == .executor && child.process.isAlive)
        async let taken = { () async throws -> Int in
            try await parent.wait(for: .writer)
            var now = timespec()
            clock_gettime(CLOCK_MONOTONIC, &now)
            return now.tv_sec * 1_000_000_000 + now.tv_nsec
        }()
        try await directory.untilLockIsWaitedFor()
        parent.unlock(.main)
        let end = try await taken
        _ = await killed
        let start = try #require(directory.text(of: "time").flatMap { Int($0) })
        print("lock handed over by the death of its holder: \((end - start) / 1000) us from the kill")
        #expect(end - start < 2_000_000_000)
        #expect(try parent.owner() == nil)
        #expect(!child.process.isAlive)
    }
}

extension TemporaryDirectory {
    /// Until somebody sleeps in the kernel for a lock of this directory's group.
    fileprivate func untilLockIsWaitedFor() async throws {
        let isAwaited = try await Polling.eventually { try lockWaiterCount() > 0 }
        try #require(isAwaited)
    }

    /// How many sleep in the kernel for a lock of this directory's group.
    fileprivate func lockWaiterCount() throws -> Int {
        var status = stat()
        try #require(stat(path + "/core.lock", &status) == 0)
        return try String(contentsOfFile: "/proc/locks", encoding: .utf8)
            .split(separator: "\n")
            .count { $0.contains("-> OFDLCK") && $0.contains(":\(status.st_ino) ") }
    }
}
