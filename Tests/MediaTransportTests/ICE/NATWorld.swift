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

    /// What is lost of a hundred.
    var lossPercent = 0
    /// How long a datagram is under way.
    var delay = Duration.milliseconds(20)
    private(set) var now = MediaTime.zero
    private(set) var agents: [any PathAgent] = []
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
    mutating func begin(controlling: [Bool] = [true, false], lite: Int? = nil) {
        let candidates = [self.candidates(of: 0), self.candidates(of: 1)]
        agents = [0, 1].map { side -> any PathAgent in
            let session = AgreedICE.Session(local: Self.credentials[side], remote: Self.credentials[1 - side])
            let agreed = AgreedICE(
                session,
                isFull: side != lite,
                isControlling: controlling[side],
                candidates: candidates[1 - side]
            )
            guard side != lite else { return LiteAgent(agreed) }
            return FullAgent(agreed, tag: UInt32(side), SeededGenerator(seed: generator.next()), at: now)
        }
    }

    private mutating func candidates(of side: Int) -> [ICECandidate] {
        var query = MappingQuery([Self.server], &generator, at: now)
        while let next = query.advance(to: now) {
            for (bytes, destination) in query.takeDatagrams() { send(bytes, from: side, to: destination) }
            let datagram = takeNext(by: next)
            guard let datagram else { continue }
            if datagram.destination == Self.server {
                answer(datagram)
            } else {
                query.take(datagram.bytes, from: datagram.source, at: now)
            }
        }
        let host = ICECandidate(.host, nats[side].inside, priority: ICEComponent.media.priority(.host))
        guard let mapped = query.answers.first?.mapped, mapped != nats[side].inside else { return [host] }
        return [host, ICECandidate(.serverReflexive, mapped, priority: ICEComponent.media.priority(.serverReflexive))]
    }

    private mutating func answer(_ question: Datagram) {
        guard let message = STUNMessage(parsing: question.bytes) else { return }
        var writer = STUNWriter(.success, .binding, message.transaction)
        writer.append(.xorMappedAddress, question.source)
        carry(writer.finish(withFingerprint: true), from: Self.server, to: question.source)
    }

    /// Has a side send sound to where its agent says.
    mutating func sendSound(from side: Int) {
        guard let destination = agents[side].destination else { return }
        send([0x80, 0, 0, 0], from: side, to: destination)
    }

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

    /// Lets time go by until the next datagram is there, or until `limit`.
    private mutating func takeNext(by limit: MediaTime) -> Datagram? {
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
                if datagram.bytes[0] & 0xC0 == 0 {
                    agents[side].take(datagram.bytes, from: datagram.source, at: now)
                } else if agents[side].knows(datagram.source) {
                    heard[side] += 1
                }
            }
        }
    }

    /// Whether both sides have chosen a way.
    var hasWay: Bool {
        agents.allSatisfy { agent in (agent as? FullAgent).map { $0.selected != nil } ?? (agent.destination != nil) }
    }
}
