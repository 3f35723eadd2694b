import CallBasics
internal import SDP
import Synchronization

/// One port of a leg: the handshakes on it, and the keys that the one gives which is the other side's.
///
///     wait for ClientHello, or send it ──► handshakes, one an address ──► the first whose certificate fits ──► keys
///
/// The address that the description tells always has a place. Behind a NAT the other side comes from another one: of these a
/// few may try at once, and one that fails ends none of the others.
/// Thread: `serve` that of DTLS; the rest any.
/// Source: RFC 5763, section 6.7; RFC 5764, section 5.1.
final class DTLSLeg: @unchecked Sendable {
    /// What has become of the association that is wanted.
    enum Outcome: Sendable {
        case connecting
        case connected(SRTPSuite)
        case failed(DTLSError)
        case closed
    }

    private struct Orders {
        var wanted: AgreedAssociation?
        var remote: SocketAddress?
        var isNew = false
        var closes = false
        var outcome = Outcome.connecting
        var waiters: [CheckedContinuation<Outcome, Never>] = []
        var closers: [CheckedContinuation<Void, Never>] = []
    }

    /// A handshake with one address.
    private final class Attempt {
        var association: DTLSAssociation
        var peer: SocketAddress
        let begin: MediaTime

        init(_ association: consuming DTLSAssociation, with peer: SocketAddress, at now: MediaTime) {
            self.association = association
            (self.peer, begin) = (peer, now)
        }
    }

    let path = SecurePath()
    let mail = HandshakeMail()
    private let identity: DTLSIdentity
    private let orders = Mutex(Orders())

    // Of the thread of DTLS.
    private var attempts: [Attempt] = []
    private var connected: Attempt?
    private var wanted: AgreedAssociation?
    private var remote: SocketAddress?
    private var deadline: MediaTime?
    private var lastError: DTLSError?
    /// When it ends, whatever has been sent; nil before it closes.
    private var closing: MediaTime?

    init(_ identity: DTLSIdentity) { self.identity = identity }

    // MARK: Orders

    /// Begins the association, or goes on with it at another address.
    func connect(_ association: AgreedAssociation, to remote: SocketAddress?) {
        orders.withLock { orders in
            orders.remote = remote
            guard orders.wanted != association else { return }
            (orders.wanted, orders.isNew, orders.outcome) = (association, true, .connecting)
        }
        if !DTLSThread.shared.add(self) { settle(.failed(.protocolFailure("the system has no room for a thread"))) }
    }

    /// What has become of it, once that is known.
    func outcome() async -> Outcome {
        await withCheckedContinuation { continuation in
            let known: Outcome? = orders.withLock { orders in
                guard case .connecting = orders.outcome else { return orders.outcome }
                orders.waiters.append(continuation)
                return nil
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    /// Tells the other side that it is over, and waits until that has been sent, but for no longer than 100 ms.
    func close() async {
        await withCheckedContinuation { continuation in
            let isServed = orders.withLock { orders in
                guard orders.wanted != nil, !orders.closes else { return false }
                orders.closes = true
                orders.closers.append(continuation)
                return true
            }
            if isServed { DTLSThread.shared.wake() } else { continuation.resume() }
        }
    }

    private func settle(_ outcome: Outcome) {
        let (waiters, closers) = orders.withLock { orders in
            orders.outcome = outcome
            let waiting = (orders.waiters, orders.closers)
            orders.waiters = []
            if case .closed = outcome { orders.closers = [] }
            return waiting
        }
        for waiter in waiters { waiter.resume(returning: outcome) }
        if case .closed = outcome { for closer in closers { closer.resume() } }
    }

    // MARK: The thread of DTLS

    /// Does what there is to do; answers when it has to again, unless something comes before.
    func serve(at now: MediaTime, _ buffer: inout [UInt8]) -> MediaTime? {
        let closes = takeOrders(now)
        while let (bytes, source) = mail.take(into: &buffer) { receive(buffer[bytes], from: source, now) }
        let running = attempts + [connected].compactMap(\.self)
        for attempt in running where attempt.association.timeout.map({ $0 <= .zero }) ?? false {
            attempt.association.handleTimeout()
        }
        if closes, closing == nil {
            closing = now + Self.closingPatience
            connected?.association.close()
        }
        for attempt in running {
            for datagram in attempt.association.takeDatagrams() { mail.post(datagram, to: attempt.peer) }
        }
        judge(now)
        if let closing {
            guard now < closing, !mail.isSent else {
                DTLSThread.shared.remove(self)
                settle(.closed)
                return nil
            }
            return now + Self.closingPause
        }
        let timeouts = (attempts + [connected].compactMap(\.self)).compactMap {
            $0.association.timeout.map { now + $0 }
        }
        return (timeouts + [deadline].compactMap(\.self)).min()
    }

    /// Takes what is wanted now; answers whether it is to end.
    private func takeOrders(_ now: MediaTime) -> Bool {
        let (next, remote, isNew, closes) = orders.withLock { orders in
            defer { orders.isNew = false }
            return (orders.wanted, orders.remote, orders.isNew, orders.closes)
        }
        let (former, hasMoved) = (self.remote, remote != self.remote)
        self.remote = remote
        if hasMoved, let connected, let remote, connected.peer == former { connected.peer = remote }
        if isNew {
            (wanted, connected, attempts, lastError) = (next, nil, [], nil)
            deadline = now + Self.patience
        }
        if let wanted, let remote, wanted.role == .active, connected == nil, isNew || hasMoved, deadline != nil {
            attempts = []
            begin(wanted, with: remote, now)
        }
        return closes
    }

    private func begin(_ wanted: AgreedAssociation, with peer: SocketAddress, _ now: MediaTime) {
        do throws(DTLSError) {
            let role: DTLSRole = wanted.role == .active ? .active : .passive
            let association = try DTLSAssociation(identity, role: role, fingerprints: wanted.fingerprints)
            attempts.append(Attempt(association, with: peer, at: now))
        } catch {
            fail(error)
        }
    }

    private func receive(_ datagram: ArraySlice<UInt8>, from source: SocketAddress, _ now: MediaTime) {
        if let connected {
            if connected.peer == source { connected.association.receive(datagram.span) }
            return
        }
        if let attempt = attempts.first(where: { $0.peer == source }) {
            return attempt.association.receive(datagram.span)
        }
        guard let wanted, wanted.role == .passive, deadline != nil, datagram.first == Self.handshakeRecord else {
            return
        }
        if source != remote {
            // A place that nobody has finished with in time is free for others.
            attempts.removeAll { $0.peer != remote && now - $0.begin > Self.strangerPatience }
            guard attempts.count(where: { $0.peer != remote }) < Self.strangerLimit else { return }
        }
        begin(wanted, with: source, now)
        attempts.last?.association.receive(datagram.span)
    }

    private func judge(_ now: MediaTime) {
        for attempt in attempts {
            switch attempt.association.state {
            case .connecting: break
            case .connected(let keys):
                (connected, attempts, deadline) = (attempt, [], nil)
                path.offer(sending: SRTPKeys(keys.sending), receiving: SRTPKeys(keys.receiving))
                return settle(.connected(keys.suite))
            case .failed(let error):
                attempts.removeAll { $0 === attempt }
                guard attempt.peer == remote else { break }
                // Anybody can send an alert in the name of the other side while nothing is signed: it may try again.
                if case .wrongFingerprint = error { return fail(error) }
                if wanted?.role == .active { return fail(error) }
                lastError = error
            case .closed: attempts.removeAll { $0 === attempt }
            }
        }
        if let deadline, now >= deadline { fail(lastError ?? .timedOut) }
    }

    private func fail(_ error: DTLSError) {
        (attempts, deadline) = ([], nil)
        settle(.failed(error))
    }

    /// How long the other side may take in all.
    private static let patience = Duration.seconds(20)
    /// How many of other addresses may try at once, and for how long each.
    private static let strangerLimit = 3
    private static let strangerPatience = Duration.seconds(5)
    /// How long what says goodbye may wait for a tick, and how often it is looked whether it has left.
    private static let closingPatience = Duration.milliseconds(100)
    private static let closingPause = Duration.milliseconds(5)
    /// What begins a record of a handshake (RFC 6347, section 4.1).
    private static let handshakeRecord: UInt8 = 22
}
