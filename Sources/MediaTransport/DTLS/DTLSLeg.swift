import CallBasics
import RTP
import SDP
import Synchronization

/// One port of a leg: the handshakes on it, and the keys of the one in which the other side proves its certificate.
///
///     wait for ClientHello, or send it ──► handshakes, one an address ──► the first whose certificate fits ──► keys
///
/// By ICE it is the address that checks have chosen, and no other: see `PathAgent`. Without, the address that
/// the description tells always has a place. Behind a NAT the other side comes from another one: of these a
/// few may try at once, and one that fails ends none of the others.
/// Thread: `serve` that of DTLS; the rest any.
/// Source: RFC 5763, section 6.7; RFC 5764, section 5.1.
final class DTLSLeg: @unchecked Sendable {
    /// What has become of the association that is wanted.
    enum Outcome: Sendable {
        case connecting
        case connected(DTLSProof)
        case failed(DTLSError)
        /// Either side has ended it.
        case closed
    }

    /// A handshake with one address.
    private final class Attempt {
        var association: DTLSAssociation
        var route: Route
        let begin: MediaTime

        init(_ association: consuming DTLSAssociation, by route: Route, at now: MediaTime) {
            self.association = association
            (self.route, begin) = (route, now)
        }
    }

    let path = SecurePath()
    let queue: HandshakeQueue
    private let identity: DTLSIdentity
    let server: any HandshakeServer
    let orders = Mutex(Orders())
    /// Takes what ICE tells.
    private let tell: @Sendable (News) -> Void
    let refusedChecks = Atomic(0)

    // Of the thread of DTLS.
    private var wanted: AgreedAssociation?
    /// Finds the way, where both sides have agreed on ICE.
    private var agent: RoutedAgent?
    /// What the way may go by, until there is an agent.
    private var relay: TURNAllocation?
    private var ice: AgreedICE?
    /// What `PathAgent.end` was last; nil before there was a way.
    private var lastEnd: MediaTime?
    private var remote: Route?
    /// How many packets had been taken when it was looked last, and since when it is no more.
    private var heard = (count: 0, time: MediaTime.zero)
    /// When it was told last that nothing gets through; nil while something does.
    private var lossTime: MediaTime?
    private var isConnecting = false
    private var attempts: [Attempt] = []
    private var connected: Attempt?
    private var lastError: DTLSError?
    /// When it fails; nil while nobody waits for keys.
    private var deadline: MediaTime?
    /// When it ends, whatever has been sent; nil before it closes.
    private var closing: MediaTime?

    /// A leg that proves `identity`, and may answer checks of ICE for `userFragment`, where there is one, and go by `relay`.
    init(
        _ identity: DTLSIdentity,
        _ userFragment: String? = nil,
        _ relay: TURNAllocation? = nil,
        by server: any HandshakeServer = DTLSThread.shared,
        tell: @escaping @Sendable (News) -> Void = { _ in }
    ) {
        (self.identity, self.relay, self.server, self.tell) = (identity, relay, server, tell)
        queue = HandshakeQueue(checksFor: userFragment, by: server, relay: relay)
        orders.withLock { $0.hasRelay = relay != nil }
    }

    // MARK: The thread of DTLS

    /// Tells those who wait, unless another association is wanted by now.
    func settle(_ outcome: Outcome, evenIfNew: Bool = false) {
        let waiting = orders.withLock { orders in
            evenIfNew || !orders.isNew ? orders.settle(outcome) : (waiters: [], enders: [])
        }
        for waiter in waiting.waiters { waiter.resume(returning: outcome) }
        for ender in waiting.enders { ender.resume() }
    }

    /// Does what there is to do; answers when it has to again, unless something comes before.
    func serve(at now: MediaTime, _ buffer: inout [UInt8]) -> MediaTime? {
        let closes = takeOrders(now)
        var takenCount = 0
        while takenCount < Self.datagramLimit, let (bytes, source) = queue.take(into: &buffer) {
            takenCount += 1
            if agent == nil {
                receive(buffer[bytes], by: Route(source), now)
            } else if let (bytes, route) = agent?.take(Array(buffer[bytes]), from: source, at: now) {
                receive(bytes[...], by: route, now)
            }
        }
        goOn(now)
        for attempt in running where attempt.association.timeout.map({ $0 <= .zero }) ?? false {
            attempt.association.handleTimeout()
        }
        let isLast = closes && closing == nil
        if isLast {
            closing = now + Self.closingTimeLimit
            connected?.association.close()
        }
        for attempt in running {
            for datagram in attempt.association.takeDatagrams() { send(datagram, by: attempt.route, now) }
        }
        if isLast {
            agent?.close(at: now)
            giveBackRelay(now)
        }
        post()
        judge(now)
        if let closing {
            let isDone = queue.isSent && agent?.isReleased ?? true
            if now < closing, !isDone { return now + Self.closingPause }
            end()
            return nil
        }
        // Others come first, however many datagrams there are.
        if takenCount == Self.datagramLimit { return now }
        let times = running.map { $0.association.timeout.map { now + $0 } }
        return (times + [deadline, connected == nil ? nil : wayEnd, agent?.next]).compactMap(\.self).min()
    }

    private func send(_ datagram: [UInt8], by route: Route, _ now: MediaTime) {
        guard agent != nil else { return queue.post(datagram, to: route.peer) }
        agent?.send(datagram, by: route, at: now)
    }

    /// Has leave what ICE, and what goes its way, sends.
    private func post() {
        for (datagram, destination) in agent?.takeDatagrams() ?? [] { queue.post(datagram, to: destination) }
    }

    /// When the way is taken for gone; the one before a restart counts until there is another.
    private var wayEnd: MediaTime? { agent?.end ?? lastEnd }

    private var running: [Attempt] { attempts + [connected].compactMap(\.self) }

    /// Takes what is wanted now; answers whether it is to end.
    private func takeOrders(_ now: MediaTime) -> Bool {
        let (next, ice, told, isNew, isTimed, closes) = orders.withLock { orders in
            defer { orders.isNew = false }
            return (orders.wanted, orders.ice, orders.remote, orders.isNew, orders.isTimed, orders.closes)
        }
        takeRenewal(now)
        takeWay(ice, now)
        // By ICE each check tells the way, and what is under way goes there already.
        let remote = agent == nil ? told.map { Route($0) } : self.remote
        if let connected, let remote, connected.route == self.remote { connected.route = remote }
        let hasMoved = remote != self.remote
        self.remote = remote
        if isNew {
            // Somebody else is not to hear, or be heard by, the keys of who was there before.
            if let wanted, next?.fingerprints != wanted.fingerprints { path.stop() }
            (wanted, connected, attempts, lastError, deadline) = (next, nil, [], nil, nil)
            isConnecting = next != nil
        }
        guard isConnecting, let wanted, remote != nil || agent != nil else { return closes }
        if isTimed, deadline == nil {
            deadline = now + (lastError == nil ? Self.timeLimit : Self.secondTimeLimit)
            // The other side may have begun to listen with its answer.
            if let ice, agent?.destination == nil { agent?.add(ice.candidates, at: now) }
        }
        if let remote, wanted.role == .active, isNew || hasMoved || attempts.isEmpty {
            attempts = []
            begin(wanted, by: remote, now)
        }
        return closes
    }

    /// Looks for the way that descriptions agree on; anew by an ICE restart.
    private func takeWay(_ ice: AgreedICE?, _ now: MediaTime) {
        defer { self.ice = ice }
        if let ice, ice.session == self.ice?.session {
            if ice.candidates != self.ice?.candidates { agent?.add(ice.candidates, at: now) }
        } else if let ice {
            if !hasRelay {
                agent?.close(at: now)
                relay?.close(at: now)
            }
            let (relay, generator) = (agent?.relay ?? relay, SystemRandomNumberGenerator())
            agent = RoutedAgent(after: agent, ice, relay, tag: queue.tag, generator, at: now)
            (remote, self.relay) = (nil, nil)
            heard = (path.takenCount, now)
        } else {
            agent?.close(at: now)
            post()
            queue.relay?.use(nil, nil)
            (agent, lastEnd, relay) = (nil, nil, nil)
        }
    }

    /// Goes by the former relay no more, whose address went with the port, and by another one with the next search for the way.
    private func takeRenewal(_ now: MediaTime) {
        guard let renewal = orders.withLock({ $0.renewal.take() }) else { return }
        relay?.close(at: now)
        agent?.forgetRelay(at: now)
        relay = renewal.relay
        queue.relay?.change(to: relay)
        lossTime = now
    }

    /// Gives back an address at a relay that no search has come to go by.
    private func giveBackRelay(_ now: MediaTime) {
        relay?.close(at: now)
        for (datagram, destination) in relay?.takeDatagrams() ?? [] { queue.post(datagram, to: destination) }
    }

    /// Tells what has become of the relay, and of the way: when nothing gets through, and again each 5 s for as long as it does not.
    private func noteLosses(_ now: MediaTime) {
        if agent?.relay?.relayed == nil {
            orders.withLock { if $0.renewal == nil, relay == nil { $0.hasRelay = false } }
        }
        let count = path.takenCount
        if count != heard.count { heard = (count, now) }
        guard connected != nil, agent?.isLost(at: now, silentSince: heard.time) ?? false else { return lossTime = nil }
        if let lossTime, now - lossTime < Self.lossPause { return }
        lossTime = now
        tell(.lost)
    }

    /// Has ICE do what its time has come for, and goes the way that it has found; ends where nobody answers on it any more.
    private func goOn(_ now: MediaTime) {
        guard agent != nil else { return }
        lastEnd = wayEnd
        if connected != nil, let wayEnd, now >= wayEnd {
            connected = nil
            path.stop()
            settle(.failed(.silent))
        }
        agent?.advance(to: now)
        refusedChecks.store(agent?.refusedCount ?? 0, ordering: .relaxed)
        noteLosses(now)
        guard let way = agent?.destination else { return }
        queue.relay?.use(way, agent?.channel)
        guard way != remote else { return }
        remote = way
        for attempt in running { attempt.route = way }
        tell(.found(way))
        if isConnecting, let wanted, wanted.role == .active, attempts.isEmpty { begin(wanted, by: way, now) }
    }

    private func begin(_ wanted: AgreedAssociation, by route: Route, _ now: MediaTime) {
        do throws(DTLSError) {
            let role: DTLSRole = wanted.role == .active ? .active : .passive
            let association = try DTLSAssociation(identity, role: role, fingerprints: Array(wanted.fingerprints))
            attempts.append(Attempt(association, by: route, at: now))
        } catch {
            fail(error)
        }
    }

    private func receive(_ datagram: ArraySlice<UInt8>, by route: Route, _ now: MediaTime) {
        if let agent {
            // Of one side, which has proved its password, by whatever way.
            guard agent.knows(route) else { return }
            if let attempt = running.first { return attempt.association.receive(datagram.span) }
        }
        if let attempt = running.first(where: { $0.route == route }) {
            return attempt.association.receive(datagram.span)
        }
        guard isConnecting, let wanted, wanted.role == .passive, RecordFilter.isClientHello(datagram) else { return }
        if route != remote, agent == nil {
            // A place is free for others after its time.
            attempts.removeAll { $0.route != remote && now - $0.begin > Self.otherTimeLimit }
            guard attempts.count(where: { $0.route != remote }) < Self.otherLimit else { return }
        }
        begin(wanted, by: agent?.destination ?? route, now)
        attempts.last?.association.receive(datagram.span)
    }

    private func judge(_ now: MediaTime) {
        for attempt in attempts {
            switch attempt.association.state {
            case .connecting: break
            case .connected(let keys):
                (connected, attempts, deadline, isConnecting) = (attempt, [], nil, false)
                path.offer(sending: SRTPKeys(keys.sending), receiving: SRTPKeys(keys.receiving))
                return settle(.connected(DTLSProof(suite: keys.suite, fingerprint: keys.fingerprint)))
            case .failed(let error) where attempt.route == remote:
                attempts.removeAll { $0 === attempt }
                lose(error, now)
            case .closed where attempt.route == remote: attempts.removeAll { $0 === attempt }
            // It keeps its place for its time: whoever fails at once does not get this side to begin again and again.
            case .failed, .closed: break
            }
        }
        if let deadline, now >= deadline {
            fail(lastError ?? (agent != nil && remote == nil ? .unreached : .timedOut))
        }
        guard let connected else { return }
        switch connected.association.state {
        case .connecting, .connected: break
        case .failed, .closed:
            // It does not want to hear, or be heard, any more.
            self.connected = nil
            path.stop()
            settle(.closed)
        }
    }

    /// The handshake with the address of the description has failed.
    ///
    /// Anybody can spoil one in the name of the other side while nothing is signed: what waits for it gives it a second
    /// to come again.
    private func lose(_ error: DTLSError, _ now: MediaTime) {
        if error == .timedOut, deadline == nil { return }
        lastError = error
        if error == .timedOut {
            // Whoever is silent may come yet: who is called may answer DTLS only once it answers the call.
            guard let wanted, let remote, wanted.role == .active else { return }
            begin(wanted, by: remote, now)
        } else if wanted?.role == .active {
            fail(error)
        } else if let deadline {
            self.deadline = min(deadline, now + Self.secondTimeLimit)
        }
    }

    private func fail(_ error: DTLSError) {
        (attempts, deadline, isConnecting) = ([], nil, false)
        settle(.failed(error))
    }

    private func end() {
        server.remove(self)
        // Who has hung up since it did not trust this side leaves the reason here.
        if failure == nil { settle(isConnecting ? lastError.map(Outcome.failed) ?? .closed : .closed, evenIfNew: true) }
        (attempts, connected, isConnecting) = ([], nil, false)
        let closers = orders.withLock { orders in
            defer { orders.closers = [] }
            return orders.closers
        }
        for closer in closers { closer.resume() }
    }

    /// How long the other side may take in all, and to come again when a handshake with it has failed.
    private static let timeLimit = Duration.seconds(20)
    private static let secondTimeLimit = Duration.seconds(1)
    /// How many of other addresses may try at once, and for how long each.
    private static let otherLimit = 3
    private static let otherTimeLimit = Duration.seconds(5)
    /// How many datagrams are answered before other legs are served.
    private static let datagramLimit = 16
    /// How long close_notify may wait for a tick, and how often it is looked whether it has left.
    private static let closingTimeLimit = Duration.milliseconds(100)
    private static let closingPause = Duration.milliseconds(5)
    /// How soon it is told again that nothing gets through.
    private static let lossPause = Duration.seconds(5)
}
