import Synchronization

extension CallEngine {
    /// Something else needs the sound: a call on the mobile network, an alarm.
    ///
    /// Every running call is put on hold, and says so in an event. A second call without an end between changes nothing.
    public func beginInterruption() {
        for call in running() where call.interrupt() { call.tell(.interruptionBegan) }
    }

    /// The sound is ours again: calls that `beginInterruption` has put on hold go on, and only those.
    ///
    /// Not those that the application has held or taken off hold meanwhile, nor those that have ended.
    public func endInterruption() {
        for call in running() where call.resumeAfterInterruption() { call.tell(.interruptionEnded) }
    }

    private func running() -> [Call] { state.withLock { $0.calls } }
}
