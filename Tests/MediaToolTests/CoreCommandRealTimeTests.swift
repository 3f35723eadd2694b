import Foundation
import Glibc
import LocalMessaging
import MediaEngine
import SharedCore
import TestSupport
import Testing

/// The cores as processes.
@Suite(.serialized, .timeLimit(.minutes(5)), .tags(.realtime), .onSteadyMachine)
struct CoreCommandRealTimeTests {
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

    @Test func `to ask for the state of a group makes nothing`() throws {
        let scratch = try Scratch()
        let group = scratch.file("group")
        for isThere in [false, true] {
            if isThere { try #require(mkdir(group, 0o700) == 0) }
            let run = try ToolRun.finished("core", "status", "--group", group, "--json")
            #expect(run.status == 0, "\(run.errors)")
            #expect(try run.json()["state"] as? String == "free")
            #expect(try run.json()["pending"] as? Int == 0)
            #expect((access(group, F_OK) == 0) == isThere)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: group).isEmpty)
    }

    @Test func `a main that runs hands the message over`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
        processes.holdMailbox(true)
        let main = try processes.main()
        #expect(main.printed("running"))
        let waiting = try processes.notify("a")
        #expect(processes.isWaiting(waiting))
        processes.holdMailbox(false)
        let shown = try #require(try waiting.shown())
        #expect(shown["source"] as? String == "main")
        #expect(try processes.status()["epoch"] as? Int == 1)
        main.interrupt()
        #expect(main.wait() == 0)
        #expect(main.output.contains("\"stopped\""))
    }

    @Test func `a push of a chat room finds its invitation, or tells that it has not come`() throws {
        let room = "sip:tea@example.org"
        let processes = try CoreProcesses(messages: [#"{"room":"\#(room)","from":"anna","subject":"Tea"}"#])
        processes.holdMailbox(true)
        let late = try #require(try processes.notify(room: room, deadline: 0.3).shown())
        #expect(late["source"] as? String == "fallback" && late["from"] is NSNull && late["room"] as? String == room)
        processes.holdMailbox(false)
        let shown = try #require(try processes.notify(room: room).shown())
        #expect(shown["source"] as? String == "executor" && shown["from"] as? String == "anna", "\(shown)")
        #expect(shown["subject"] as? String == "Tea" && shown["waitMs"] is Double)

        // The payload of a push leads there, too, in a group with an account.
        let (group, payload) = (processes.group, processes.scratch.file("push.json"))
        let add = try ToolRun.finished("sip", "account", "add", "--group", group, "--account", "sip:bob@example.org")
        #expect(add.status == 0, "\(add.errors)")
        try #"{"aps":{"chat_room_addr":"\#(room)","call-id":"1"}}"#
            .write(toFile: payload, atomically: true, encoding: .utf8)
        let pushed = try ToolRun.finished("sip", "push", "--group", group, "--payload", payload, "--json")
        #expect(try pushed.json()["source"] as? String == "store", "\(pushed.errors)")
    }

    @Test func `a message that comes after the deadline gives the general text, and stays`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
        processes.holdMailbox(true)
        let late = try #require(try processes.notify("a", deadline: 0.3).shown())
        #expect(late["source"] as? String == "fallback")
        processes.holdMailbox(false)
        let shown = try #require(try processes.notify("a").shown())
        #expect(shown["text"] as? String == "text of a")
        #expect(shown["repeated"] as? Bool == false)
    }

    @Test(.hasWitnesses)
    func `a main takes over from an executor in order, from a stopped one by force, and its epoch is the later one`()
        throws
    {
        for isStopped in [false, true] {
            let processes = try CoreProcesses(messages: [CoreProcesses.message("a", delay: 60_000)])
            let executor = try processes.notify("a", deadline: 25)
            #expect(try processes.reaches(.executor))
            if isStopped { #expect(try processes.stop(executor)) }
            let main = try processes.main()
            #expect(main.printed("running"), "\(main.errors)")
            let status = try processes.status()
            #expect(status["state"] as? String == "main")
            // The executor's, the fence's when there was one, and the main's.
            #expect(status["epoch"] as? Int == (isStopped ? 3 : 2))
            // The kernel frees the lock before anybody hears of the end.
            #expect(isStopped ? executor.ends(within: .seconds(10)) : executor.isRunning)
            // Whoever was killed by the main ran at most until the main began.
            let begun = try processes.witness(deaths: [:]).cores
            #expect(begun.count == 2)
            let witness = try processes.witness(deaths: isStopped ? [executor.processIdentifier: begun[0].begin] : [:])
            #expect(witness.mostAtOnce == 1, "\(witness.cores)")
            #expect(witness.doEpochsRise)
            executor.signal(SIGKILL)
            main.interrupt()
            #expect(main.wait() == 0)
        }
    }

    @Test(.hasWitnesses) func `a main waits for the call of another process, but not for a stopped one`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
        let talking = try processes.peer("talk")
        #expect(talking.printed("talking"), "\(talking.errors)")
        let main = try processes.main()
        let shown = try #require(try processes.notify("a").shown())
        #expect(shown["text"] as? String == "text of a" && shown["source"] as? String == "store")
        let status = try processes.status()
        #expect(status["state"] as? String == "executor" && status["epoch"] as? Int == 1)
        #expect((status["owner"] as? [String: Any])?["role"] as? String == "call")
        // It is asked, and says that it stays.
        let lock = try CoreLock(group: processes.container)
        #expect(try Polling.wait { try lock.isHeldElsewhere(.main) })
        #expect(try processes.stop(talking))
        #expect(main.printed("running"), "\(main.errors)")
        // The kernel frees the lock before anybody hears of the end.
        #expect(talking.ends(within: .seconds(10)) && talking.isKilled)
        let begun = try processes.witness(deaths: [:]).cores
        let witness = try processes.witness(deaths: [talking.processIdentifier: begun[0].begin])
        #expect(witness.mostAtOnce == 1 && witness.doEpochsRise, "\(witness.cores)")
        main.interrupt()
        #expect(main.wait() == 0)
    }

    @Test(.hasWitnesses) func `Ctrl-C ends a push in order, and its message stays`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a", delay: 60_000)])
        let waiting = try processes.notify("a")
        #expect(try processes.reaches(.executor))
        waiting.interrupt()
        #expect(waiting.wait() == 1)
        #expect(waiting.errors.contains("Interrupted before anything was shown."))
        #expect(try processes.status()["state"] as? String == "free")
        // In order: the core noted its end.
        #expect(try processes.witness(deaths: [:]).cores.map { $0.end != nil } == [true])
    }

    @Test func `Ctrl-C ends an action in order, and the next core performs it`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
        processes.holdMailbox(true)
        let acting = try processes.act("a", "--reply", "late")
        #expect(try processes.reaches(.executor))
        acting.interrupt()
        #expect(acting.wait() == 1)
        processes.holdMailbox(false)
        #expect(acting.errors.contains("Interrupted. What was queued is performed by the next core."))
        #expect(try processes.status()["state"] as? String == "free")
        #expect(try processes.notify("a").wait() == 0)
        #expect(ProgramRun.wait { processes.performed.contains("late") })
    }

    /// Neither a timer nor a look at something wakes a process that waits.
    @Test func `a main and a mailbox that have nothing to do sleep until Ctrl-C`() throws {
        let processes = try CoreProcesses(messages: [])
        let main = try processes.main()
        #expect(main.printed("running"))
        for process in [main.processIdentifier, processes.mailboxProcess] {
            // What belongs to the start is over when a second goes by in which hardly anything happens.
            var fewest = Int.max
            for _ in 0..<10 where fewest > 5 {
                let before = try ToolRun.switches(of: process)
                pass(.seconds(1))
                let after = try ToolRun.switches(of: process)
                fewest = min(fewest, after.reduce(0) { $0 + $1.value - before[$1.key, default: 0] })
            }
            #expect(fewest <= 5, "woken \(fewest) times in a second")
        }
        main.interrupt()
        #expect(main.wait() == 0)
    }

    @Test func `when the owner is killed one who waits takes its place`() throws {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("b")])
        processes.holdMailbox(true)
        let first = try processes.notify("a")
        #expect(try processes.reaches(.executor))
        let second = try processes.notify("b")
        #expect(processes.isWaiting(second))
        first.signal(SIGKILL)
        processes.holdMailbox(false)
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

    @Test(.hasWitnesses) func `of mains that start at once exactly one runs`() throws {
        let processes = try CoreProcesses(messages: [])
        let mains = try (0..<5).map { _ in try processes.main() }
        #expect(ProgramRun.wait { mains.count { $0.isRunning } == 1 })
        let running = try #require(mains.first { $0.isRunning })
        #expect(running.printed("running"), "\(running.errors)")
        for refused in mains where refused !== running {
            #expect(refused.wait() == 1)
            #expect(refused.errors.contains("Another main core runs"))
        }
        running.interrupt()
        #expect(running.wait() == 0)
        #expect(try processes.witness(deaths: [:]).cores.count == 1)
    }

    @Test func `a source that may not be read is imported once it may`() throws {
        let processes = try CoreProcesses(messages: [])
        let scratch = try Scratch()
        let source = scratch.file("old/config")
        try FileManager.default.createDirectory(atPath: source, withIntermediateDirectories: true)
        try "[sip]".write(toFile: source + "/rc", atomically: true, encoding: .utf8)
        chmod(source, 0)
        let copy = processes.group + "/config/rc"
        for mode in [0, 0o700] as [mode_t] {
            chmod(source, mode)
            let run = try processes.peer("import", scratch.file("old"), mayReadAnywhere: false)
            #expect(run.wait() == 0, "\(run.errors)")
            #expect(FileManager.default.fileExists(atPath: copy) == (mode != 0))
        }
    }

    @Test func `a reply that no mailbox takes is refused before it is queued`() throws {
        let processes = try CoreProcesses(messages: [])
        let reply = String(repeating: "x", count: 70_000)
        let run = try processes.act("a", "--reply", reply)
        #expect(run.wait() == 1)
        #expect(run.errors.contains("is too long. A line may have 65536"), "\(run.errors)")
        #expect(try processes.status()["epoch"] as? Int == 0)
    }

    /// A main that is stopped keeps its place: whoever took it would write beside it when it goes on.
    @Test func `beside a main that is stopped a push ends in time, and the message comes when the main goes on`() throws
    {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
        processes.holdMailbox(true)
        let main = try processes.main()
        #expect(main.printed("running"))
        #expect(try processes.stop(main))
        processes.holdMailbox(false)
        let begin = ContinuousClock.now
        let late = try #require(try processes.notify("a", deadline: 1.5).shown())
        #expect(late["source"] as? String == "fallback")
        #expect(.now - begin < .seconds(15), "with the start of a process")
        let waiting = try processes.notify("a")
        #expect(processes.isWaiting(waiting))
        main.signal(SIGCONT)
        let shown = try #require(try waiting.shown())
        #expect(shown["text"] as? String == "text of a")
        #expect(shown["source"] as? String == "main")
        main.interrupt()
        #expect(main.wait() == 0)
        #expect(try processes.status()["epoch"] as? Int == 1)
    }

    @Test func `a database that another process keeps locked is named, and nothing of that process stays when it dies`()
        throws
    {
        let processes = try CoreProcesses(messages: [CoreProcesses.message("a")])
        let holder = try processes.peer("hold")
        #expect(holder.printed("holding"), "\(holder.errors)")
        let main = try processes.main()
        #expect(main.wait() == 1)
        #expect(main.errors.contains("stayed locked by another process"), "\(main.errors)")
        holder.killAtOnce()
        #expect(try processes.notify("a").shown()?["text"] as? String == "text of a")
        #expect(try processes.status()["acknowledged"] as? Int == 1)
    }

    @Test(.hasWitnesses) func `a storm of pushes with kills loses nothing, and shows nothing twice unmarked`() throws {
        var generator = SeededGenerator(seed: 7)
        for round in 0..<thorough(2, quick: 1) {
            let callIDs = (0..<12).map { "\(round)-\($0)" }
            let processes = try CoreProcesses(messages: callIDs.map { CoreProcesses.message($0) })
            var shown: [String: [Bool]] = [:]
            var waiting = callIDs
            var deaths: [Int32: Int64] = [:]
            while !waiting.isEmpty {
                let runs = try waiting.map { ($0, try processes.notify($0)) }
                for (_, run) in runs where Bool.random(using: &generator) {
                    pass(.microseconds(Int.random(in: 0...40_000, using: &generator)))
                    deaths[run.processIdentifier] = MonotonicClock.current.nanoseconds
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
            let witness = try processes.witness(deaths: deaths)
            #expect(witness.mostAtOnce == 1, "\(witness.cores)")
            #expect(witness.doEpochsRise, "\(witness.cores)")
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
