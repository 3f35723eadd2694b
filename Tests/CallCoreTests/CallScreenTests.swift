import CallBasics
import CallCoreTesting
import Testing

@testable import CallCore
@testable import SIP

/// The way of reports to a screen that takes its time.
@Suite struct CallScreenTests {
    /// A screen that takes in each call once it may.
    private final class SlowScreen: CallProvider {
        /// From whom calls come.
        let told: AsyncStream<String>
        private let teller: AsyncStream<String>.Continuation
        private let permits: AsyncStream<Void>
        let permit: AsyncStream<Void>.Continuation

        init() {
            (told, teller) = AsyncStream.makeStream()
            (permits, permit) = AsyncStream.makeStream()
        }

        func reportIncoming(_ call: CallUUID, _ update: CallUpdate) async {
            teller.yield(update.remote)
            for await _ in permits { return }
        }

        func reportOutgoing(_ call: CallUUID, _ update: CallUpdate, _ stage: OutgoingStage) {}
        func reportUpdate(_ call: CallUUID, _ update: CallUpdate) {}
        func reportEnded(_ call: CallUUID, _ reason: ReportedEnd) { teller.yield("ended") }
        func performed(_ action: ProviderAction, _ outcome: ActionOutcome) {}

        func next() async -> String? {
            for await word in told { return word }
            return nil
        }
    }

    @Test func `what waits to be told when all calls are ended at once is not told`() async {
        let (slow, calls) = (SlowScreen(), IdleCalls())
        let screen = CallScreen(slow, seed: 1)
        screen.open(for: calls)
        func receive(_ name: String, _ slot: Int) {
            let handle = CallHandle(slot: slot, serial: UInt64(slot) + 1)
            screen.desk.receive(handle, callID: name, CallUpdate(remote: name), at: .zero)
            screen.settle { _ in }
        }
        receive("a", 0)
        receive("b", 1)
        #expect(await slow.next() == "a")
        screen.desk.reset()
        screen.settle { _ in }
        receive("c", 2)
        slow.permit.yield(())
        #expect(await slow.next() == "c")
        slow.permit.finish()
        screen.close()
    }
}
