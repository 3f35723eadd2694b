import Testing

@testable import SharedCore

struct CoreSignalsTests {
    private let signals = CoreSignals(role: .executor)

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

    @Test func `a core for calls gives way before and after a call, and keeps to what it has granted`() {
        let core = CoreSignals(role: .call)
        core.setInCall(false)
        #expect(!core.areCallsOver)
        core.setInCall(true)
        #expect(!core.askToYield() && !core.isAskedToYield)
        core.setInCall(false)
        #expect(core.areCallsOver && core.askToYield())
        core.setInCall(true)
        #expect(core.askToYield() && core.isAskedToYield && !core.areCallsOver)
    }

    @Test(arguments: [CoreRole.main, .executor])
    func `a call keeps no other core from giving way, or from its place`(role: CoreRole) {
        let core = CoreSignals(role: role)
        core.setInCall(true)
        #expect(core.askToYield() == (role == .executor))
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
