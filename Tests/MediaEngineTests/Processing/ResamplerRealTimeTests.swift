import CAllocationCounter
@testable import MediaEngine
import TestSupport
import Testing

/// Resampling neither allocates nor locks.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: allocation_counter_is_active() != 0, "the thread sanitizer has replaced the allocator")
)
struct ResamplerRealTimeTests {
    @Test(arguments: [(48_000, 16_000), (44_100, 48_000)])
    func `nothing allocates or locks after init`(from: Int, to: Int) {
        let input = (0..<from / 50).map { Int16(truncatingIfNeeded: $0 &* 7919) }
        var output = [Int16](repeating: 0, count: to / 50)
        for followsDrift in [false, true] {
            let resampler = Resampler(from: from, to: to, channelCount: 2, followsDrift: followsDrift)
            allocation_counter_begin()
            for round in 0..<10 {
                var span = output.mutableSpan
                if followsDrift { resampler.ppm = Double(round) }
                _ = resampler.process(input.span, into: &span)
            }
            var span = output.mutableSpan
            _ = resampler.drain(into: &span)
            resampler.reset()
            let counts = allocation_counter_end()
            #expect(counts.allocations == 0 && counts.locks == 0)
        }
    }
}
