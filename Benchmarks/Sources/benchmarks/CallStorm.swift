import CMeasure
import EngineBenchmarks
import Foundation
import Glibc
import LocalMessaging
import SharedCore

@testable import CallBasics

/// Pushes of calls by SIP, each a process of the tool that starts the core where none runs, with two call screens.
///
/// Pushes, screens and cores are killed at random moments. What a screen was told of, it is told the end of.
enum CallStorm {
    private static let pushCount = 10
    private static let killShare = 0.3
    private static let killSpan = 0.0..<0.4
    private static let ownerKillCount = 2
    private static let ownerKillSpan = 0.0..<1.2
    /// After so many attempts a push is not killed any more.
    private static let killedAttempts = 3
    private static let mostAttempts = 8
    /// How long until the last call has ended: a push without its INVITE is given up after 15 s.
    private static let patience = Duration.seconds(30)

    private enum Blow {
        case kill(Int)
        case killOwner
        /// The screen is killed, and the next one takes its place.
        case killScreen
    }

    /// What a round brought.
    private struct Outcome {
        /// Calls that a screen was told of.
        var reported = 0
        /// Those of which a screen that lives was not told the end.
        var unended = 0
        var kills = 0
        var coreStarts = 0
        var atOnce = 0
        var failures: [String] = []

        static func += (sum: inout Outcome, round: Outcome) {
            sum.reported += round.reported
            sum.unended += round.unended
            sum.kills += round.kills
            sum.coreStarts += round.coreStarts
            sum.atOnce = max(sum.atOnce, round.atOnce)
            sum.failures += round.failures
        }
    }

    static func measure(_ options: Options) async throws -> [Figure] {
        guard let tool = try options.tool(for: "call-storm") else { return [] }
        for role in ["MEDIA_ENGINE_AU", "MEDIA_ENGINE_AQ"] { setenv(role, "null", 1) }
        var generator = SeededGenerator(seed: 2)
        var sum = Outcome()
        for _ in 0..<options.rounds {
            sum += try await Cores.inDirectory { try await round(tool, &generator, in: $0) }
        }
        guard sum.failures.isEmpty else { throw Options.Wrong(description: sum.failures[0]) }
        let note =
            "\(options.rounds) rounds, \(options.rounds * pushCount) pushes, \(sum.reported) calls shown, "
            + "\(sum.kills) kills, \(sum.coreStarts) core starts"
        return [
            Figure("call-storm: cores at once, most", Double(sum.atOnce), "", .count(1)),
            Figure(
                "call-storm: calls shown, and not told to have ended",
                Double(sum.unended),
                "",
                .count(0),
                note: note
            ),
        ]
    }

    private static func round(
        _ tool: String,
        _ generator: inout SeededGenerator,
        in directory: String
    ) async throws -> Outcome {
        let group = try await PushedGroup(tool, in: directory)
        defer { group.server.end() }
        var watch = try CoreWatch(of: group.path, by: tool, in: directory)
        let lock = try CoreLock(group: GroupContainer(directory: group.path))
        try await group.register()
        var outcome = Outcome()

        var screens: [ToolProcess] = []
        func addScreen() throws {
            let words = ["provider", "serve", "--accept-after", "0.2", "--wait", "600", "--json"] + group.options
            screens.append(try ToolProcess(tool, words, output: "\(directory)/screen.\(screens.count)"))
        }
        defer { for screen in screens { screen.end() } }
        for _ in 0..<2 { try addScreen() }
        let callers = try (0..<pushCount).map { try group.call("caller.\($0)", seconds: 0.3) }
        defer { for caller in callers { caller.end() } }
        try await group.server.printed(#""event":"parked""#, times: pushCount)
        // A core goes on when the push that has started it has ended.
        let core =
            (["exec", tool, "core", "main", "--calls", "--json"] + group.options + PushedGroup.place)
            .joined(separator: " ") + " >>\(directory)/cores 2>&1"
        var waiting: [String] = []
        for (number, callID) in group.server.callIDs(of: "parked").enumerated() {
            let payload = "\(directory)/payload.\(number)"
            try #"{"call-id":"\#(callID)"}"#.write(toFile: payload, atomically: false, encoding: .utf8)
            waiting.append(payload)
        }
        for attempt in 0..<mostAttempts where !waiting.isEmpty {
            let runs = try waiting.enumerated().map { number, payload in
                let words = ["sip", "push", "--payload", payload, "--launch", core, "--json"] + group.options
                return (payload, try ToolProcess(tool, words, output: "\(directory)/push.\(attempt).\(number)"))
            }
            let plan = attempt < killedAttempts ? plan(runs.count, &generator) : StormPlan()
            try await plan.strike { blow in
                switch blow {
                case .kill(let index): if runs[index].1.kill() { outcome.kills += 1 }
                case .killOwner:
                    // No child of this process: the lock says who it is, and holds it until its end.
                    guard let owner = try lock.owner()?.pid else { return }
                    let time = measure_now()
                    guard kill(owner, SIGKILL) == 0 else { return }
                    watch.note(owner, killedAt: time)
                    outcome.kills += 1
                case .killScreen:
                    if screens.last?.kill() == true { outcome.kills += 1 }
                    try addScreen()
                }
            }
            // One whose core was killed meanwhile has failed.
            waiting = runs.filter { $0.1.wait() != 0 }.map(\.0)
        }
        if !waiting.isEmpty {
            outcome.failures.append("a push of a call did not end in order in \(mostAttempts) attempts")
        }

        let living = screens.filter { $0.killedAt == nil }
        let limit = ContinuousClock.now + patience
        while living.contains(where: { !ShownCalls($0.lines).open.isEmpty }), .now < limit {
            try await Task.sleep(for: .milliseconds(20))
        }
        outcome.unended = living.map { ShownCalls($0.lines).open.count }.reduce(0, +)
        outcome.reported = screens.reduce(into: Set<String>()) { $0.formUnion(ShownCalls($1.lines).reported) }.count
        while let owner = try lock.owner()?.pid {
            kill(owner, SIGTERM)
            try await Task.sleep(for: .milliseconds(20))
        }
        let status = try GroupStatus(tool, group.path, in: directory)
        outcome.coreStarts = status.epoch - watch.formerEpoch
        outcome.atOnce = try watch.end(epoch: status.epoch).mostAtOnce
        return outcome
    }

    private static func plan(_ count: Int, _ generator: inout SeededGenerator) -> StormPlan<Blow> {
        var plan = StormPlan<Blow>()
        plan.add(toSomeOf: count, share: killShare, within: killSpan, &generator) { .kill($0) }
        for _ in 0..<ownerKillCount { plan.add(.killOwner, within: ownerKillSpan, &generator) }
        plan.add(.killScreen, within: ownerKillSpan, &generator)
        return plan
    }
}

/// The calls of which a screen has printed.
private struct ShownCalls {
    private(set) var reported: Set<String> = []
    /// Those whose end it has not printed.
    private(set) var open: Set<String> = []

    private struct Line: Decodable {
        struct Call: Decodable { let uuid: String }

        let event: String
        let uuid: String?
        let calls: [Call]?
        let action: String?
        let result: String?
    }

    init(_ lines: [String]) {
        for line in lines.compactMap({ try? JSONDecoder().decode(Line.self, from: Data($0.utf8)) }) {
            switch (line.event, line.uuid) {
            case ("snapshot", _): open = Set((line.calls ?? []).map(\.uuid))
            case ("incoming", let uuid?): open.insert(uuid)
            case ("ended", let uuid?): open.remove(uuid)
            case ("acted", let uuid?) where line.action == "end" && line.result == "fulfilled": open.remove(uuid)
            default: break
            }
            reported.formUnion(open)
        }
    }
}

extension ToolProcess {
    /// The Call-IDs that a server's lines of an event have, in order.
    fileprivate func callIDs(of event: String) -> [String] {
        struct Line: Decodable { let event: String, callID: String? }
        return lines.compactMap { try? JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
            .compactMap { $0.event == event ? $0.callID : nil }
    }
}
