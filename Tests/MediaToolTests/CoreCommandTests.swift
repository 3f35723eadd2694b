import Foundation
import Glibc
import LocalMessaging
import MediaEngine
import SharedCore
import Testing

/// A group, a mailbox server in a process of its own, and runs of the tool's cores: real processes, as a push makes them.
private final class CoreProcesses {
    let scratch: Scratch
    let group: String
    private let mailbox: ToolRun
    private let port: Int

    init(messages: [String]) throws {
        scratch = try Scratch()
        group = scratch.file("group")
        try Data(messages.map { $0 + "\n" }.joined().utf8).write(to: URL(fileURLWithPath: scratch.file("m.jsonl")))
        mailbox = try ToolRun(["core", "mailbox", "--port", "0", "--messages", scratch.file("m.jsonl"), "--json"])
        try #require(mailbox.printed("\"port\""), "\(mailbox.errors)")
        let line = try #require(mailbox.output.split(separator: "\n").first)
        let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        port = try #require(event?["port"] as? Int)
    }

    deinit {
        mailbox.interrupt()
        mailbox.wait()
    }

    static func message(_ callID: String, delay: Int = 0) -> String {
        #"{"callID":"\#(callID)","from":"anna","text":"text of \#(callID)","delayMs":\#(delay)}"#
    }

    func notify(_ callID: String, deadline: Double = 30, fault: String? = nil) throws -> ToolRun {
        try ToolRun(
            [
                "core", "notify", "--group", group, "--mailbox", "127.0.0.1:\(port)", "--call-id", callID,
                "--deadline", "\(deadline)", "--json",
            ],
            environment: fault.map { ["SHARED_CORE_FAULT": $0] } ?? [:]
        )
    }

    func main(_ arguments: String..., fault: String? = nil) throws -> ToolRun {
        try ToolRun(
            ["core", "main", "--group", group, "--mailbox", "127.0.0.1:\(port)", "--json"] + arguments,
            environment: fault.map { ["SHARED_CORE_FAULT": $0] } ?? [:]
        )
    }

    func act(_ callID: String, _ arguments: String...) throws -> ToolRun {
        try ToolRun(
            ["core", "act", "--group", group, "--mailbox", "127.0.0.1:\(port)", "--call-id", callID] + arguments
        )
    }

    /// What the mailbox printed of actions.
    var performed: String { mailbox.output }

    func status() throws -> [String: Any] {
        try ToolRun.finished("core", "status", "--group", group, "--json").json()
    }

    /// Waits until the group is in `state`.
    func reaches(_ state: CoreState) throws -> Bool {
        let store = try SharedStore(directory: GroupContainer(directory: group).path)
        let lock = try CoreLock(directory: group)
        let end = Date().addingTimeInterval(20)
        while Date() < end {
            if try lock.owner() != nil || state == .free, try Self.state(of: store) == state { return true }
            usleep(1000)
        }
        return false
    }

    private static func state(of store: SharedStore) throws -> CoreState {
        let result = Answer<CoreState>()
        Task { result.set(try? await store.status().state) }
        return try #require(result.wait())
    }
}

/// A value that a task gives to a thread.
private final class Answer<Value: Sendable>: @unchecked Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private var value: Value?

    func set(_ value: Value?) {
        self.value = value
        semaphore.signal()
    }

    func wait() -> Value? {
        semaphore.wait()
        return value
    }
}

extension ToolRun {
    /// Waits until the output holds `text`.
    fileprivate func printed(_ text: String) -> Bool {
        let end = Date().addingTimeInterval(20)
        while Date() < end {
            if output.contains(text) { return true }
            usleep(1000)
        }
        return false
    }

    /// What a notification said; nil when its process was killed before.
    fileprivate func shown() throws -> [String: Any]? {
        wait()
        return output.contains("\n") ? try json() : nil
    }
}

/// The cores as processes.
@Suite(.tags(.realtime), .timeLimit(.minutes(5)), .serialized)
struct CoreCommandTests {
    @Test func `a push alone fetches its message, and the message is gone once it was shown`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
        let shown = try #require(try processes.notify("a").shown())
        #expect(shown["text"] as? String == "text of a")
        #expect(shown["source"] as? String == "executor")
        #expect(shown["repeated"] as? Bool == false)
        let status = try processes.status()
        #expect(status["state"] as? String == "free")
        #expect(status["pending"] as? Int == 0)
        #expect(status["acknowledged"] as? Int == 1)
    }

    @Test func `a main that runs hands the message over`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a", delay: 1000)])
        let main = try processes.main()
        #expect(main.printed("running"))
        let shown = try #require(try processes.notify("a").shown())
        #expect(shown["source"] as? String == "main")
        #expect(try processes.status()["epoch"] as? Int == 1)
        main.interrupt()
        #expect(main.wait() == 0)
        #expect(main.output.contains("\"stopped\""))
    }

    @Test func `a message that comes after the deadline gives the general text, and stays`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a", delay: 1500)])
        let late = try #require(try processes.notify("a", deadline: 0.3).shown())
        #expect(late["source"] as? String == "fallback")
        let shown = try #require(try processes.notify("a").shown())
        #expect(shown["text"] as? String == "text of a")
        #expect(shown["repeated"] as? Bool == false)
    }

    /// Whatever the place at which a process is killed: the next one shows the message, and says that it may be the
    /// second time when, and only when, it may be.
    @Test(arguments: FaultPoint.allCases)
    func `killed at any place, a message is neither lost nor shown twice unmarked`(_ point: FaultPoint) throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
        var shown: [[String: Any]] = []
        for hit in 1...3 {
            if let first = try processes.notify("a", fault: "\(point.rawValue):\(hit)").shown() { shown.append(first) }
        }
        if let last = try processes.notify("a").shown() { shown.append(last) }
        let texts = shown.filter { $0["text"] is String }
        #expect(!texts.isEmpty)
        #expect(texts.filter { $0["repeated"] as? Bool == false }.count <= 1, "\(texts)")
        let status = try processes.status()
        #expect(status["pending"] as? Int == 0)
        #expect(status["acknowledged"] as? Int == 1)
    }

    @Test
    func `a main takes over from an executor in order, from a stopped one by force, and its epoch is the later one`()
        throws
    {
        for isStopped in [false, true] {
            let processes = try CoreProcesses(messages: [CoreProcesses.message("a", delay: 60_000)])
            let executor = try processes.notify("a", deadline: 25)
            #expect(try processes.reaches(.executor))
            if isStopped { executor.signal(SIGSTOP) }
            let begin = Date()
            let main = try processes.main()
            #expect(main.printed("running"), "\(main.errors)")
            #expect(Date().timeIntervalSince(begin) < 3.5 + 1, "with the start of a process")
            let status = try processes.status()
            #expect(status["state"] as? String == "main")
            // The executor's, the fence's when there was one, and the main's.
            #expect(status["epoch"] as? Int == (isStopped ? 3 : 2))
            #expect(executor.isRunning != isStopped)
            executor.signal(SIGKILL)
            main.interrupt()
            #expect(main.wait() == 0)
        }
    }

    @Test func `when the owner is killed one who waits takes its place`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("b", delay: 2500)])
        let first = try processes.notify("a")
        #expect(try processes.reaches(.executor))
        let second = try processes.notify("b")
        usleep(500_000)
        first.signal(SIGKILL)
        let shown = try #require(try second.shown())
        #expect(shown["text"] as? String == "text of b")
        #expect(shown["source"] as? String == "executor")
        #expect(try processes.status()["epoch"] as? Int == 2)
    }

    @Test func `a reply is performed without a main, and by the main when one runs`() throws {
        let processes = try CoreProcesses(messages: [])
        #expect(try processes.act("a", "--reply", "alone").wait() == 0)
        #expect(try processes.status()["epoch"] as? Int == 1)
        let main = try processes.main()
        #expect(main.printed("running"))
        #expect(try processes.act("a", "--reply", "beside").wait() == 0)
        #expect(try processes.status()["epoch"] as? Int == 2)
        main.interrupt()
        main.wait()
        for text in ["alone", "beside"] { #expect(processes.performed.contains(text)) }
    }

    /// A main that is killed leaves nothing behind that keeps the next one, or a message, away.
    @Test(arguments: FaultPoint.allCases)
    func `a main killed at any place is followed by the next, with all messages`(_ point: FaultPoint) throws {
        let processes = try CoreProcesses(messages: (0..<3).map { CoreProcesses.message("\($0)") })
        for hit in 1...2 { try processes.main("--seconds", "0.3", fault: "\(point.rawValue):\(hit)").wait() }
        let main = try processes.main()
        #expect(main.printed("running"), "\(main.errors)")
        for callID in 0..<3 {
            #expect(try processes.notify("\(callID)").shown()?["text"] as? String == "text of \(callID)")
        }
        main.interrupt()
        #expect(main.wait() == 0)
        #expect(try processes.status()["acknowledged"] as? Int == 3)
    }

    @Test func `a second main is refused with the remedy`() throws {
        let processes = try CoreProcesses(messages: [])
        let main = try processes.main()
        #expect(main.printed("running"))
        let second = try processes.main()
        #expect(second.wait() == 1)
        #expect(second.errors.contains("Another main core runs"))
        main.interrupt()
        main.wait()
    }

    @Test func `a storm of pushes with kills loses nothing, and shows nothing twice unmarked`() throws {
        var generator = SeededGenerator(seed: 7)
        for round in 0..<2 {
            let callIDs = (0..<12).map { "\(round)-\($0)" }
            let processes = try CoreProcesses(messages: callIDs.map { CoreProcesses.message($0) })
            var shown: [String: [Bool]] = [:]
            var waiting = callIDs
            while !waiting.isEmpty {
                let runs = try waiting.map { ($0, try processes.notify($0)) }
                for (_, run) in runs where Bool.random(using: &generator) {
                    usleep(UInt32.random(in: 0...40_000, using: &generator))
                    run.signal(SIGKILL)
                }
                waiting = []
                for (callID, run) in runs {
                    if let said = try run.shown(), said["text"] is String {
                        shown[callID, default: []].append(said["repeated"] as? Bool ?? true)
                    }
                    if run.status != 0 { waiting.append(callID) }
                }
            }
            for callID in callIDs {
                let repeats = shown[callID] ?? []
                #expect(!repeats.isEmpty, "\(callID) was lost")
                #expect(repeats.filter { !$0 }.count <= 1, "\(callID) was shown twice")
            }
            #expect(try processes.status()["pending"] as? Int == 0)
        }
    }

    @Test(arguments: [
        ["core", "notify", "--group", "g", "--mailbox", "nowhere", "--call-id", "a"],
        ["core", "notify", "--group", "g", "--mailbox", "127.0.0.1:1", "--call-id", "a", "--deadline", "0"],
        ["core", "main", "--group", "g", "--mailbox", "127.0.0.1:1", "--seconds", "-1"],
        ["core", "status"],
    ])
    func `wrong usage ends with 64`(arguments: [String]) throws {
        let run = try ToolRun(arguments)
        #expect(run.wait() == 64)
    }

    @Test func `a group that others may write to is refused with the remedy`() throws {
        let scratch = try Scratch()
        chmod(scratch.path, 0o777)
        let run = try ToolRun.finished("core", "status", "--group", scratch.path)
        #expect(run.status == 1)
        #expect(run.errors.contains("chmod 700"))
    }
}
