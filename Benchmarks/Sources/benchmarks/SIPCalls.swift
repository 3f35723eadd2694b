import CMeasure
import EngineBenchmarks

@testable import SIP

/// How many calls and registrations two sides on one thread make in a second.
enum SIPCalls {
    private static let count = 3000

    static func measure(_ options: Options) throws -> [Figure] {
        var (calls, registrations) = (0.0, 0.0)
        for _ in 0..<options.repetitions {
            calls = max(calls, try callsPerSecond())
            registrations = max(registrations, try registrationsPerSecond())
        }
        return [
            Figure("sip-calls: calls, both sides", calls, "/s", .atLeast(20_000), note: "180, 200, ACK, BYE; SDP"),
            Figure("sip-calls: registrations with digest, both sides", registrations, "/s", .atLeast(30_000)),
        ]
    }

    private static func callsPerSecond() throws -> Double {
        var pair = try SIPPair<UserAgent>.phones()
        let start = measure_thread_cpu()
        for _ in 0..<count {
            let call = try pair.call()
            pair.withPhone { agent, now in agent.hangUp(call, at: now) }
            pair.pass(.milliseconds(1))
        }
        return Double(count) * 1e9 / Double(measure_thread_cpu() - start)
    }

    private static func registrationsPerSecond() throws -> Double {
        var pair = try SIPPair<SIPServer>.registrar(users: count)
        let start = measure_thread_cpu()
        for number in 0..<count {
            try pair.register(number)
            pair.pass(.milliseconds(1))
        }
        return Double(count) * 1e9 / Double(measure_thread_cpu() - start)
    }
}
