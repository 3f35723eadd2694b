@testable import SDP
import TestSupport
import Testing

/// What it costs to read what somebody has made dear.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine, .timeLimit(.minutes(2)))
struct InputCostRealTimeTests {
    /// Optimised each takes less than 50 ms on one core.
    ///
    /// Without that, and under the thread sanitizer, up to 2.5 s; what grows with the square of its length takes minutes.
    @Test(arguments: HostileInputTests.dearest.indices)
    func `the dearest input takes no longer than the next`(index: Int) {
        let (name, bytes) = HostileInputTests.dearest[index]
        #expect(bytes.count <= SessionDescription.Limits.byteCount, "\(name)")
        #expect((try? SessionDescription(parsing: bytes)) != nil, "\(name)")
        let clock = ContinuousClock()
        let fastest = (0..<3).map { _ in clock.measure { HostileInputTests.exercise(bytes) } }.min() ?? .zero
        #expect(fastest < (isOptimised ? .milliseconds(500) : .seconds(10)), "\(name)")
    }
}
