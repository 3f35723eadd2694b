package import CallBasics
package import SIP

/// User agents on one network in virtual time: datagrams and connections are under way for a while, and datagrams may be lost,
/// all by the seed.
///
/// The same seed and the same calls give the same bytes.
/// Thread: control; it allocates. A copy is a snapshot.
package struct VirtualNetwork {
    /// What the network does to what is sent.
    package struct Conditions: Hashable, Sendable {
        /// How long everything is under way.
        package var delay = Duration.milliseconds(10)
        /// What is added to the delay of a datagram, drawn evenly from zero to this: they may overtake each other.
        package var jitter = Duration.zero
        /// Datagrams that are lost, 0 to 1.
        package var loss = 0.0

        package init() {}
    }

    /// An agent with its address.
    package struct Node {
        package var agent: UserAgent
        package let address: SocketAddress
        /// What it told, the oldest first; whoever reads it empties it.
        package var events: [AgentEvent] = []
    }

    /// A message as it was sent, lost or not.
    package struct SentMessage {
        /// The index of the node.
        package let node: Int
        package let bytes: [UInt8]
        package let time: MediaTime

        /// Its first line.
        package var startLine: String { String(decoding: bytes.prefix { $0 != 0x0D }, as: UTF8.self) }
    }

    private enum Packet {
        case datagram([UInt8], from: SocketAddress, to: SocketAddress)
        case connect(node: Int, Flow)
        case bytes([UInt8], node: Int, Flow)
        case closed(node: Int, Flow)
    }

    private struct Waiting {
        let time: MediaTime
        let order: Int
        let packet: Packet
    }

    package var now = MediaTime.zero
    package var nodes: [Node] = []
    package var conditions: Conditions
    /// Whether a datagram arrives that is not lost by chance; it is asked for each, with its start line.
    package var arrives: (String) -> Bool = { _ in true }
    /// All that was sent, in order; keep-alives of line ends are not here.
    package private(set) var sent: [SentMessage] = []
    private var waiting: [Waiting] = []
    private var order = 0
    private var peers: [Flow: (node: Int, flow: Flow)] = [:]
    private var generator: SeededGenerator

    package init(seed: UInt64 = 1, _ conditions: Conditions = Conditions()) {
        generator = SeededGenerator(seed: seed)
        self.conditions = conditions
    }

    /// Adds an agent at 192.0.2.1 and up, port 5060, and gives its index.
    ///
    /// Throws: `badRequest` when the name cannot stand in a URI
    package mutating func add(_ name: String, _ change: (inout AgentConfiguration) -> Void = { _ in }) throws(SIPError)
        -> Int
    {
        let address = SocketAddress(ipv4: 0xC000_0201 + UInt32(nodes.count), port: 5060)
        let uri = try SIPURI(parsing: Bytes("sip:\(name)@\(address.host)"))
        var configuration = AgentConfiguration(identity: NameAddress(uri))
        change(&configuration)
        var agent = UserAgent(configuration, seed: generator.next())
        for transport in [Flow.Transport.udp, .tcp] { agent.setLocalAddresses([address], of: transport, at: now) }
        nodes.append(Node(agent: agent, address: address))
        return nodes.count - 1
    }

    /// Lets an agent do something, and carries what it says.
    @discardableResult
    package mutating func with<Result>(
        _ index: Int,
        _ body: (inout UserAgent, MediaTime) throws -> Result
    ) rethrows -> Result {
        let result = try body(&nodes[index].agent, now)
        carry(index)
        return result
    }

    /// What an agent told since the last time.
    package mutating func takeEvents(_ index: Int) -> [AgentEvent] {
        defer { nodes[index].events = [] }
        return nodes[index].events
    }

    /// Lets time go on for `duration`.
    package mutating func run(for duration: Duration) {
        let end = now + duration
        while true {
            let place = waiting.indices.min {
                (waiting[$0].time, waiting[$0].order) < (waiting[$1].time, waiting[$1].order)
            }
            let deadline = nodes.compactMap(\.agent.deadline).min()
            let next = [place.map { waiting[$0].time }, deadline].compactMap(\.self).min()
            guard let next, next <= end else { break }
            now = max(now, next)
            if let place, waiting[place].time <= now {
                deliver(waiting.remove(at: place).packet)
            } else {
                for index in nodes.indices { with(index) { agent, now in agent.handleTimeout(at: now) } }
            }
        }
        now = end
    }

    private mutating func carry(_ index: Int) {
        while let output = nodes[index].agent.poll() {
            switch output {
            case .open(let flow, _): push(.connect(node: index, flow))
            case .send(let bytes, let flow): send(bytes, flow, from: index)
            case .close(let flow):
                if let peer = peers.removeValue(forKey: flow) { push(.closed(node: peer.node, peer.flow)) }
            case .ask(let question): nodes[index].agent.receive(.noSuchName(nil), to: question, at: now)
            case .event(let event): nodes[index].events.append(event)
            }
        }
    }

    private mutating func send(_ bytes: [UInt8], _ flow: Flow, from index: Int) {
        let message = SentMessage(node: index, bytes: bytes, time: now)
        if bytes.count > 4 { sent.append(message) }
        guard flow.transport == .udp else {
            if let peer = peers[flow] { push(.bytes(bytes, node: peer.node, peer.flow)) }
            return
        }
        let isLost = conditions.loss > 0 && generator.nextUnit() < conditions.loss
        guard !isLost, arrives(message.startLine) else { return }
        let extra = conditions.jitter > .zero ? conditions.jitter * generator.nextUnit() : .zero
        push(.datagram(bytes, from: flow.local, to: flow.remote), extra)
    }

    private mutating func push(_ packet: Packet, _ extra: Duration = .zero) {
        order += 1
        waiting.append(Waiting(time: now + conditions.delay + extra, order: order, packet: packet))
    }

    private mutating func deliver(_ packet: Packet) {
        switch packet {
        case .datagram(let bytes, let from, let to):
            guard let index = nodes.firstIndex(where: { $0.address == to }) else { return }
            with(index) { agent, now in agent.receive(datagram: bytes, local: to, remote: from, at: now) }
        case .connect(let node, let flow): connect(node, flow)
        case .bytes(let bytes, let node, let flow):
            with(node) { agent, now in agent.receive(bytes, on: flow, at: now) }
        case .closed(let node, let flow):
            peers[flow] = nil
            with(node) { agent, now in agent.handleFailed(flow, at: now) }
        }
    }

    private mutating func connect(_ node: Int, _ flow: Flow) {
        guard let index = nodes.firstIndex(where: { $0.address == flow.remote }),
            let accepted = nodes[index].agent.accept(flow.transport, local: flow.remote, remote: flow.local, at: now)
        else {
            with(node) { agent, now in agent.handleFailed(flow, at: now) }
            return
        }
        peers[flow] = (index, accepted)
        peers[accepted] = (node, flow)
        with(node) { agent, now in agent.handleOpened(flow, at: now) }
    }
}
