import Testing

@testable import SharedCore

struct CoreSignalsTests {
    private let signals = CoreSignals(mayYield: true)

    @Test func `a core acts until all that was queued is tried`() {
        #expect(signals.isActing)
        signals.beginActing()
        signals.endActing()
        #expect(!signals.isActing)
        signals.actionQueued()
        #expect(signals.isActing)
    }

    @Test func `an action that comes after the last look and before the end is still to be tried`() async {
        signals.beginActing()
        signals.actionQueued()
        signals.endActing()
        #expect(signals.isActing)
        // Beyond what the suite may take.
        await signals.nextAction(within: .seconds(3600))
        signals.beginActing()
        signals.endActing()
        #expect(!signals.isActing)
    }
}
