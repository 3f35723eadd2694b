import Testing

@testable import SharedCore

struct CoreSignalsTests {
    private let signals = CoreSignals(mayYield: true)

    @Test func `a core acts until all that was queued is tried`() {
        #expect(signals.isActing)
        signals.beginActing()
        signals.endActing(isBusy: false)
        #expect(!signals.isActing)
        signals.actionQueued()
        #expect(signals.isActing)
        #expect(signals.beginActing())
        signals.endActing(isBusy: true)
        #expect(signals.isActing)
        signals.actionEnded()
        #expect(!signals.beginActing())
        signals.endActing(isBusy: false)
        #expect(!signals.isActing)
    }

    @Test func `an action that comes after the last look and before the end is still to be tried`() async {
        signals.beginActing()
        signals.actionQueued()
        signals.endActing(isBusy: false)
        #expect(signals.isActing)
        // Beyond what the suite may take.
        await signals.nextAction(until: .now + .seconds(3600))
        signals.beginActing()
        signals.endActing(isBusy: false)
        #expect(!signals.isActing)
    }
}
