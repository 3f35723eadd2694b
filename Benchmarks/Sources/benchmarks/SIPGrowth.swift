import CMeasure
import EngineBenchmarks

@testable import SIP

/// What is left of calls that have ended, and of a week in which registrations were refreshed.
enum SIPGrowth {
    private static let callCount = 100_000
    private static let userCount = 1000
    private static let hours = 7 * 24

    static func measure(_ options: Options) throws -> [Figure] {
        let callGrowth = try growth(ofCalls: callCount)
        let (requests, weekGrowth) = try growth(ofWeekOf: userCount)
        return [
            Figure("sip-growth: heap that 90,000 calls add to 10,000", callGrowth, "bytes", .atMost(65_536)),
            Figure("sip-growth: REGISTERs of \(userCount) users in a week", requests, "", .atLeast(168_000)),
            Figure("sip-growth: heap that six days of them add to one", weekGrowth, "bytes", .atMost(262_144)),
        ]
    }

    /// Calls of a second each, one after the other: what the heap has grown by since a tenth of them; nothing of them may be left.
    private static func growth(ofCalls count: Int) throws -> Double {
        var pair = try SIPPair<UserAgent>.phones()
        let (empty, otherEmpty) = (pair.phone.counts, pair.other.counts)
        var early: Int64 = 0
        for number in 0..<count {
            let call = try pair.call()
            pair.pass(.seconds(1))
            pair.withPhone { agent, now in agent.hangUp(call, at: now) }
            pair.pass(.seconds(1))
            if number == count / 10 { early = measure_heap() }
        }
        let growth = measure_heap() - early
        for _ in 0..<100 { pair.pass(.seconds(1)) }
        guard pair.phone.counts == empty, pair.other.counts == otherEmpty else {
            throw SIPPairError(what: "something is left: \(pair.phone.counts), \(pair.other.counts)")
        }
        return Double(growth)
    }

    /// How many requests left in a week, and what the heap has grown by since its first day.
    private static func growth(ofWeekOf count: Int) throws -> (requests: Double, growth: Double) {
        var pair = try SIPPair<SIPServer>.registrar(users: count)
        for number in 0..<count { try pair.register(number) }
        var early: Int64 = 0
        for hour in 1...hours {
            for _ in 0..<360 { pair.pass(.seconds(10)) }
            if hour == 24 { early = measure_heap() }
        }
        return (Double(pair.phone.sentCount), Double(measure_heap() - early))
    }
}
