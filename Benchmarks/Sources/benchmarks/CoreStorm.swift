import CMeasure
import EngineBenchmarks
import Foundation
import Glibc
import LocalMessaging
import SharedCore

@testable import CallBasics

/// Pushes by the dozen, each a process of the tool, of which some are killed at random moments, the one that runs the core
/// above all, and sent again, until each has ended in order.
enum CoreStorm {
    private static let pushCount = 50
    /// The share of the processes that is killed, and within which time of their start.
    private static let killShare = 0.3
    private static let killSpan = 1.2
    /// How often in an attempt whoever runs the core at a random moment is killed, and within which time.
    private static let ownerKillCount = 2
    private static let ownerKillSpan = 0.5
    /// After so many attempts nothing is killed any more, so that a round ends.
    private static let killedAttempts = 6
    private static let mostAttempts = 20

    /// What a mailbox prints first.
    private struct Listening: Decodable { let port: Int }

    /// What a round brought.
    private struct Outcome {
        var lost = 0
        /// Messages shown more than once without being marked as repeated.
        var shownTwice = 0
        var repeated = 0
        var fallbacks = 0
        var kills = 0
        /// Kills of the process that ran the core, which `kills` does not count.
        var ownerKills = 0
        var coreStarts = 0
        /// The most cores that ran at one moment.
        var atOnce = 0
        /// Messages left unacknowledged at the end.
        var pending = 0
        var failures: [String] = []

        static func += (sum: inout Outcome, round: Outcome) {
            sum.lost += round.lost
            sum.shownTwice += round.shownTwice
            sum.repeated += round.repeated
            sum.fallbacks += round.fallbacks
            sum.kills += round.kills
            sum.ownerKills += round.ownerKills
            sum.coreStarts += round.coreStarts
            sum.atOnce = max(sum.atOnce, round.atOnce)
            sum.pending += round.pending
            sum.failures += round.failures
        }
    }

    static func measure(_ options: Options) async throws -> [Figure] {
        guard let tool = try options.tool(for: "storm") else { return [] }
        var generator = SeededGenerator(seed: 1)
        let calm = try await Cores.inDirectory { try await round(tool, isKilling: false, &generator, in: $0) }
        var sum = Outcome()
        for _ in 0..<options.rounds {
            sum += try await Cores.inDirectory { try await round(tool, isKilling: true, &generator, in: $0) }
        }
        guard sum.failures.isEmpty, calm.failures.isEmpty else {
            throw Options.Wrong(description: "a push failed: \((calm.failures + sum.failures)[0])")
        }
        sum.atOnce = max(sum.atOnce, calm.atOnce)
        let messages = options.rounds * pushCount
        let note =
            "\(options.rounds) rounds, \(messages) messages, \(sum.kills + sum.ownerKills) kills, "
            + "\(sum.ownerKills) of them of the core, \(sum.coreStarts) core starts"
        return [
            Figure(
                "storm: core starts for \(pushCount) pushes without kills",
                Double(calm.coreStarts),
                "",
                .count(1)
            ),
            Figure(
                "storm: cores at once, most",
                Double(sum.atOnce),
                "",
                .count(1),
                note: "by what each notes while it holds the lock, and by the moments of the kills"
            ),
            Figure("storm: messages lost", Double(sum.lost + sum.pending), "", .count(0), note: note),
            Figure(
                "storm: shown twice unmarked",
                Double(sum.shownTwice),
                "",
                .count(0),
                note: "\(sum.repeated) shown as repeated, \(sum.fallbacks) general texts"
            ),
        ]
    }

    private static func round(
        _ tool: String,
        isKilling: Bool,
        _ generator: inout SeededGenerator,
        in directory: String
    ) async throws -> Outcome {
        let callIDs = (0..<pushCount).map { "push-\($0)" }
        let posts = callIDs.map { callID in
            let delay = [0, 0, 0, 50, 200].randomElement(using: &generator) ?? 0
            return #"{"callID":"\#(callID)","from":"x","text":"text","delayMs":\#(delay)}"# + "\n"
        }
        try posts.joined().write(toFile: directory + "/posts.jsonl", atomically: false, encoding: .utf8)
        let mailbox = try ToolProcess(
            tool,
            ["core", "mailbox", "--port", "0", "--messages", directory + "/posts.jsonl", "--json"],
            output: directory + "/mailbox"
        )
        defer { mailbox.end() }
        let port = try await mailbox.firstLine(Listening.self).port
        let group = directory + "/group"
        let lock = try CoreLock(group: GroupContainer(directory: group))
        // Each process of the tool inherits it.
        let witness = directory + "/witness"
        setenv("SHARED_CORE_WITNESS", witness, 1)
        defer { unsetenv("SHARED_CORE_WITNESS") }

        var outcome = Outcome()
        var shown: [String: [Push]] = [:]
        var deaths: [Int32: Int64] = [:]
        var waiting = callIDs
        for attempt in 0..<mostAttempts where !waiting.isEmpty {
            var runs: [(callID: String, process: ToolProcess)] = []
            for callID in waiting {
                let arguments = [
                    "core", "notify", "--group", group, "--mailbox", "127.0.0.1:\(port)", "--call-id", callID,
                    "--deadline", "20", "--json",
                ]
                runs.append((callID, try ToolProcess(tool, arguments, output: "\(directory)/\(callID).\(attempt)")))
            }
            // Without an index it is whoever runs the core at that moment.
            var kills: [(at: Double, index: Int?)] = []
            if isKilling, attempt < killedAttempts {
                for index in runs.indices where Double.random(in: 0..<1, using: &generator) < killShare {
                    kills.append((Double.random(in: 0..<killSpan, using: &generator), index))
                }
                for _ in 0..<ownerKillCount {
                    kills.append((Double.random(in: 0..<ownerKillSpan, using: &generator), nil))
                }
            }
            let begin = ContinuousClock.now
            for (moment, index) in kills.sorted(by: { $0.at < $1.at }) {
                try await Task.sleep(until: begin + .seconds(moment), clock: .continuous)
                if let index {
                    if runs[index].process.kill() { outcome.kills += 1 }
                } else if let owner = try lock.owner()?.pid,
                    runs.contains(where: { $0.process.number == owner && $0.process.kill() })
                {
                    outcome.ownerKills += 1
                }
            }
            waiting = []
            for (callID, process) in runs {
                let status = process.wait()
                if let push = process.lines.last.flatMap(Push.init(line:)) { shown[callID, default: []].append(push) }
                if let death = process.killedAt { deaths[process.number] = death }
                if status == 0 { continue }
                waiting.append(callID)
                if status != -SIGKILL { outcome.failures.append("\(callID) ended with \(status)") }
            }
        }
        outcome.failures += waiting.map { "\($0) did not end in \(mostAttempts) attempts" }

        for callID in callIDs {
            let pushes = shown[callID] ?? []
            let texts = pushes.filter { $0.text != nil && $0.source != "fallback" }
            outcome.fallbacks += pushes.count { $0.source == "fallback" }
            outcome.repeated += texts.count { $0.repeated }
            if texts.isEmpty { outcome.lost += 1 }
            if texts.count(where: { !$0.repeated }) > 1 { outcome.shownTwice += 1 }
        }
        let status = try ToolProcess(
            tool,
            ["core", "status", "--group", group, "--json"],
            output: directory + "/status"
        )
        _ = status.wait()
        guard let state = status.lines.last.flatMap(GroupStatus.init(line:)) else {
            throw Options.Wrong(description: "core status printed nothing")
        }
        outcome.coreStarts = state.epoch
        outcome.pending = state.pending
        let notes = (try? String(contentsOfFile: witness, encoding: .utf8)) ?? ""
        guard let log = CoreWitnessLog(notes, deaths: deaths) else {
            throw Options.Wrong(description: "a core's note is torn:\n\(notes)")
        }
        outcome.atOnce = log.mostAtOnce
        if !log.doEpochsRise { outcome.failures.append("epochs do not rise: \(log.cores)") }
        // One that is killed may have begun its epoch and not yet noted it.
        if log.cores.count < state.epoch - outcome.kills - outcome.ownerKills || log.cores.isEmpty {
            outcome.failures.append("a core left no note: the tool needs the trait FaultPoints")
        }
        return outcome
    }
}

/// What `core notify` prints.
private struct Push: Decodable {
    let text: String?
    let source: String
    let repeated: Bool

    init?(line: String) {
        guard let push = try? JSONDecoder().decode(Self.self, from: Data(line.utf8)) else { return nil }
        self = push
    }
}

/// What `core status` prints.
private struct GroupStatus: Decodable {
    let epoch: Int
    let pending: Int

    init?(line: String) {
        guard let status = try? JSONDecoder().decode(Self.self, from: Data(line.utf8)) else { return nil }
        self = status
    }
}
