@testable import MediaEngine
import SDP
import Testing

/// The other side falls silent, and is heard again, in virtual time.
@Suite struct MediaStallTests {
    /// A callee that nothing comes to, for the caller is on hold, which waits for as long as `timeout` says; nil as it
    /// does by itself.
    private static func pair(
        timeout: Duration? = nil,
        configure: (inout CallConfiguration) -> Void = { _ in }
    ) async throws -> CallPair {
        try await CallPair(saying: .silence) { calling, called in
            calling.isOnHold = true
            if let timeout { called.stallTimeout = timeout }
            configure(&called)
        }
    }

    /// What the callee has told of media that stalls and comes again.
    private static func told(_ pair: CallPair) async throws -> [CallEvent] {
        try await pair.callee.end()
        return await allEvents(pair.callee).filter { event in
            switch event {
            case .mediaStalled, .mediaResumed: true
            default: false
            }
        }
    }

    @Test(arguments: [nil, 2000] as [Int64?]) func `silence is told after 30 s, or as was asked for, and not before`(
        milliseconds: Int64?
    ) async throws {
        let timeout = Duration.milliseconds(milliseconds ?? 30_000)
        for (advance, isTold) in [(-10, false), (20, true)] as [(Int64, Bool)] {
            let pair = try await Self.pair(timeout: milliseconds.map { .milliseconds($0) })
            try pair.engine.advance(by: timeout + .milliseconds(advance))
            let expected: [CallEvent] = isTold ? [.mediaStalled(after: timeout)] : []
            #expect(try await Self.told(pair) == expected)
        }
    }

    @Test func `a stall is told once, with its end, and so is the next one`() async throws {
        let pair = try await Self.pair(timeout: .seconds(2))
        for _ in 0..<2 {
            pair.caller.isOnHold = false
            try pair.advance(1000)
            pair.caller.isOnHold = true
            try pair.advance(7000)
        }
        pair.caller.isOnHold = false
        try pair.advance(1000)
        let stall = CallEvent.mediaStalled(after: .seconds(2))
        #expect(try await Self.told(pair) == [stall, .mediaResumed, stall, .mediaResumed])
    }

    @Test func `who wants to hear of no stall hears of none`() async throws {
        let pair = try await Self.pair { $0.stallTimeout = nil }
        try pair.advance(60_000)
        pair.caller.isOnHold = false
        try pair.advance(1000)
        #expect(try await Self.told(pair).isEmpty)
    }

    /// Why the other side is to send nothing.
    enum Reason: CaseIterable {
        case onHold
        case sendOnly
        case inactive
        case nothingAgreed

        func apply(to called: inout CallConfiguration) {
            switch self {
            case .onHold: called.isOnHold = true
            case .sendOnly: called.agreement.direction = .sendOnly
            case .inactive: called.agreement.direction = .inactive
            case .nothingAgreed: called.agreement.codec = nil
            }
        }
    }

    @Test(arguments: Reason.allCases) func `nothing is missed while nothing is expected, and then from then on`(
        reason: Reason
    ) async throws {
        for (advance, count) in [(1900, 0), (2100, 1)] as [(Int64, Int)] {
            let pair = try await Self.pair(timeout: .seconds(2)) { reason.apply(to: &$0) }
            try pair.advance(10_000)
            pair.callee.isOnHold = false
            var agreement = pair.callee.agreement
            agreement.codec = "PCMU"
            agreement.direction = .sendReceive
            try await pair.callee.update(agreement)
            try pair.advance(advance)
            #expect(try await Self.told(pair).count == count)
        }
    }

    @Test(arguments: Reason.allCases) func `who expects nothing any more misses nothing`(reason: Reason) async throws {
        let pair = try await Self.pair(timeout: .seconds(2))
        try pair.advance(1500)
        var changed = CallConfiguration(network: pair.callee.configuration.network)
        changed.agreement = pair.callee.agreement
        reason.apply(to: &changed)
        pair.callee.isOnHold = changed.isOnHold
        try await pair.callee.update(changed.agreement)
        try pair.advance(10_000)
        #expect(try await Self.told(pair).isEmpty)
    }
}
