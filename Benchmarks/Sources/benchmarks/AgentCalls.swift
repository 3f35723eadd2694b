import AgentSockets
import CMeasure
import EngineBenchmarks
import Foundation
import Glibc

@testable import MediaEngine

/// What calls with an agent cost, over loopback both to the agent and to the far side, in real time.
enum AgentCalls {
    /// Beside the number that is asked for.
    private static let most = 300

    static func measure(_ options: Options) async throws -> [Figure] {
        var figures: [Figure] = []
        for count in options.calls == most ? [most] : [options.calls, most] {
            figures += try await measure(options, count)
        }
        return figures
    }

    private static func measure(_ options: Options, _ count: Int) async throws -> [Figure] {
        var (bare, runs) = (Double.infinity, [Run]())
        for _ in 0..<options.repetitions {
            bare = min(bare, try await run(count, options.seconds, hasAgents: false).cpu)
            runs.append(try await run(count, options.seconds, hasAgents: true))
        }
        guard let best = runs.min(by: { $0.cpu < $1.cpu }) else { return [] }
        let (call, without) = (best.cpu / Double(count), bare / Double(count))
        let times = "\(Report.number(1e6 * call)) / \(Report.number(1e6 * without)) us/call-s with and without"
        func all(_ value: KeyPath<Run, Int>) -> String {
            "all runs " + runs.map { "\($0[keyPath: value])" }.joined(separator: " ")
        }
        let title = "agent-calls: N=\(count)"
        return [
            Figure("\(title), calls with an agent that one core carries", 1 / call, "", .atLeast(300), note: times),
            Figure(
                "\(title), a message more than without agents",
                1e6 * (best.cpu - bare) / best.messages,
                "us",
                .atMost(30),
                note: "\(Report.number(best.messages / Double(count))) messages/call-s"
            ),
            // In whole percents: the last of both is under way.
            Figure("\(title), sound carried of that due", (100 * best.share).rounded(), "%", .atLeast(100)),
            Figure("\(title), gaps heard", Double(best.gaps), "", .count(0), note: all(\.gaps)),
            Figure("\(title), pieces skipped", Double(best.skipped), "", .count(0), note: all(\.skipped)),
            Figure("\(title), ms lost", Double(best.lost), "", .count(0), note: all(\.lost)),
            Figure("\(title), late ticks", Double(best.lateTicks), "", note: "of \(100 * options.seconds)"),
        ]
    }

    /// What a run has cost and carried; of a second where nothing else is said.
    private struct Run {
        var cpu = 0.0
        /// Both ways, of all calls.
        var messages = 0.0
        /// Of what was due, the way that has carried less.
        var share = 0.0
        // In all.
        var gaps = 0
        var skipped = 0
        var lost = 0
        var lateTicks = 0
    }

    private static func run(_ count: Int, _ seconds: Int, hasAgents: Bool) async throws -> Run {
        let peer = try AgentPeer.start()
        defer { peer.stop() }
        let engine = try CallEngine(CallEngineConfiguration())
        var lines: [AgentLine] = []
        let address = try AgentAddress(peer.address("/speech"))
        for number in 0..<(hasAgents ? count : 0) {
            lines.append(try await .open(to: address, AgentCall(callID: "CA\(number)")))
        }
        _ = try await engine.makeCalls((0..<count).map { call($0, with: hasAgents ? lines[$0] : nil, to: peer) })
        try await Task.sleep(for: .seconds(2))
        let before = (lines.map(\.report), engine.tickStatistics.lateCount)
        let (cpu, start) = (measure_process_cpu(), measure_now())
        try await Task.sleep(for: .seconds(seconds))
        let (spent, wall) = (Double(measure_process_cpu() - cpu) / 1e9, Double(measure_now() - start) / 1e9)
        var run = Run(cpu: spent / wall, lateTicks: engine.tickStatistics.lateCount - before.1)
        let after = lines.map(\.report)
        for line in lines { await line.end() }
        await engine.shutDown()
        guard hasAgents else { return run }
        func carried(_ value: KeyPath<AgentReport, Duration>) -> Double {
            zip(before.0, after).reduce(0) { $0 + ($1.1[keyPath: value] - $1.0[keyPath: value]) / .seconds(1) }
        }
        let (heard, played) = (carried(\.heard), carried(\.played))
        run.messages = (heard / 0.02 + played / 0.04) / wall
        run.share = min(heard, played) / (wall * Double(count))
        for report in after {
            run.gaps += report.gaps
            run.skipped += report.skipped
            run.lost += Int(report.lost / .milliseconds(1))
        }
        guard after.allSatisfy({ $0.malformed == 0 && $0.pauses == 0 }) else {
            throw Options.Wrong(description: "an agent was not understood, or paused")
        }
        return run
    }

    /// A call of PCMU to the far side in the peer.
    fileprivate static func call(_ number: Int, with line: AgentLine?, to peer: AgentPeer) -> CallConfiguration {
        var call = CallConfiguration(network: .udp(local: .loopback(port: 0)))
        call.name = "call \(number)"
        call.agreement.codec = "PCMU"
        call.agreement.remote = .loopback(port: peer.farSides)
        call.source = line.map { .stream($0.voice) } ?? .silence
        call.sink = line.map { .stream($0.ears) } ?? .none
        return call
    }
}

/// What lines to agents leave behind, 10,000 one after another.
enum AgentConnections {
    private static let count = 10_000
    private static let warmUp = 500
    /// After how many lines one is in a call; the others would wait for nothing else.
    private static let callInterval = 50

    static func measure(_ options: Options) async throws -> [Figure] {
        let peer = try AgentPeer.start()
        defer { peer.stop() }
        let engine = try CallEngine(CallEngineConfiguration())
        for number in 0..<warmUp { try await visit(peer, number, engine) }
        let (before, start) = (try await remains(), measure_now())
        for number in 0..<count { try await visit(peer, number, engine) }
        let (time, after) = (Double(measure_now() - start) / 1e9, try await remains())
        await engine.shutDown()
        let heap = Double(after.heap - before.heap) / 1024
        return [
            Figure(
                "agent-connections: resident memory after \(count) more",
                Double(after.memory - before.memory),
                "KiB",
                .atMost(1024),
                note: "\(before.memory) KiB before; \(Int(time)) s"
            ),
            // Where others have run before in this process, what they gave back would hide it from resident memory.
            Figure("agent-connections: heap in use after \(count) more", heap, "KiB", .atMost(1024)),
            Figure(
                "agent-connections: descriptors left",
                Double(after.descriptors - before.descriptors),
                "",
                .count(0),
                note: "\(before.descriptors) before"
            ),
        ]
    }

    private static func remains() async throws -> (memory: Int64, heap: Int64, descriptors: Int) {
        // Threads of a call that has just ended.
        try await Task.sleep(for: .milliseconds(200))
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        return (measure_memory(getpid(), "VmRSS"), measure_heap(), descriptors)
    }

    /// A line from its beginning to its end: for the call and each of two keys the agent says sound, a mark and a key.
    private static func visit(_ peer: AgentPeer, _ number: Int, _ engine: CallEngine) async throws {
        let isCall = number % callInterval == 0
        let address = try AgentAddress(peer.address("/answers"))
        let line = try await AgentLine.open(to: address, AgentCall(callID: "CA\(number)"))
        let call = isCall ? try await engine.makeCall(AgentCalls.call(number, with: line, to: peer)) : nil
        var (keys, failure) = (0, AgentError?.none)
        for await event in line.events {
            switch event {
            case .press where keys < 2:
                keys += 1
                if let digit = DTMFDigit("5") { line.press(digit) }
            case .press where keys == 2:
                keys += 1
                if isCall { try await Task.sleep(for: .milliseconds(100)) }
                await line.end()
            case .ended(let error): failure = error
            default: break
            }
        }
        try await call?.end()
        if let failure { throw failure }
        let report = line.report
        guard keys == 3, report.malformed == 0, !isCall || report.heard > .zero && report.played > .zero else {
            throw Options.Wrong(description: "line \(number) has carried \(report) and \(keys) keys")
        }
    }
}
