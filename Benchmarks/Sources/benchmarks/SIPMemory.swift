import CMeasure
import EngineBenchmarks

@testable import SIP

/// What calls and registrations take in memory while they last.
enum SIPMemory {
    private static let count = 5000

    static func measure(_ options: Options) throws -> [Figure] {
        var pair = try SIPPair<UserAgent>.phones()
        let before = measure_heap()
        for _ in 0..<count {
            _ = try pair.call()
            // Their transactions are over then.
            pair.pass(.seconds(1))
        }
        for _ in 0..<100 { pair.pass(.seconds(1)) }
        let (calls, counts) = (measure_heap() - before, pair.phone.counts)
        guard counts.calls == count, counts.transactions.transactions == 0 else {
            throw SIPPairError(
                what: "\(counts.calls) calls, \(counts.transactions.transactions) transactions are there"
            )
        }
        var registrar = try SIPPair<SIPServer>.registrar(users: count)
        let unbound = measure_heap()
        for number in 0..<count {
            try registrar.register(number)
            registrar.pass(.milliseconds(10))
        }
        for _ in 0..<100 { registrar.pass(.seconds(1)) }
        let bindings = measure_heap() - unbound
        return [
            Figure("sip-memory: a confirmed call, one side", Double(calls) / Double(2 * count), "bytes", .atMost(8192)),
            Figure(
                "sip-memory: a registration, phone and registrar",
                Double(bindings) / Double(count),
                "bytes",
                .atMost(3072)
            ),
        ]
    }
}
