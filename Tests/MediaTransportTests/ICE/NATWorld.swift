import CallBasics
import TestSupport

@testable import MediaTransport
@testable import SDP

/// What a NAT does with ports, and whom it lets in.
///
/// Source: RFC 4787, sections 4.1 and 5.
enum NATKind: CaseIterable, Sendable {
    case none
    /// One outer port for all, through which all come in.
    case endpointIndependent
    /// One for all; who has been sent to from it comes in, by any port, or by the one that was sent to.
    case addressRestricted
    case portRestricted
    /// One for each that is sent to, through which only that one comes in.
    case symmetric

    /// Whether two sides behind such NATs find a way without help.
    func finds(_ other: NATKind) -> Bool {
        switch (self, other) {
        case (.symmetric, .symmetric), (.symmetric, .portRestricted), (.portRestricted, .symmetric): false
        default: true
        }
    }
}

/// Two sides, each behind a NAT, and a server that tells how they are seen: in virtual time.
struct NATWorld {
    private struct NAT {
        let kind: NATKind
        let inside: SocketAddress
        let outside: SocketAddress
        /// Outer ports, by whom they are for; nil for all.
        var ports: [SocketAddress?: UInt16] = [:]
        /// Who has been sent to from an outer port.
        var known: [UInt16: Set<SocketAddress>] = [:]

        mutating func source(to destination: SocketAddress) -> SocketAddress {
            guard kind != .none else { return inside }
            let key = kind == .symmetric ? destination : nil
            let port = ports[key] ?? UInt16(20_000 + ports.count)
            ports[key] = port
            known[port, default: []].insert(destination)
            return outside.with(port: port)
        }

        func lets(_ source: SocketAddress, in destination: SocketAddress) -> Bool {
            guard kind != .none else { return destination == inside }
            guard destination.host == outside.host, let known = known[destination.port] else { return false }
            switch kind {
            case .none, .endpointIndependent: return true
            case .addressRestricted: return known.contains { $0.host == source.host }
            case .portRestricted, .symmetric: return known.contains(source)
            }
        }
    }

    private struct Datagram {
        let time: MediaTime
        let bytes: [UInt8]
        let source: SocketAddress
        let destination: SocketAddress
    }

    static let server = SocketAddress(ipv4: 0xC633_6401, port: 3478)
    /// Tells how sides are seen, and passes on what they send each other.
    private(set) var relay = RelayServer(at: NATWorld.server)

    /// What is lost of a hundred.
    var lossPercent = 0
    /// How long a datagram is under way.
    var delay = Duration.milliseconds(20)
    private(set) var now = MediaTime.zero
    private(set) var agents: [RoutedAgent] = []
    /// What has come that is no STUN, by side.
    private(set) var heard = [0, 0]
    private var nats: [NAT]
    private var underWay: [Datagram] = []
    private var generator: SeededGenerator

    init(_ kinds: [NATKind], seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        nats = kinds.enumerated().map { index, kind in
            let outside = SocketAddress(ipv4: 0xCB00_7100 + UInt32(index) + 1, port: 5000)
            let inside = SocketAddress(ipv4: 0x0A00_0002 + UInt32(index) << 8, port: 5000)
            return NAT(kind: kind, inside: kind == .none ? outside : inside, outside: outside)
        }
    }

    // MARK: Both sides

    private static let credentials = ["one", "two"].map {
        ICECredentials(userFragment: "side-\($0)", password: "the password of side \($0)")
    }

    /// Has both sides ask how they are seen, and look for the way to each other from then on.
    ///
    /// - Parameters:
    ///   - controlling: Which side controls, by what each believes.
    ///   - lite: Which side only answers.
    ///   - relayed: Which sides have an address at the relay.
    ///   - nonceLife: How many requests the relay takes before it wants another nonce.
    mutating func begin(
        controlling: [Bool] = [true, false],
        lite: Int? = nil,
        relayed: Set<Int> = [],
        nonceLife: Int = .max
    ) {
        relay.nonceLife = nonceLife
        let gathered = [0, 1].map { gather(side: $0, hasRelay: relayed.contains($0)) }
        agents = [0, 1].map { side in
            let session = AgreedICE.Session(local: Self.credentials[side], remote: Self.credentials[1 - side])
            let agreed = AgreedICE(
                session,
                isFull: side != lite,
                isControlling: controlling[side],
                candidates: gathered[1 - side].candidates
            )
            let generator = SeededGenerator(seed: generator.next())
            return RoutedAgent(agreed, gathered[side].relay, tag: UInt32(side), generator, at: now)
        }
    }

    private mutating func gather(
        side: Int,
        hasRelay: Bool
    ) -> (candidates: [ICECandidate], relay: TURNAllocation?) {
        let allocation = TURNAllocation(
            at: Self.server,
            user: RelayServer.user,
            password: RelayServer.password,
            SeededGenerator(seed: generator.next()),
            at: now
        )
        let mapping = MappingQuery([Self.server], &generator, at: now)
        var query = GatheringQuery(mapping, hasRelay ? [allocation] : [], at: now)
        while let next = query.advance(to: now) {
            for (bytes, destination) in query.takeDatagrams() { send(bytes, from: side, to: destination) }
            guard let datagram = takeNext(by: next) else { continue }
            query.take(datagram.bytes, from: datagram.source, at: now)
        }
        let mapped = query.answers.first?.mapped ?? query.relay?.mapped
        let addresses: [(kind: ICECandidate.Kind, address: SocketAddress?)] = [
            (.host, nats[side].inside), (.serverReflexive, mapped == nats[side].inside ? nil : mapped),
            (.relay, query.relay?.relayed),
        ]
        let candidates = addresses.compactMap { kind, address in
            address.map { ICECandidate(kind, $0, priority: ICEComponent.media.priority(kind)) }
        }
        return (candidates, query.relay)
    }

    /// Has a side send sound by the way that its agent has found, as the media thread does: by a channel where it goes by a relay.
    mutating func sendSound(from side: Int) {
        guard let route = agents[side].destination else { return }
        guard route.isRelayed else { return send(Self.sound, from: side, to: route.peer) }
        guard let channel = agents[side].channel else { return }
        send(ChannelData.wrapped(Self.sound, channel), from: side, to: Self.server)
    }

    private static let sound: [UInt8] = [0x80, 0, 0, 0]

    /// Behind its NAT, a side gets another outer port for all that it sends from now on.
    mutating func forgetPorts(of side: Int) {
        nats[side].ports = nats[side].ports.mapValues { $0 + 1000 }
        nats[side].known = [:]
    }

    // MARK: The network

    /// Whether datagrams of a side still leave; false for one that has lost its network.
    var isOn = [true, true]

    private mutating func send(_ bytes: [UInt8], from side: Int, to destination: SocketAddress) {
        let source = nats[side].source(to: destination)
        if isOn[side] { carry(bytes, from: source, to: destination) }
    }

    private mutating func carry(_ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress) {
        guard Int.random(in: 0..<100, using: &generator) >= lossPercent else { return }
        underWay.append(Datagram(time: now + delay, bytes: bytes, source: source, destination: destination))
    }

    /// Lets time go by until the next datagram is there for a side, or until `limit`.
    private mutating func takeNext(by limit: MediaTime) -> Datagram? {
        while let datagram = takeFirst(by: limit) {
            guard relay.has(datagram.destination) else { return datagram }
            let (bytes, source, destination) = (datagram.bytes, datagram.source, datagram.destination)
            for passed in relay.take(bytes, from: source, to: destination, at: now) {
                carry(passed.bytes, from: passed.source, to: passed.destination)
            }
        }
        return nil
    }

    private mutating func takeFirst(by limit: MediaTime) -> Datagram? {
        guard let index = underWay.indices.min(by: { underWay[$0].time < underWay[$1].time }),
            underWay[index].time <= limit
        else {
            now = max(now, limit)
            return nil
        }
        now = max(now, underWay[index].time)
        return underWay.remove(at: index)
    }

    /// Lets both sides work for a time, or until `isDone`.
    mutating func run(for limit: Duration, until isDone: (NATWorld) -> Bool = { _ in false }) {
        let end = now + limit
        while now < end {
            for side in agents.indices {
                agents[side].advance(to: now)
                for (bytes, destination) in agents[side].takeDatagrams() { send(bytes, from: side, to: destination) }
            }
            if isDone(self) { return }
            let next = agents.compactMap(\.next).min() ?? end
            guard let datagram = takeNext(by: min(end, next)) else { continue }
            for (side, nat) in nats.enumerated() where nat.lets(datagram.source, in: datagram.destination) {
                let sound = agents[side].take(datagram.bytes, from: datagram.source, at: now)
                if let sound, agents[side].knows(sound.route) { heard[side] += 1 }
            }
        }
    }

    /// Whether both sides have chosen a way.
    var hasWay: Bool {
        agents.allSatisfy { side in
            (side.agent as? FullAgent).map { $0.selected != nil } ?? (side.destination != nil)
        }
    }
}
