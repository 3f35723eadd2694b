import CallBasics
import Testing

@testable import SIP

@Suite struct ServiceOrderTests {
    func record(_ priority: UInt16, _ weight: UInt16, _ name: String) throws -> ServiceRecord {
        ServiceRecord(priority: priority, weight: weight, port: 5060, target: try #require(DNSName(name)))
    }

    /// How often each name stands first.
    func firsts(_ records: [ServiceRecord], draws: Int) -> [String: Int] {
        (0..<draws).reduce(into: [:]) { counts, seed in
            var generator = SeededGenerator(seed: UInt64(seed))
            counts[records.ordered(by: &generator)[0].target.description, default: 0] += 1
        }
    }

    @Test func `a lower priority always stands first`() throws {
        let records = try [record(20, 100, "c"), record(0, 1, "a"), record(10, 65_535, "b")]
        for seed in 0..<100 {
            var generator = SeededGenerator(seed: UInt64(seed))
            #expect(records.ordered(by: &generator).map(\.target.description) == ["a", "b", "c"])
        }
    }

    /// The weights of the example in RFC 2782: 1 and 3.
    @Test func `within one priority the share is by weight`() throws {
        let counts = try firsts([record(0, 1, "old-slow-box"), record(0, 3, "new-fast-box")], draws: 10_000)
        // Four standard deviations of 10 000 draws at one in four are 173.
        #expect(abs(counts["old-slow-box", default: 0] - 2500) < 180)
    }

    @Test func `without weight the chance is very small beside others, and even among themselves`() throws {
        let beside = try firsts([record(0, 0, "a"), record(0, 10, "b")], draws: 10_000)
        #expect(beside["a", default: 0] < 50)
        let among = try firsts([record(0, 0, "a"), record(0, 0, "b")], draws: 10_000)
        #expect(abs(among["a", default: 0] - 5000) < 200)
    }

    @Test func `all are in the order once, and a seed gives one order`() throws {
        let records = try (0..<20).map { try record(UInt16($0 % 3), UInt16($0), "h\($0)") }
        var (one, other) = (SeededGenerator(seed: 9), SeededGenerator(seed: 9))
        let ordered = records.ordered(by: &one)
        #expect(Set(ordered) == Set(records))
        #expect(ordered.count == records.count)
        #expect(ordered == records.ordered(by: &other))
    }
}
