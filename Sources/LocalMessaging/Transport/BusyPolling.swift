import NIOCore

/// Keeps an event loop awake for the moment in which an answer is about to come.
///
/// To wake a processor that sleeps takes longer than to answer a request: on an idle machine most of a round trip is that.
/// So after a prompt frame the loop asks for events without sleeping, for 50 us at most. Where that was in vain some times
/// in a row, because the peer takes longer or waits for this very processor, it is left out for a while, twice as long
/// each time: then it costs next to nothing, and an exchange that becomes brisk is found again.
///
/// Thread: its event loop.
final class BusyPolling: NIOScheduledCallbackHandler, @unchecked Sendable {
    /// How long an answer is waited for: time for a peer to wake up and to answer.
    private static let limit = TimeAmount.microseconds(50)
    /// Just enough for the loop to ask for events in between.
    private static let pause = TimeAmount.nanoseconds(300)
    /// In vain so often in a row, it is still tried again at once.
    private static let patience = 8
    /// The most prompt frames in a row that are not followed by polling.
    private static let longestRest = 64

    private let eventLoop: any EventLoop
    private(set) var isPolling = false
    private var isAwaiting = false
    private var deadline = NIODeadline.distantPast
    /// How often in a row it was in vain.
    private var failures = 0
    /// Prompt frames that are still to be left out.
    private var rest = 0

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// A prompt frame was written.
    func begin() {
        guard rest == 0 else { return rest -= 1 }
        isAwaiting = true
        deadline = eventLoop.now + Self.limit
        if !isPolling { poll() }
    }

    /// Something came from a peer.
    func note() {
        guard isAwaiting else { return }
        isAwaiting = false
        failures = 0
    }

    func handleScheduledCallback(eventLoop: some EventLoop) {
        isPolling = false
        guard isAwaiting else { return }
        guard eventLoop.now >= deadline else { return poll() }
        isAwaiting = false
        failures += 1
        if failures > Self.patience { rest = min(1 << min(failures - Self.patience, 16), Self.longestRest) }
    }

    private func poll() {
        isPolling = (try? eventLoop.scheduleCallback(in: Self.pause, handler: self)) != nil
    }
}
