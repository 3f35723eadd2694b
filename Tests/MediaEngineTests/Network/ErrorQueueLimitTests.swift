import CallBasics
@testable import MediaEngine
import Testing

@Suite struct ErrorQueueLimitTests {
    private static func at(_ milliseconds: Int) -> MediaTime { .zero + .milliseconds(milliseconds) }

    @Test func `a tick reads 64 errors, in however many parts, and the next one as many`() {
        var limit = ErrorQueueLimit()
        for tick in 0..<10 {
            let now = Self.at(10 * tick)
            #expect(limit.room(at: now) == 64)
            #expect(!limit.beginsPause(40, at: now) && limit.room(at: now) == 24)
            #expect(!limit.beginsPause(0, at: now) && !limit.beginsPause(23, at: now) && limit.room(at: now) == 1)
            #expect(limit.endsPause(at: now) == false)
        }
    }

    @Test func `with 64 errors in one tick none are taken for 5 s`() {
        var limit = ErrorQueueLimit()
        #expect(limit.room(at: .zero) == 64 && limit.beginsPause(64, at: .zero))
        // A call that fails for another reason in the same tick begins nothing anew.
        #expect(limit.room(at: .zero) == 0 && !limit.beginsPause(0, at: .zero))
        #expect(limit.endsPause(at: Self.at(4990)) == false)
        #expect(limit.endsPause(at: Self.at(5000)) && !limit.endsPause(at: Self.at(5000)))
        #expect(limit.room(at: Self.at(5000)) == 64 && limit.beginsPause(64, at: Self.at(5000)))
        #expect(!limit.endsPause(at: Self.at(9990)) && limit.endsPause(at: Self.at(10_000)))
    }
}
