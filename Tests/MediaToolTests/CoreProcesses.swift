import Foundation
import Glibc
import LocalMessaging
import MediaEngine
import SharedCore
import TestSupport
import Testing

/// A group, a mailbox server in a process of its own, and runs of the tool's cores: real processes, as a push makes them.
final class CoreProcesses {
    let scratch: Scratch
    let group: String
    private let mailbox: ToolRun?
    private let port: Int

    /// A group without a mailbox: nobody listens at its port.
    init() throws {
        scratch = try Scratch()
        group = scratch.file("group")
        mailbox = nil
        port = 1
    }

    init(messages: [String]) throws {
        scratch = try Scratch()
        group = scratch.file("group")
        try Data(messages.map { $0 + "\n" }.joined().utf8).write(to: URL(fileURLWithPath: scratch.file("m.jsonl")))
        let mailbox = try ToolRun(["core", "mailbox", "--port", "0", "--messages", scratch.file("m.jsonl"), "--json"])
        try #require(mailbox.printed("\"port\""), "\(mailbox.errors)")
        let line = try #require(mailbox.output.split(separator: "\n").first)
        let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        port = try #require(event?["port"] as? Int)
        self.mailbox = mailbox
    }

    deinit {
        holdMailbox(false)
        mailbox?.interrupt()
        mailbox?.wait()
    }

    static func message(_ callID: String, delay: Int = 0) -> String {
        #"{"callID":"\#(callID)","from":"anna","text":"text of \#(callID)","delayMs":\#(delay)}"#
    }

    func notify(_ callID: String, deadline: Double = 30, fault: Fault? = nil) throws -> ToolRun {
        try tool(["notify", "--call-id", callID, "--deadline", "\(deadline)", "--json"], fault)
    }

    func notify(room: String, deadline: Double = 30) throws -> ToolRun {
        try tool(["notify", "--room", room, "--deadline", "\(deadline)", "--json"], nil)
    }

    func main(_ arguments: String..., fault: Fault? = nil) throws -> ToolRun {
        try tool(["main", "--json"] + arguments, fault)
    }

    func act(_ callID: String, _ arguments: String..., fault: Fault? = nil) throws -> ToolRun {
        try tool(["act", "--call-id", callID] + arguments, fault)
    }

    /// A run of `Tests/SharedCorePeer`; one of root's that may not read anywhere lacks root's right to ignore modes.
    func peer(
        _ command: String,
        _ argument: String...,
        fault: Fault? = nil,
        mayReadAnywhere: Bool = true
    ) throws -> ToolRun {
        let path = URL(fileURLWithPath: ToolRun.path).deletingLastPathComponent().appendingPathComponent(
            "SharedCorePeer"
        )
        var command = [path.path, command, group, "\(port)"] + argument
        if !mayReadAnywhere, geteuid() == 0 {
            command = ["/usr/bin/setpriv", "--bounding-set", "-dac_override,-dac_read_search"] + command
        }
        return try ToolRun(
            Array(command.dropFirst()),
            program: command[0],
            environment: environment(fault)
        )
    }

    private func tool(_ arguments: [String], _ fault: Fault?) throws -> ToolRun {
        let group = ["--group", group, "--mailbox", "127.0.0.1:\(port)"]
        return try ToolRun(
            ["core", arguments[0]] + group + arguments.dropFirst(),
            environment: environment(fault)
        )
    }

    private func environment(_ fault: Fault?) -> [String: String] {
        (fault?.environment ?? [:]).merging(["SHARED_CORE_WITNESS": scratch.file("witness")]) { $1 }
    }

    /// What the cores noted of their beginnings and ends; `deaths` are the moments at which processes were killed.
    func witness(deaths: [Int32: Int64]) throws -> CoreWitnessLog {
        let text = try String(contentsOfFile: scratch.file("witness"), encoding: .utf8)
        return try #require(CoreWitnessLog(text, deaths: deaths), "\(text)")
    }

    /// The process of the mailbox.
    var mailboxProcess: Int32 { mailbox?.processIdentifier ?? 0 }

    /// Has the mailbox answer nobody, or everybody again: whoever asks it waits, however fast the machine is.
    func holdMailbox(_ isHeld: Bool) { mailbox?.signal(isHeld ? SIGSTOP : SIGCONT) }

    /// Stops the process where it is in no transaction: in one it would keep the store from all others.
    func stop(_ process: ToolRun) throws -> Bool {
        let store = try SharedStore(group: container, busyTimeout: .seconds(1))
        return Polling.wait {
            process.signal(SIGSTOP)
            // A transaction that would write, of an epoch that never was: refused, once nobody else is in one.
            let isRefused = Answer.of {
                do throws(StoreError) {
                    try await store.endEpoch(Epoch(rawValue: -1))
                    return true
                } catch {
                    return error.code != .busy
                }
            }
            if isRefused == true { return true }
            process.signal(SIGCONT)
            return false
        }
    }

    /// The group, opened by this process.
    var container: GroupContainer { get throws { try GroupContainer(directory: group) } }

    /// What the mailbox printed of actions.
    var performed: String { mailbox?.output ?? "" }

    func status() throws -> [String: Any] {
        try ToolRun.finished("core", "status", "--group", group, "--json").json()
    }

    /// Waits until the group is in `state`.
    func reaches(_ state: CoreState) throws -> Bool {
        let store = try SharedStore(group: container)
        return try Polling.wait { try Self.state(of: store) == state }
    }

    /// Waits until a process has begun to connect to the core that runs, if there is one.
    func isWaiting(_ run: ToolRun) -> Bool {
        let folder = "/proc/\(run.processIdentifier)/fd"
        return Polling.wait {
            let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return files.contains {
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
                return target?.hasPrefix("socket:") == true
            }
        }
    }

    private static func state(of store: SharedStore) throws -> CoreState {
        try #require(Answer.of { try await store.status().state })
    }
}

extension Trait where Self == ConditionTrait {
    /// Cores note when they begin and end, and end where a test wants them to.
    static var hasWitnesses: Self { .enabled(if: FaultPoint.areBuiltIn, "needs the trait FaultPoints") }
}

/// A place at which a process kills itself.
struct Fault: CustomStringConvertible {
    let point: FaultPoint
    var hit = 1

    var environment: [String: String] { ["SHARED_CORE_FAULT": description] }
    var description: String { "\(point.rawValue):\(hit)" }
}

/// A value that a task gives to a thread.
final class Answer<Value: Sendable>: @unchecked Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private var value: Value?

    /// What the task returned; nil when it failed.
    static func of(_ body: @escaping @Sendable () async throws -> Value) -> Value? {
        let answer = Answer()
        Task {
            answer.value = try? await body()
            answer.semaphore.signal()
        }
        answer.semaphore.wait()
        return answer.value
    }
}

extension ToolRun {
    /// How often each thread of a process went to sleep by itself until now.
    ///
    /// Source: proc_pid_status(5), voluntary_ctxt_switches.
    static func switches(of process: Int32) throws -> [String: Int] {
        var counts: [String: Int] = [:]
        for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task") {
            let path = "/proc/\(process)/task/\(thread)/status"
            // The thread may have ended by now.
            guard let status = try? String(contentsOfFile: path, encoding: .utf8) else { continue }
            let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
            counts[thread] = line?.split(separator: "\t").last.flatMap { Int($0) }
        }
        return counts
    }

    /// What a notification said; nil when its process was killed before.
    func shown() throws -> [String: Any]? {
        wait()
        return output.contains("\n") ? try json() : nil
    }

    /// Waits for its end; whether it was SIGKILL at this place, as the process said last.
    func died(at fault: Fault) -> Bool {
        wait()
        return isKilled && errors.hasSuffix("fault point \(fault)\n")
    }
}
