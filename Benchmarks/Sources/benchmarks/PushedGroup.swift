import EngineBenchmarks
import Foundation
import Glibc

/// A group of bob@example.test, who can be woken by pushes, and a server that keeps his texts and holds his calls.
struct PushedGroup {
    let path: String
    private let tool: String
    private let directory: String
    private let way: [String]
    let server: ToolProcess

    private struct Sent: Decodable { let callID: String }

    /// What every command has that is of the group.
    var options: [String] { ["--group", path] }
    /// Where a core of it is.
    static let place = ["--local", "127.0.0.1:0", "--transport", "udp"]

    init(_ tool: String, in directory: String) async throws {
        (self.tool, self.directory, path) = (tool, directory, directory + "/group")
        // Phones that can be woken are taken for asleep: their texts are kept at once.
        (server, way) = try await ToolProcess.server(tool, in: directory, "--push-log", directory + "/pushes")
        let account =
            ["sip", "account", "add", "--account", "sip:bob@example.test", "--push-team", "T", "--push-bundle", "b"]
            + ["--push-remote-token", "beef", "--push-voip-token", "c0ffee", "--group", path]
        guard try ToolProcess(tool, account + way, output: directory + "/account").wait() == 0 else {
            server.end()
            throw Options.Wrong(description: "the account was not added")
        }
    }

    /// Lets the server know where the group is woken: a core registers, and ends.
    func register() async throws {
        let main = try ToolProcess(
            tool,
            ["core", "main", "--json"] + options + Self.place,
            output: directory + "/first"
        )
        try await main.printed(#""event":"registered""#)
        main.terminate()
        _ = main.wait()
    }

    /// Sends somebody's text to the group, of which `sent` tells.
    func send(_ text: String, _ name: String) throws -> ToolProcess {
        let words = ["sip", "message", "sip:bob@example.test", text, "--json", "--local", "127.0.0.1:0"]
        return try ToolProcess(tool, words + way, output: "\(directory)/\(name)")
    }

    /// The Call-ID of a text, once the server has taken it.
    func sent(_ process: ToolProcess) async throws -> String {
        let callID = try await process.firstLine(Sent.self).callID
        guard process.wait() == 0 else { throw Options.Wrong(description: "a text was not sent") }
        return callID
    }

    /// Somebody calls the group.
    func call(_ name: String, seconds: Double) throws -> ToolProcess {
        let words = [
            "sip", "call", "sip:bob@example.test", "--seconds", "\(seconds)", "--local", "127.0.0.1:0", "--json",
        ]
        return try ToolProcess(tool, words + way, output: "\(directory)/\(name)")
    }
}

/// What each core of a group has noted while it held the lock, and when processes were killed.
struct CoreWatch {
    /// The last epoch before the first of these cores: accounts were added in it.
    let formerEpoch: Int
    private(set) var deaths: [Int32: Int64] = [:]
    private let file: String

    /// Each process of the tool that is started from now on notes its core in `directory`, until `end`.
    init(of group: String, by tool: String, in directory: String) throws {
        formerEpoch = try GroupStatus(tool, group, in: directory).epoch
        file = directory + "/witness"
        setenv("SHARED_CORE_WITNESS", file, 1)
    }

    mutating func note(_ process: ToolProcess) {
        if let death = process.killedAt { deaths[process.number] = death }
    }

    mutating func note(_ number: Int32, killedAt time: Int64) { deaths[number] = time }

    /// What the cores noted; no later ones may.
    ///
    /// - Throws: when a note is torn, a core left none, or epochs do not rise
    func end(epoch: Int) throws -> CoreWitnessLog {
        unsetenv("SHARED_CORE_WITNESS")
        let notes = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        guard let log = CoreWitnessLog(notes, deaths: deaths) else {
            throw Options.Wrong(description: "a core's note is torn:\n\(notes)")
        }
        guard log.doEpochsRise else { throw Options.Wrong(description: "epochs do not rise: \(log.cores)") }
        // One that is killed may have begun its epoch and not yet noted it.
        guard log.cores.count >= epoch - formerEpoch - deaths.count, !log.cores.isEmpty else {
            throw Options.Wrong(description: "a core left no note: the tool needs the trait FaultPoints")
        }
        return log
    }
}

/// What `core status` prints.
struct GroupStatus: Decodable {
    let epoch: Int
    let pending: Int

    init(_ tool: String, _ group: String, in directory: String) throws {
        let status = try ToolProcess(
            tool,
            ["core", "status", "--group", group, "--json"],
            output: directory + "/status"
        )
        _ = status.wait()
        guard let line = status.lines.last,
            let found = try? JSONDecoder().decode(Self.self, from: Data(line.utf8))
        else { throw Options.Wrong(description: "core status printed nothing") }
        self = found
    }
}
