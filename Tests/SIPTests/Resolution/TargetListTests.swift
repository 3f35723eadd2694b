import CallBasics
import Testing

@testable import SIP

@Suite struct TargetListTests {
    let targets = (1...3).map { Target(.udp, Transactions.address($0)) }

    @Test(arguments: [TargetFailure.timeout, .unreachable, .unavailable(retryAfter: nil)])
    func `each failure leads to the next target, and the last one is told with all`(failure: TargetFailure) {
        var (list, closed) = (TargetList(targets), ClosedTargets())
        for target in targets {
            #expect(list.outcome == nil)
            #expect(list.next(closed, at: .zero) == target)
            #expect(list.current == target)
            list.fail(target == targets[2] ? .timeout : failure, &closed, at: .zero)
        }
        #expect(list.next(closed, at: .zero) == nil)
        #expect(list.outcome == .timeout)
        #expect(list.tried.map(\.target) == targets)
        #expect(list.tried.map(\.failure) == [failure, failure, .timeout])
        #expect(closed.count == 0)
    }

    @Test func `a target that asks for it is left alone for that time, by all requests`() {
        var (list, closed) = (TargetList(targets), ClosedTargets())
        #expect(list.next(closed, at: .zero) == targets[0])
        list.fail(.unavailable(retryAfter: .seconds(120)), &closed, at: .zero)
        var other = TargetList(targets)
        #expect(other.next(closed, at: .ms(119_999)) == targets[1])
        #expect(other.tried == [TriedTarget(target: targets[0], failure: .closed(until: .ms(120_000)))])
        other = TargetList(targets)
        #expect(other.next(closed, at: .ms(120_000)) == targets[0])
        closed.removeEnded(at: .ms(120_000))
        #expect(closed.count == 0)
    }

    @Test func `when all are closed that is told; what was tried counts more`() {
        var (list, closed) = (TargetList(Array(targets.prefix(1))), ClosedTargets())
        #expect(list.next(closed, at: .zero) == targets[0])
        list.fail(.unavailable(retryAfter: .seconds(60)), &closed, at: .zero)
        var again = TargetList(Array(targets.prefix(1)))
        #expect(again.next(closed, at: .ms(1)) == nil)
        #expect(again.outcome == .closed(until: .ms(60_000)))
        var both = TargetList([targets[1], targets[0]])
        #expect(both.next(closed, at: .ms(1)) == targets[1])
        both.fail(.unreachable, &closed, at: .ms(1))
        #expect(both.next(closed, at: .ms(1)) == nil)
        #expect(both.outcome == .unreachable)
        #expect(both.tried.count == 2)
    }

    @Test func `nobody closes itself for longer than an hour, and their number is bounded`() {
        var closed = ClosedTargets()
        closed.close(targets[0], for: .seconds(UInt32.max), at: .zero)
        #expect(closed.end(of: targets[0], at: .zero) == .ms(3_600_000))
        for port in 1...UInt16(1000) {
            closed.close(Target(.udp, Transactions.address(9, port)), for: .seconds(9), at: .zero)
        }
        #expect(closed.count == ClosedTargets.targetCount)
        #expect(closed.end(of: targets[0], at: .zero) != nil)
    }

    @Test func `the target that knows the account comes first, if it is one of them`() {
        let closed = ClosedTargets()
        var list = TargetList(targets, first: targets[2])
        #expect((0..<4).map { _ in list.next(closed, at: .zero) } == [targets[2], targets[0], targets[1], nil])
        list = TargetList(targets, first: Target(.tcp, Transactions.address(3)))
        #expect(list.next(closed, at: .zero) == targets[0])
    }

    @Test(arguments: [
        ("503", "Retry-After: 120 (busy)", TargetFailure.unavailable(retryAfter: .seconds(120))),
        ("503", "Retry-After: soon", .unavailable(retryAfter: nil)),
        ("503", "X-A: b", .unavailable(retryAfter: nil)),
        ("500", "Retry-After: 120", nil),
        ("486", "X-A: b", nil),
        ("200", "X-A: b", nil),
    ])
    func `only a 503 leads on`(status: String, header: String, failure: TargetFailure?) throws {
        let response = try SIPMessage(datagram: Messages.lines("SIP/2.0 \(status) X", header, ""))
        #expect(TargetFailure(response) == failure)
    }

    @Test func `a transaction that fails leads on`() {
        #expect(TargetFailure(TransactionFailure.timeout) == .timeout)
        #expect(TargetFailure(TransactionFailure.unreachable) == .unreachable)
    }
}
