import Testing

@testable import MediaEngine

@Suite struct StallDetectorTests {
    @Test func `standing for the tolerance is said once for each time`() {
        var detector = StallDetector(tolerance: .milliseconds(30))
        let moves = [true, false, false, false, false, true, false, false, false]
        let findings = moves.enumerated().map { index, moved in
            detector.look(moved: moved, at: .zero + .milliseconds(10 * index))
        }
        #expect(
            findings == [
                .nothing, .nothing, .nothing, .stalled, .nothing, .nothing, .nothing, .nothing, .stalled,
            ]
        )
    }

    @Test func `standing without end is hopeless, which is said once`() {
        var detector = StallDetector(tolerance: .milliseconds(20), patience: .milliseconds(40))
        let findings = (0..<7).map { detector.look(moved: false, at: .zero + .milliseconds(10 * $0)) }
        #expect(findings == [.nothing, .nothing, .stalled, .nothing, .hopeless, .nothing, .nothing])
    }

    @Test func `a card that never moved is stalled as well, and another card begins anew`() {
        var detector = StallDetector(tolerance: .milliseconds(20))
        #expect(detector.look(moved: false, at: .zero) == .nothing)
        #expect(detector.look(moved: false, at: .zero + .milliseconds(20)) == .stalled)
        detector.reset()
        #expect(detector.look(moved: true, at: .zero + .milliseconds(30)) == .nothing)
    }
}
