import CallBasics
import MediaEngine
import RTP
import SDP

/// An agent of ICE with the relay that it may go by.
///
///     socket ──► STUN ──► agent            what is no STUN ──► the handshake
///        └─ from the relay's server ──► allocation ──► the same, as sent by a peer to the relayed address
///
/// Thread: one at a time.
struct RoutedAgent {
    private(set) var agent: any PathAgent
    private(set) var relay: TURNAllocation?
    /// Checks that proved no password in searches for the way before.
    private let formerRefusedCount: Int
    private let begin: MediaTime
    private var leaving: [(bytes: [UInt8], destination: SocketAddress)] = []

    /// What looks for the way that descriptions have agreed on, by `relay`, too, where that was given.
    ///
    /// - Parameters:
    ///   - former: What has looked for it before; nil at first.
    ///   - agreed: What descriptions say.
    ///   - relay: What the own description tells of.
    ///   - tag: What transactions begin with.
    ///   - generator: Makes the rest of them.
    ///   - now: When both descriptions are known.
    init(
        after former: RoutedAgent? = nil,
        _ agreed: AgreedICE,
        _ relay: TURNAllocation?,
        tag: UInt32,
        _ generator: some RandomNumberGenerator,
        at now: MediaTime
    ) {
        (formerRefusedCount, begin) = (former?.refusedCount ?? 0, now)
        self.relay = relay
        self.relay?.lapse(at: now)
        self.relay?.forgetPeers()
        agent =
            agreed.isFull
            ? FullAgent(agreed, by: self.relay?.relayed, tag: tag, generator, at: now) : LiteAgent(agreed)
        permit(agreed.candidates, at: now)
    }

    // MARK: What is known

    /// The way in use; nil before one is known.
    var destination: Route? { agent.destination }
    /// When the way in use is taken for gone unless something is heard.
    var end: MediaTime? { agent.end }
    var next: MediaTime? { [agent.next, relay?.next].compactMap(\.self).min() }
    var refusedCount: Int { formerRefusedCount + agent.refusedCount }

    /// Whether the other side has shown that it is there.
    func knows(_ route: Route) -> Bool { agent.knows(route) }

    /// Whether another way is to be looked for, where nothing has been heard since `silence`: the relay is gone that it goes by, or
    /// nobody agrees to it any more.
    func isLost(at now: MediaTime, silentSince silence: MediaTime) -> Bool {
        // A search that has come to nothing for so long may do better from another port.
        guard let destination else { return now - begin > Self.searchLimit }
        if destination.isRelayed, relay?.relayed == nil { return true }
        return now - silence > Self.silenceLimit && agent.isLost(at: now)
    }

    /// Until a search for the way comes to nothing: checks of a second, some of which are lost.
    private static let searchLimit = Duration.seconds(5)
    /// Longer than between two reports, of which one is lost.
    private static let silenceLimit = Duration.seconds(8)

    /// What stands for the other side at the relay, where the way in use goes by it; nil where it does not, or the server does not
    /// know yet.
    var channel: UInt16? {
        destination.flatMap { $0.isRelayed ? relay?.channel(of: $0.peer) : nil }
    }

    // MARK: What comes in

    mutating func add(_ candidates: [ICECandidate], at now: MediaTime) {
        agent.add(candidates, at: now)
        permit(candidates, at: now)
    }

    private mutating func permit(_ candidates: [ICECandidate], at now: MediaTime) {
        for candidate in candidates { relay?.permit(candidate.address, at: now) }
    }

    /// Takes what has come.
    ///
    /// - Returns: What is neither of ICE nor of TURN, and by which way it came; nil for the rest.
    mutating func take(
        _ datagram: [UInt8],
        from source: SocketAddress,
        at now: MediaTime
    ) -> (bytes: [UInt8], route: Route)? {
        var (bytes, route) = (datagram, Route(source))
        if let server = relay?.server, source == server {
            guard let passedOn = relay?.take(datagram, at: now) else { return nil }
            (bytes, route) = (passedOn.bytes, Route(passedOn.peer, isRelayed: true))
        }
        guard DatagramKind(of: bytes.span) == .stun else { return (bytes, route) }
        agent.take(bytes, by: route, at: now)
        return nil
    }

    // MARK: What goes out

    mutating func send(_ bytes: [UInt8], by route: Route, at now: MediaTime) {
        guard route.isRelayed else { return leaving.append((bytes, route.peer)) }
        relay?.send(bytes, to: route.peer, at: now)
    }

    /// Does what its time has come for.
    mutating func advance(to now: MediaTime) {
        agent.advance(to: now)
        relay?.advance(to: now)
        if let destination, destination.isRelayed { relay?.bind(destination.peer, at: now) }
        // Whoever needs it does not any more: the server has others to serve.
        if agent.needsNoRelay(at: now) { relay?.close(at: now) }
        for (bytes, route) in agent.takeDatagrams() { send(bytes, by: route, at: now) }
    }

    /// Goes by no relay any more: what it has said last is lost with the port.
    mutating func forgetRelay(at now: MediaTime) {
        relay?.close(at: now)
        relay = nil
    }

    /// Gives the relay back.
    mutating func close(at now: MediaTime) { relay?.close(at: now) }

    /// Whether there is none, or it has been given back.
    var isReleased: Bool { relay?.isReleased ?? true }

    /// What is to be sent, in order, since it was asked last.
    mutating func takeDatagrams() -> [(bytes: [UInt8], destination: SocketAddress)] {
        defer { leaving = [] }
        return leaving + (relay?.takeDatagrams() ?? [])
    }
}
