import Foundation
import Glibc
import LocalMessaging
import SharedCore
import TestSupport
import Testing

/// A real process killed at each fault point, each time that it comes there, and what is left afterwards.
@Suite(.serialized, .timeLimit(.minutes(5)), .tags(.realtime), .onSteadyMachine, .hasWitnesses)
struct CoreFaultRealTimeTests {
    /// What a process does when it is killed.
    enum Scenario {
        /// A push with nobody running: it becomes the core, fetches, shows, acknowledges.
        case push
        /// A push whose message cannot be shown.
        case refusal
        /// A reply with nobody running.
        case action
        /// A main alone.
        case main
        /// A main that takes the place of an executor in order, by force, and the executor that is asked.
        case asking, forcing, asked
        /// A core for calls alone, and one that takes the place of an executor.
        case calling, callAsking
        /// A main that changes settings, and one that imports files.
        case settings, importing
    }

    /// Where each point is reached.
    static let table: [(point: FaultPoint, scenarios: [Scenario])] = [
        (.beforeCreate, [.push, .main]), (.afterCreate, [.push, .main]),
        (.afterMainLock, [.main, .asking]), (.afterCallsLock, [.calling, .callAsking]),
        (.afterWriterLock, [.push, .main, .asking, .calling, .callAsking]),
        (.beforeUnlock, [.push, .main, .asked, .calling]), (.afterUnlock, [.push, .main, .asked, .calling]),
        (.beforeEpoch, [.push, .main, .asking, .calling]), (.afterEpoch, [.push, .main, .asking, .calling]),
        (.beforeEnd, [.push, .main, .asked, .calling]), (.afterEnd, [.push, .main, .asked, .calling]),
        (.beforeFence, [.forcing]), (.afterFence, [.forcing]),
        (.beforeInsert, [.push, .main]), (.afterInsert, [.push, .main]),
        (.beforeSend, [.push, .main]), (.afterSend, [.push, .main]),
        (.beforeClaim, [.push]), (.afterClaim, [.push]),
        (.beforePresent, [.push]), (.afterPresent, [.push]),
        (.beforeAcknowledge, [.push]), (.afterAcknowledge, [.push]),
        (.beforeRelease, [.refusal]), (.afterRelease, [.refusal]),
        (.beforeAction, [.action]), (.afterAction, [.action]),
        (.beforeRequest, [.asking, .callAsking]), (.beforeReply, [.asked]),
        (.afterReply, [.asking, .callAsking]),
        (.beforeSetting, [.settings]), (.afterSetting, [.settings]),
        (.beforeImport, [.importing]), (.afterImport, [.importing]),
        (.beforeImportRename, [.importing]), (.afterImportRename, [.importing]),
    ]

    @Test func `every fault point has a scenario that kills a process there`() {
        #expect(Self.table.map(\.point.rawValue).sorted() == FaultPoint.allCases.map(\.rawValue).sorted())
        #expect(Self.table.allSatisfy { !$0.scenarios.isEmpty })
    }

    /// The places of a scenario; every third where the compiler does not optimise.
    static func points(_ scenario: Scenario) -> [FaultPoint] {
        thorough(table.filter { $0.scenarios.contains(scenario) }.map(\.point), each: 3)
    }

    /// Kills at the first time, the second, and so on, until the place is not reached any more; at the first time alone
    /// where the compiler does not optimise.
    ///
    /// `body` runs the process that kills itself in a new group, and tells whether it died at that place.
    private func eachTime(at point: FaultPoint, _ body: (Fault) throws -> Bool) throws {
        let most = thorough(10, quick: 2)
        var hit = 1
        while hit < most, try body(Fault(point: point, hit: hit)) { hit += 1 }
        #expect(hit > 1, "no process came to \(point)")
        #expect(hit < 10, "\(point) is reached without end")
    }

    // MARK: Pushes

    /// The next one shows the message, and says that it may be the second time when, and only when, it may be.
    @Test(arguments: points(.push))
    func `killed at any place, a message is neither lost nor shown twice unmarked`(_ point: FaultPoint) throws {
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
            let first = try processes.notify("a", fault: fault)
            guard first.died(at: fault) else {
                #expect(try first.shown()?["text"] as? String == "text of a")
                return false
            }
            // Who comes next may die at the same place, too.
            var shown = try [first.shown(), processes.notify("a", fault: fault).shown()]
            let last = try processes.notify("a")
            try shown.append(last.shown())
            let texts = shown.compactMap(\.self).filter { $0["text"] is String }
            #expect(!texts.isEmpty)
            #expect(texts.allSatisfy { $0["text"] as? String == "text of a" })
            #expect(texts.dropFirst().allSatisfy { $0["repeated"] as? Bool == true }, "\(fault): \(texts)")
            #expect(last.status == 0, "\(last.errors)")
            try processes.expectEnd(acknowledged: 1)
            return true
        }
    }

    @Test(arguments: points(.refusal))
    func `a message given back unshown is new to the next, and repeated when the giving back failed`(
        _ point: FaultPoint
    ) throws {
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
            let refusing = try processes.peer("refuse", "a", fault: fault)
            guard refusing.died(at: fault) else {
                #expect(refusing.output == "refused\n")
                return false
            }
            let shown = try #require(try processes.notify("a").shown())
            #expect(shown["text"] as? String == "text of a")
            #expect(shown["repeated"] as? Bool == (point == .beforeRelease))
            try processes.expectEnd(acknowledged: 1)
            return true
        }
    }

    @Test(arguments: points(.action))
    func `an action is performed once it is queued, wherever the core that performs it is killed`(
        _ point: FaultPoint
    ) throws {
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses(messages: [])
            guard try processes.act("a", "--reply", "first", fault: fault).died(at: fault) else { return false }
            let isQueued = try !processes.contents { try await $0.actions() }.isEmpty
            // Only before the first commit it is nowhere.
            let wasPerformed = processes.performed.contains("first")
            #expect(isQueued || wasPerformed || (point == .beforeAction && fault.hit == 1), "\(fault)")
            #expect(try processes.act("a", "--reply", "second").wait() == 0)
            for text in ["second"] + (isQueued ? ["first"] : []) {
                #expect(processes.performed.components(separatedBy: "\"\(text)\"").count == 2, "\(fault): \(text)")
            }
            #expect(try processes.contents { try await $0.actions() }.isEmpty)
            try processes.expectEnd(acknowledged: 0)
            return true
        }
    }

    // MARK: A main

    @Test(arguments: points(.main))
    func `a main killed at any place is followed by the next, with all messages`(_ point: FaultPoint) throws {
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses(messages: ["a", "b"].map { CoreProcesses.message($0) })
            let main = try processes.main(fault: fault)
            main.wait { ["a", "b"].allSatisfy { main.output.contains("\"text of \($0)\"") } }
            main.interrupt()
            guard main.died(at: fault) else { return false }
            try processes.expectMain(handsOver: ["a", "b"])
            return true
        }
    }

    /// The executor's place is not lost with the main that asked for it.
    @Test(arguments: points(.asking))
    func `an executor is the core again when the main that asks for its place is killed`(_ point: FaultPoint) throws {
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses(messages: [
                CoreProcesses.message("never", delay: 60_000), CoreProcesses.message("b"),
            ])
            let executor = try processes.notify("never")
            #expect(try processes.reaches(.executor))
            let main = try processes.main(fault: fault)
            main.wait { main.output.contains("running") }
            main.interrupt()
            guard main.died(at: fault) else {
                executor.killAtOnce()
                return false
            }
            #expect(try processes.isOwned(by: executor))
            #expect(try processes.notify("b").shown()?["text"] as? String == "text of b")
            executor.killAtOnce()
            try processes.expectMain(handsOver: [])
            return true
        }
    }

    @Test(arguments: points(.asked))
    func `an executor killed while it gives way leaves its place to the main`(_ point: FaultPoint) throws {
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses(messages: [
                CoreProcesses.message("never", delay: 60_000), CoreProcesses.message("b"),
            ])
            let executor = try processes.notify("never", deadline: 20, fault: fault)
            #expect(try processes.reaches(.executor))
            let main = try processes.main()
            #expect(main.printed("running"), "\(main.errors)")
            // One that is still there waits for the main. Every point is met once, however long that takes.
            let isKilled = !executor.isRunning || executor.dies(within: fault.hit == 1 ? 20 : 0.5)
            if isKilled { #expect(executor.died(at: fault), "\(executor.errors)") } else { executor.killAtOnce() }
            #expect(try processes.notify("b").shown()?["text"] as? String == "text of b")
            main.interrupt()
            #expect(main.wait() == 0)
            try processes.expectEnd(acknowledged: 1)
            return isKilled
        }
    }

    @Test(arguments: points(.forcing))
    func `a main killed while it takes over by force is followed by the next`(_ point: FaultPoint) throws {
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses(messages: [
                CoreProcesses.message("never", delay: 60_000), CoreProcesses.message("b"),
            ])
            let executor = try processes.notify("never")
            #expect(try processes.reaches(.executor))
            executor.signal(SIGSTOP)
            let main = try processes.peer("main", "100", fault: fault)
            let isKilled = main.dies(within: fault.hit == 1 ? 20 : 1)
            if isKilled { #expect(main.died(at: fault), "\(main.errors)") } else { main.killAtOnce() }
            // Fenced or not, it gives way when it is asked.
            executor.signal(SIGCONT)
            try processes.expectMain(handsOver: ["b"], insteadOf: executor)
            return isKilled
        }
    }

    // MARK: A core for calls

    @Test(arguments: points(.calling))
    func `a core for calls killed at any place is followed by the next, with all messages`(_ point: FaultPoint) throws {
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
            guard try processes.peer("call", fault: fault).died(at: fault) else { return false }
            // Its place is free for one of its kind, and for a main.
            let next = try processes.peer("call")
            #expect(next.wait() == 0 && next.output == "ended\n", "\(next.errors)")
            try processes.expectMain(handsOver: ["a"])
            return true
        }
    }

    @Test(arguments: points(.callAsking))
    func `an executor is the core again when the core for calls that asks for its place is killed`(
        _ point: FaultPoint
    ) throws {
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses(messages: [
                CoreProcesses.message("never", delay: 60_000), CoreProcesses.message("b"),
            ])
            let executor = try processes.notify("never")
            #expect(try processes.reaches(.executor))
            let isKilled = try processes.peer("call", fault: fault).died(at: fault)
            #expect(try processes.isOwned(by: executor))
            #expect(try processes.notify("b").shown()?["text"] as? String == "text of b")
            executor.killAtOnce()
            try processes.expectMain(handsOver: [])
            return isKilled
        }
    }

    /// As it is asked for the first time, and as it is asked again.
    @Test(arguments: [1, 2])
    func `a core killed during its call leaves its place to the main that waits`(hit: Int) throws {
        let fault = Fault(point: .beforeReply, hit: hit)
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
        let talking = try processes.peer("talk", fault: fault)
        #expect(talking.printed("talking"), "\(talking.errors)")
        let main = try processes.main()
        #expect(talking.died(at: fault), "\(talking.errors)")
        #expect(main.printed("running"), "\(main.errors)")
        main.interrupt()
        #expect(main.wait() == 0)
        try processes.expectMain(handsOver: ["a"])
    }

    @Test(arguments: points(.settings))
    func `of the settings those that were committed are kept, each whole`(_ point: FaultPoint) throws {
        let (a, b) = (StoredAccount(address: "sip:a@example.org"), StoredAccount(address: "sip:b@example.org"))
        // After none, one, ... of the peer's changes, the last of which changes nothing.
        let rings = [nil, "first", "second", "second", "second", "second", "second"]
        let accounts = [[], [], [], [a], [a, b], [b], [b]]
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses()
            guard try processes.peer("settings", fault: fault).died(at: fault) else { return false }
            let done = point == .beforeSetting ? fault.hit - 1 : fault.hit
            #expect(try processes.contents { try await $0.setting("ring", as: String.self) } == rings[done])
            #expect(try processes.contents { try await $0.accounts() } == accounts[done])
            #expect(try processes.contents { try await $0.settingsVersion() } == min(done, 5))
            #expect(try processes.peer("settings").wait() == 0)
            #expect(try processes.contents { try await $0.setting("ring", as: String.self) } == "second")
            #expect(try processes.contents { try await $0.accounts() } == [b])
            try processes.expectEnd(acknowledged: 0)
            return true
        }
    }

    @Test(arguments: points(.importing))
    func `an import killed at any place is finished by the next`(_ point: FaultPoint) throws {
        let text = String(repeating: "contact\n", count: 50_000)
        try eachTime(at: point) { fault in
            let processes = try CoreProcesses()
            let old = processes.scratch.file("old")
            for name in ["config/rc", "data/friends.db", "downloads/2024/1.jpg"] {
                let file = URL(fileURLWithPath: "\(old)/\(name)")
                let folder = file.deletingLastPathComponent()
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
                try Data(text.utf8).write(to: file)
            }
            guard try processes.peer("import", old, fault: fault).died(at: fault) else { return false }
            let names = ["config/rc", "data/friends.db", "downloads/2024/1.jpg"]
            // Whatever has a name is complete.
            for name in names {
                let copy = try? String(contentsOfFile: "\(processes.group)/\(name)", encoding: .utf8)
                #expect(copy == nil || copy == text)
            }
            let next = try processes.peer("import", old)
            #expect(next.wait() == 0, "\(next.errors)")
            for directory in [processes.group, old] {
                for name in names {
                    #expect(try String(contentsOfFile: "\(directory)/\(name)", encoding: .utf8) == text)
                }
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: "\(processes.group)/.import").isEmpty)
            try processes.expectEnd(acknowledged: 0)
            return true
        }
    }
}

extension CoreProcesses {
    /// What `read` finds in the group's store.
    fileprivate func contents<Value: Sendable>(
        _ read: @escaping @Sendable (SharedStore) async throws -> Value
    ) throws -> Value {
        let store = try SharedStore(group: container)
        return try #require(Answer.of { try await read(store) } as Value?)
    }

    /// Waits until a process runs the core.
    fileprivate func isOwned(by run: ToolRun) throws -> Bool {
        try Polling.wait {
            let status = try contents { try await $0.status() }
            return status.state == .executor && status.owner?.pid == run.processIdentifier
        }
    }

    /// Nothing runs, nothing waits, and so many messages were shown.
    fileprivate func expectEnd(acknowledged: Int) throws {
        for byte in CoreLock.Byte.allCases { #expect(try CoreLock(group: container).tryLock(byte)) }
        let counts = try contents { try await $0.counts() }
        #expect(counts.pending == 0)
        #expect(counts.acknowledged == acknowledged)
        let drafts = try FileManager.default.contentsOfDirectory(atPath: "\(group)/database")
        #expect(drafts.allSatisfy { ["shared.sqlite", "shared.sqlite-wal", "shared.sqlite-shm"].contains($0) })
    }

    /// A main starts, hands these messages over, and ends in order.
    fileprivate func expectMain(handsOver callIDs: [String], insteadOf executor: ToolRun? = nil) throws {
        let before = try contents { try await $0.counts().acknowledged }
        let main = try main()
        #expect(main.printed("running"), "\(main.errors)")
        executor?.killAtOnce()
        for callID in callIDs { #expect(try notify(callID).shown()?["text"] as? String == "text of \(callID)") }
        main.interrupt()
        #expect(main.wait() == 0)
        try expectEnd(acknowledged: before + callIDs.count)
    }
}

extension ToolRun {
    /// Waits for its end for so many seconds; whether it came.
    fileprivate func dies(within seconds: Double) -> Bool { ends(within: .seconds(seconds)) }
}
