import CallBasics
import SDP

extension DTLSLeg {
    /// What is wanted of a leg, and who waits for what becomes of it.
    struct Orders {
        var wanted: AgreedAssociation?
        var ice: AgreedICE?
        var remote: SocketAddress?
        /// Whether the thread has not taken `wanted` yet.
        var isNew = false
        var isServed = false
        var isTimed = false
        var closes = false
        var outcome = Outcome.connecting
        var waiters: [CheckedContinuation<Outcome, Never>] = []
        /// Who waits for its end, and who waits until the end has been told.
        var enders: [CheckedContinuation<Void, Never>] = []
        var closers: [CheckedContinuation<Void, Never>] = []

        var isOver: Bool {
            switch outcome {
            case .connecting, .connected: false
            case .failed, .closed: true
            }
        }

        /// Notes what has become of it; answers who has waited for that.
        mutating func settle(_ outcome: Outcome) -> (
            waiters: [CheckedContinuation<Outcome, Never>], enders: [CheckedContinuation<Void, Never>]
        ) {
            self.outcome = outcome
            defer {
                waiters = []
                if isOver { enders = [] }
            }
            return (waiters, isOver ? enders : [])
        }
    }
}
