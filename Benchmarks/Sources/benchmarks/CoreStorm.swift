import CMeasure
import EngineBenchmarks
import Foundation
import Glibc
import LocalMessaging
import SharedCore

@testable import CallBasics

/// Pushes of texts by SIP by the dozen, each a process of the tool, beside a main that comes and goes: some are killed at random
/// moments, the one that runs the core above all, and sent again, until each has ended in order.
enum CoreStorm {
    private static let pushCount = 50
    /// The share of the processes that is killed, and within which time of their start.
    private static let killShare = 0.3
    private static let killSpan = 0.0..<1.2
    /// How often in an attempt whoever runs the core at a random moment is killed, and within which time.
    private static let ownerKillCount = 2
    private static let ownerKillSpan = 0.0..<0.8
    /// When in an attempt a main starts, so that executors hand the core over, and when it goes, so that they have it again.
    private static let mainStart = 0.0..<0.6
    private static let mainEnd = 0.6..<1.5
    /// After so many attempts nothing is killed any more, so that a round ends.
    private static let killedAttempts = 6
    private static let mostAttempts = 20

    /// What happens at a random moment.
    private enum Blow {
        case kill(Int)
        /// Whoever runs the core at that moment.
        case killOwner
        case startMain
        case endMain(isKilled: Bool)
    }

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
        var mains = 0
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
            sum.mains += round.mains
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
            + "\(sum.ownerKills) of them of the core, \(sum.mains) mains, \(sum.coreStarts) core starts"
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
        let group = try await PushedGroup(tool, in: directory)
        defer { group.server.end() }
        var watch = try CoreWatch(of: group.path, by: tool, in: directory)
        let sending = try (0..<pushCount).map { try group.send("text \($0)", "sent.\($0)") }
        var callIDs: [String] = []
        for process in sending { callIDs.append(try await group.sent(process)) }
        let lock = try CoreLock(group: GroupContainer(directory: group.path))

        var outcome = Outcome()
        var shown: [String: [Push]] = [:]
        var waiting = callIDs
        for attempt in 0..<mostAttempts where !waiting.isEmpty {
            var runs: [(callID: String, process: ToolProcess)] = []
            for (number, callID) in waiting.enumerated() {
                let words = ["core", "notify", "--call-id", callID, "--deadline", "20", "--json"]
                let output = "\(directory)/push.\(attempt).\(number)"
                runs.append((callID, try ToolProcess(tool, words + group.options + PushedGroup.place, output: output)))
            }
            let isKilled = isKilling && attempt < killedAttempts
            var main: ToolProcess?
            let plan = isKilled ? plan(runs.count, &generator) : StormPlan()
            try await plan.strike { blow in
                switch blow {
                case .kill(let index): if runs[index].process.kill() { outcome.kills += 1 }
                case .killOwner:
                    guard let owner = try lock.owner()?.pid else { break }
                    let all = runs.map(\.process) + [main].compactMap(\.self)
                    if all.contains(where: { $0.number == owner && $0.kill() }) { outcome.ownerKills += 1 }
                case .startMain:
                    let words = ["core", "main", "--json"] + group.options + PushedGroup.place
                    main = try ToolProcess(tool, words, output: "\(directory)/main.\(attempt)")
                    outcome.mains += 1
                case .endMain(isKilled: true): if main?.kill() == true { outcome.kills += 1 }
                case .endMain(isKilled: false): main?.terminate()
                }
            }
            waiting = []
            for (callID, process) in runs {
                let status = process.wait()
                if let push = process.lines.last.flatMap(Push.init(line:)) { shown[callID, default: []].append(push) }
                watch.note(process)
                if status == 0 { continue }
                waiting.append(callID)
                if status != -SIGKILL { outcome.failures.append("\(callID) ended with \(status)") }
            }
            if let main {
                _ = main.wait()
                watch.note(main)
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
        let status = try GroupStatus(tool, group.path, in: directory)
        (outcome.coreStarts, outcome.pending) = (status.epoch - watch.formerEpoch, status.pending)
        outcome.atOnce = try watch.end(epoch: status.epoch).mostAtOnce
        return outcome
    }

    /// What happens in an attempt of so many pushes, and when.
    private static func plan(_ count: Int, _ generator: inout SeededGenerator) -> StormPlan<Blow> {
        var plan = StormPlan<Blow>()
        plan.add(toSomeOf: count, share: killShare, within: killSpan, &generator) { .kill($0) }
        for _ in 0..<ownerKillCount { plan.add(.killOwner, within: ownerKillSpan, &generator) }
        plan.add(.startMain, within: mainStart, &generator)
        plan.add(.endMain(isKilled: Bool.random(using: &generator)), within: mainEnd, &generator)
        return plan
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
