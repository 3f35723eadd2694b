import CallBasics
import Testing

@testable import media_tool

/// When answers of the network mean that packets do not arrive.
@Suite struct UnreachableWatchTests {
    /// The milliseconds at which it was told, of answers that came at `times`.
    private func told(_ times: [Int]) -> [Int] {
        var watch = UnreachableWatch()
        return stride(from: 0, to: 10_000, by: 10).filter { now in
            let answers = times.count { $0 <= now }
            return watch.isTold(answers: answers, at: MediaTime(nanoseconds: Int64(now) * 1_000_000))
        }
    }

    @Test func `answers that go on are told once`() {
        #expect(told([0, 20, 500, 1000, 1500, 2000, 2500]) == [1000])
        #expect(told([300, 1310, 2320]) == [1310])
    }

    @Test func `a receiver that begins late, or ends early, is not worth a word`() {
        #expect(told([]) == [])
        #expect(told([0, 20, 40, 60]) == [])
        #expect(told([0, 20, 9000, 9020]) == [])
    }
}
