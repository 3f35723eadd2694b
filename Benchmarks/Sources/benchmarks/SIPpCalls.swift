import CMeasure
import CallBasics
import EngineBenchmarks
import Foundation
import Glibc

@testable import SIP
@testable import SIPTransport

/// Calls with SIPp over UDP on 127.0.0.1: how many in a second, none of them failed, and nothing sent twice.
///
/// SIPp has a processor of its own, and so has this side's event loop.
enum SIPpCalls {
    /// Calls of a run.
    private static let callCount = 20_000
    /// Own calls that are under way at once.
    private static let window = 32

    private struct Run {
        var failureCount = 0
        var repeatCount = 0
        var seconds = 0.0
        var cpuSeconds = 0.0
    }

    static func measure(_ options: Options) async throws -> [Figure] {
        let places: [String] = ["/usr/bin/sipp", "/usr/local/bin/sipp"]
        guard let program = places.first(where: { access($0, X_OK) == 0 }) else {
            if options.only.contains("sipp") { throw Options.Wrong(description: "needs sipp (Debian: sip-tester)") }
            return []
        }
        let (calling, called) = (try await callers(program), try await callees(program))
        // Its rate is 3,000: what is called by it can come to no more.
        return figures("UAC", calling, .atLeast(3000)) + figures("UAS", called, .atLeast(2910))
    }

    private static func figures(_ role: String, _ run: Run, _ limit: Figure.Limit) -> [Figure] {
        [
            Figure(
                "sipp: calls over UDP as \(role)",
                Double(callCount) / run.seconds,
                "/s",
                limit,
                note: "\(callCount) calls, \(Report.number(run.cpuSeconds * 1e6 / Double(callCount))) us CPU each"
            ),
            Figure("sipp: failed as \(role)", Double(run.failureCount), "", .count(0)),
            Figure("sipp: sent again as \(role)", Double(run.repeatCount), "", .count(0)),
        ]
    }

    private static func endpoint() throws -> SIPEndpoint<UserAgent> {
        var configuration = AgentConfiguration(identity: NameAddress(try SIPURI("sip:bench@127.0.0.1")))
        configuration.ringingPerSource = .max
        var limits = TransactionTable.Limits()
        limits.perSource = limits.received
        let agent = UserAgent(configuration, seed: .random(in: .min ... .max), transactionLimits: limits)
        return SIPEndpoint(agent) { _ in .failure }
    }

    /// Runs all calls: `begin` makes the first happen, `take` does what an event asks for.
    private static func run(
        _ endpoint: SIPEndpoint<UserAgent>,
        begin: () async throws -> Void,
        take: (AgentEvent) async throws -> Void
    ) async throws -> Run {
        var (run, ended) = (Run(), 0)
        let (start, cpu) = (measure_now(), measure_process_cpu())
        try await begin()
        for await event in endpoint.events {
            if case .ended(_, let end) = event {
                if end.cause != .hungUp { run.failureCount += 1 }
                ended += 1
            }
            if ended == callCount { break }
            try await take(event)
        }
        run.seconds = Double(measure_now() - start) / 1e9
        run.cpuSeconds = Double(measure_process_cpu() - cpu) / 1e9
        run.repeatCount = await endpoint.perform { agent, _ in agent.repeatCount }
        await endpoint.close()
        return run
    }

    /// This side calls SIPp: 180, 200, ACK, BYE.
    private static func callers(_ program: String) async throws -> Run {
        try await Cores.inDirectory { directory in
            let port = UInt16.random(in: 20_000..<30_000)
            let words = ["-sn", "uas", "-i", "127.0.0.1", "-p", "\(port)", "-nostdin"]
            let sipp = try ToolProcess(program, words, output: directory + "/sipp")
            defer { sipp.end() }
            try await waitUntilTaken(port)
            let endpoint = try endpoint()
            let own = try await endpoint.open(at: .loopback(port: 0), [.udp])
            let uri = try SIPURI("sip:service@127.0.0.1:\(port)")
            let wishes = UserAgent.CallWishes(session: SIPPair<UserAgent>.session(own))
            var begun = 0
            func call() async throws {
                guard begun < callCount else { return }
                begun += 1
                _ = try await endpoint.perform { agent, now in try agent.call(uri, wishes, at: now) }
            }
            return try await run(endpoint) {
                for _ in 0..<window { try await call() }
            } take: { event in
                switch event {
                case .established(let handle): await endpoint.perform { $0.hangUp(handle, at: $1) }
                case .ended: try await call()
                default: break
                }
            }
        }
    }

    /// SIPp calls this side, at a steady rate.
    private static func callees(_ program: String) async throws -> Run {
        try await Cores.inDirectory { directory in
            let endpoint = try endpoint()
            let own = try await endpoint.open(at: .loopback(port: 0), [.udp])
            let session = SIPPair<UserAgent>.session(own)
            let words = [
                "\(own)", "-sn", "uac", "-i", "127.0.0.1", "-m", "\(callCount)", "-r", "3000", "-l", "64", "-d", "0",
                "-nostdin", "-timeout", "60s",
            ]
            var sipp: ToolProcess?
            defer { sipp?.end() }
            return try await run(endpoint) {
                sipp = try ToolProcess(program, words, output: directory + "/sipp")
            } take: { event in
                guard case .incoming(let handle, _) = event else { return }
                try await endpoint.perform { agent, now in
                    try agent.ring(handle, at: now)
                    try agent.answer(handle, session, at: now)
                }
            }
        }
    }

    /// Waits until somebody has a port of 127.0.0.1.
    private static func waitUntilTaken(_ port: UInt16) async throws {
        for _ in 0..<500 {
            do {
                let probe = try endpoint()
                _ = try await probe.open(at: .loopback(port: port), [.udp])
                await probe.close()
            } catch { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw Options.Wrong(description: "SIPp does not listen")
    }
}
