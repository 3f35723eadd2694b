import NIOCore
import Testing

@testable import LocalMessaging

struct PendingRequestsTests {
    private struct Failure: Error {}

    private static let answer = ReceivedFrame(frame: Frame(.reply, correlation: 1), files: [])

    private static func pending(_ deadlines: Int64...) -> PendingRequests {
        var pending = PendingRequests()
        for deadline in deadlines {
            _ = pending.add(deadline: .uptimeNanoseconds(UInt64(deadline)), timeout: .nanoseconds(deadline))
        }
        return pending
    }

    @Test func `numbers begin at 1 and never come again`() {
        var pending = PendingRequests()
        #expect((1...100).map { _ in pending.nextCorrelation() } == Array(1...100))
    }

    @Test func `an answer that comes before anybody waits is kept`() async throws {
        var pending = Self.pending(5)
        #expect(pending.end(1, with: .success(Self.answer)) == nil)
        #expect(pending.end(1, with: .failure(Failure())) == nil, "the first counts")
        let frame = try await withCheckedThrowingContinuation { continuation in
            if let ended = pending.wait(for: 1, continuation) { continuation.resume(with: ended) }
        }
        #expect(frame.frame.correlation == 1)
        #expect(pending.count == 0)
    }

    @Test func `who waits is answered once`() async throws {
        var pending = Self.pending(5)
        let frame = try await withCheckedThrowingContinuation { continuation in
            #expect(pending.wait(for: 1, continuation) == nil)
            pending.end(1, with: .success(Self.answer))?.resume(returning: Self.answer)
            #expect(pending.end(1, with: .failure(Failure())) == nil)
        }
        #expect(frame.frame.correlation == 1)
        #expect(pending.count == 0)
    }

    @Test func `the failure of one that nobody waits for yet is known`() {
        var pending = Self.pending(5, 6)
        #expect(pending.failure(of: 1) == nil)
        _ = pending.end(1, with: .failure(Failure()))
        _ = pending.end(2, with: .success(Self.answer))
        #expect(pending.failure(of: 1) is Failure && pending.failure(of: 2) == nil && pending.failure(of: 3) == nil)
    }

    @Test func `an answer to nothing, or to what nobody waits for any more, is nobody's`() {
        var pending = Self.pending(5)
        pending.remove(1)
        #expect(pending.end(1, with: .success(Self.answer)) == nil)
        #expect(pending.end(99, with: .success(Self.answer)) == nil)
        #expect(pending.count == 0)
    }

    @Test func `those that are due are told with the time they had, and the next deadline is known`() {
        var pending = Self.pending(30, 10, 20)
        #expect(pending.earliestDeadline == .uptimeNanoseconds(10))
        #expect(pending.takeDue(at: .uptimeNanoseconds(9)).isEmpty)
        let due = pending.takeDue(at: .uptimeNanoseconds(20))
        #expect(due.map(\.correlation).sorted() == [2, 3])
        #expect(due.map(\.timeout).sorted() == [.nanoseconds(10), .nanoseconds(20)])
        #expect(pending.earliestDeadline == .uptimeNanoseconds(30))
    }

    @Test func `one that was answered is not due`() {
        var pending = Self.pending(10)
        _ = pending.end(1, with: .success(Self.answer))
        #expect(pending.takeDue(at: .distantFuture).isEmpty)
        #expect(pending.earliestDeadline == nil)
    }
}
