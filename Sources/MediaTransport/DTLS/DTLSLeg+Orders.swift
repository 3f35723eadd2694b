import CallBasics
import SDP
import Synchronization

extension DTLSLeg {
    /// What ICE tells of a port.
    enum News: Sendable {
        /// The way leads there from now on.
        case found(Route)
        /// Nothing gets through any more: another search may find a way, from another port.
        case lost
    }

    /// What takes the place of an address at a relay: another one, or none.
    struct Renewal {
        var relay: TURNAllocation?
    }

    /// What is wanted of a leg, and who waits for what becomes of it.
    struct Orders {
        var wanted: AgreedAssociation?
        var ice: AgreedICE?
        var remote: SocketAddress?
        /// An address at a relay that the next search for the way goes by, in the place of that of before, which is gone with its port.
        var renewal: Renewal?
        /// Whether there is an address at a relay that may be told.
        var hasRelay = false
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

    // MARK: Orders

    /// Begins the association, or goes on with it; at another address where `remote` is one, or where ICE finds one.
    func connect(_ association: AgreedAssociation, _ ice: AgreedICE?, to remote: SocketAddress?) {
        orders.withLock { orders in
            orders.ice = ice
            if let remote { orders.remote = remote }
            guard orders.wanted != association else { return }
            (orders.wanted, orders.isNew, orders.outcome) = (association, true, .connecting)
        }
        let isServed = server.add(self)
        orders.withLock { $0.isServed = isServed }
        if !isServed { settle(.failed(.protocolFailure("the system has no room for a thread")), evenIfNew: true) }
    }

    /// Goes on with no association, as when RTCP has come to share the port of RTP.
    func disconnect() {
        let isWanted = orders.withLock { orders in
            guard orders.wanted != nil else { return false }
            (orders.wanted, orders.ice, orders.isNew) = (nil, nil, true)
            return true
        }
        if isWanted { server.wake() }
    }

    /// What has become of it, once that is known; from now on the other side has so long as `timeLimit`.
    func outcome() async -> Outcome {
        await withCheckedContinuation { continuation in
            let known: Outcome? = orders.withLock { orders in
                guard case .connecting = orders.outcome else { return orders.outcome }
                orders.isTimed = true
                orders.waiters.append(continuation)
                return nil
            }
            if let known { continuation.resume(returning: known) } else { server.wake() }
        }
    }

    /// Waits until either side has ended it, or it has failed.
    func ended() async {
        await withCheckedContinuation { continuation in
            let isOver = orders.withLock { orders in
                if orders.isOver { return true }
                orders.enders.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// Why it failed; nil when it did not.
    var failure: DTLSError? {
        if case .failed(let error) = orders.withLock(\.outcome) { return error }
        return nil
    }

    /// Checks of ICE that proved no password.
    var refusedCheckCount: Int { refusedChecks.load(ordering: .relaxed) }

    var hasRelay: Bool { orders.withLock(\.hasRelay) }

    /// Takes the address at a relay for gone.
    func forgetRelay() { orders.withLock { $0.hasRelay = false } }

    /// Has the next search for the way go by `relay`, or by none: the port is another one, and what was given to it has gone with that.
    func renew(_ relay: TURNAllocation?) {
        orders.withLock { orders in
            // One that nobody has used yet goes with its port, and a connection to it ends.
            orders.renewal?.relay?.close(at: .zero)
            (orders.renewal, orders.hasRelay) = (Renewal(relay: relay), relay != nil)
        }
    }

    /// Ends it; waits until close_notify has been sent and a relay given back, but for no longer than 100 ms.
    func close() async {
        await withCheckedContinuation { continuation in
            let waits = orders.withLock { orders in
                guard orders.isServed, !orders.closes else { return false }
                orders.closes = true
                orders.closers.append(continuation)
                return true
            }
            if waits { server.wake() } else { continuation.resume() }
        }
    }
}
