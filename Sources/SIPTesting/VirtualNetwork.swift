package import CallBasics
package import SIP
package import SIPTransport

/// User agents and servers on one network in virtual time: datagrams and connections are under way for a while, and datagrams may be lost,
/// doubled and overtaken, all by the seed.
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
        /// Datagrams that arrive twice, each time with a delay of its own, 0 to 1.
        package var doubling = 0.0

        package init() {}
    }

    /// An agent with its address.
    package struct Node {
        package var agent: UserAgent
        package fileprivate(set) var address: SocketAddress
        /// What it told, the oldest first; whoever reads it empties it.
        package var events: [AgentEvent] = []
    }

    /// A server with its address.
    package struct ServerNode {
        package var server: SIPServer
        package let address: SocketAddress
        /// What it told, the oldest first; whoever reads it empties it.
        package var events: [ServerEvent] = []
    }

    /// Where something is.
    package enum Place: Hashable, Sendable {
        /// The index in `nodes`.
        case agent(Int)
        /// The index in `servers`.
        case server(Int)
    }

    /// A message as it was sent, lost or not.
    package struct SentMessage {
        /// Who sent it.
        package let place: Place
        package let bytes: [UInt8]
        package let time: MediaTime

        /// Its first line.
        package var startLine: String { String(decoding: bytes.prefix { $0 != 0x0D }, as: UTF8.self) }
    }

    private enum Packet {
        case datagram([UInt8], from: SocketAddress, to: SocketAddress)
        case connect(Place, Flow)
        case input(ElementInput, Place)
    }

    private struct Waiting {
        let time: MediaTime
        let packet: Packet
    }

    package var now = MediaTime.zero
    package var nodes: [Node] = []
    package var servers: [ServerNode] = []
    package var conditions: Conditions
    /// Whether a datagram arrives that is not lost by chance; it is asked for each, with its start line.
    package var arrives: (String) -> Bool = { _ in true }
    /// Whether what is sent finds a way out of its machine; it is asked for each datagram and connection, with the own address.
    ///
    /// What finds none fails, as where the kernel has no route.
    package var leaves: (SocketAddress) -> Bool = { _ in true }
    /// Whether a connection is taken; it is asked for each, with the address that it is for.
    package var takesConnections: (SocketAddress) -> Bool = { _ in true }
    /// The port that connections leave by, as others see it; nil is that of the own address.
    package var connectionPort: UInt16?
    /// Hears of each message as it is sent, lost or not, and as it arrives, with where that is.
    package var tap: ((Place, TappedMessage) -> Void)?
    /// Whether `sent` keeps what is sent from now on.
    package var keepsSent = true
    /// All that was sent, in order; keep-alives of line ends are not here.
    package private(set) var sent: [SentMessage] = []
    /// What is under way, the one that arrives first at the end.
    private var waiting: [Waiting] = []
    private var peers: [Flow: (place: Place, flow: Flow)] = [:]
    private var places: [SocketAddress: Place] = [:]
    private var generator: SeededGenerator

    package init(seed: UInt64 = 1, _ conditions: Conditions = Conditions()) {
        generator = SeededGenerator(seed: seed)
        self.conditions = conditions
    }

    private static func addresses(_ address: SocketAddress) -> [(Flow.Transport, SocketAddress)] {
        [(.udp, address), (.tcp, address), (.tls, address.with(port: 5061))]
    }

    /// Adds an agent at 192.0.2.1 and up, port 5060, for TLS 5061, and gives its index.
    ///
    /// Throws: `badRequest` when the name cannot stand in a URI
    package mutating func add(_ name: String, _ change: (inout AgentConfiguration) -> Void = { _ in }) throws(SIPError)
        -> Int
    {
        let address = SocketAddress(ipv4: 0xC000_0201 + UInt32(nodes.count), port: 5060)
        let uri = try SIPURI(parsing: Bytes("sip:\(name)@\(address.host)"))
        var configuration = AgentConfiguration(identity: NameAddress(uri))
        configuration.transports = Flow.Transport.allCases
        change(&configuration)
        var agent = UserAgent(configuration, seed: generator.next())
        for (transport, address) in Self.addresses(address) {
            agent.setLocalAddresses([address], of: transport, at: now)
            places[address] = .agent(nodes.count)
        }
        nodes.append(Node(agent: agent, address: address))
        return nodes.count - 1
    }

    /// Gives an agent another address; what is on its way to the former one is lost.
    package mutating func move(_ index: Int, to address: SocketAddress) {
        for (_, former) in Self.addresses(nodes[index].address) { places[former] = nil }
        nodes[index].address = address
        for (transport, address) in Self.addresses(address) {
            places[address] = .agent(index)
            nodes[index].agent.setLocalAddresses([address], of: transport, at: now)
        }
        carry(.agent(index))
    }

    /// Adds a server at 198.51.100.1 and up, port 5060, for TLS 5061, which all names lead to that are its domain, and gives its index.
    package mutating func add(_ configuration: ServerConfiguration) -> Int {
        let address = SocketAddress(ipv4: 0xC633_6401 + UInt32(servers.count), port: 5060)
        var server = SIPServer(configuration, seed: generator.next())
        for (transport, address) in Self.addresses(address) {
            server.setLocalAddresses([address], of: transport, at: now)
            places[address] = .server(servers.count)
        }
        servers.append(ServerNode(server: server, address: address))
        return servers.count - 1
    }

    /// Lets an agent do something, and carries what it says.
    @discardableResult
    package mutating func with<Result>(
        _ index: Int,
        _ body: (inout UserAgent, MediaTime) throws -> Result
    ) rethrows -> Result {
        let result = try body(&nodes[index].agent, now)
        carry(.agent(index))
        return result
    }

    /// What an agent told since the last time.
    package mutating func takeEvents(_ index: Int) -> [AgentEvent] {
        defer { nodes[index].events = [] }
        return nodes[index].events
    }

    /// What a server told since the last time.
    package mutating func takeEvents(ofServer index: Int) -> [ServerEvent] {
        defer { servers[index].events = [] }
        return servers[index].events
    }

    /// Lets time go on for `duration`.
    package mutating func run(for duration: Duration) {
        let end = now + duration
        while true {
            guard let next = nextTime, next <= end else { break }
            now = max(now, next)
            if let first = waiting.last, first.time <= now {
                waiting.removeLast()
                deliver(first.packet)
            } else {
                for index in nodes.indices { handle(.timeout, at: .agent(index)) }
                for index in servers.indices { handle(.timeout, at: .server(index)) }
            }
        }
        now = end
    }

    /// When something happens next; nil when nothing does.
    package var nextTime: MediaTime? {
        var next = waiting.last?.time
        func take(_ time: MediaTime?) {
            if let time { next = min(next ?? time, time) }
        }
        for index in nodes.indices { take(nodes[index].agent.deadline) }
        for index in servers.indices { take(servers[index].server.deadline) }
        return next
    }

    /// Gives an input to an agent or a server, and carries what it says.
    package mutating func handle(_ input: ElementInput, at place: Place) {
        switch place {
        case .agent(let index): nodes[index].agent.handle(input, at: now)
        case .server(let index): servers[index].server.handle(input, at: now)
        }
        carry(place)
    }

    private mutating func carry(_ place: Place) {
        switch place {
        case .agent(let index):
            while let output = nodes[index].agent.poll() {
                if let event = carry(output, of: place) { nodes[index].events.append(event) }
            }
        case .server(let index):
            while let output = servers[index].server.poll() {
                if let event = carry(output, of: place) { servers[index].events.append(event) }
            }
        }
    }

    private mutating func carry<Event>(_ output: ElementOutput<Event>, of place: Place) -> Event? {
        switch output {
        case .open(let flow, _): push(.connect(place, flow))
        case .send(let bytes, let flow): send(bytes, flow, from: place)
        case .close(let flow):
            if let peer = peers.removeValue(forKey: flow) { push(.input(.failed(peer.flow), peer.place)) }
        case .ask(let question): handle(.answer(answer(to: question), to: question), at: place)
        case .event(let event): return event
        }
        return nil
    }

    /// The name of a server's domain leads to its address; other names lead nowhere.
    private func answer(to question: DNSQuestion) -> DNSAnswer {
        let server = servers.first { DNSName($0.server.configuration.domain) == question.name }
        guard let server else { return .noSuchName(nil) }
        guard question.kind == .a else { return .noData(nil) }
        return .records([DNSRecord(question.name, seconds: 3600, .address(server.address))])
    }

    private mutating func send(_ bytes: [UInt8], _ flow: Flow, from place: Place) {
        guard leaves(flow.local) else { return push(.input(.failed(flow), place)) }
        let message = SentMessage(place: place, bytes: bytes, time: now)
        if bytes.count > 4 {
            if keepsSent { sent.append(message) }
            tap?(place, TappedMessage(bytes, flow, isSent: true, at: now))
        }
        guard flow.transport == .udp else {
            if let peer = peers[flow] { push(.input(.bytes(bytes, peer.flow), peer.place)) }
            return
        }
        let isLost = conditions.loss > 0 && generator.nextUnit() < conditions.loss
        guard !isLost, arrives(message.startLine) else { return }
        let isDoubled = conditions.doubling > 0 && generator.nextUnit() < conditions.doubling
        for _ in 0..<(isDoubled ? 2 : 1) {
            let extra = conditions.jitter > .zero ? conditions.jitter * generator.nextUnit() : .zero
            push(.datagram(bytes, from: flow.local, to: flow.remote), extra)
        }
    }

    private mutating func push(_ packet: Packet, _ extra: Duration = .zero) {
        let time = now + conditions.delay + extra
        // Those of one time arrive in the order in which they were sent.
        var (low, high) = (0, waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if waiting[middle].time > time { low = middle + 1 } else { high = middle }
        }
        waiting.insert(Waiting(time: time, packet: packet), at: low)
    }

    private mutating func deliver(_ packet: Packet) {
        switch packet {
        case .datagram(let bytes, let from, let to):
            guard let place = places[to] else { return }
            noteArrival(of: bytes, Flow(.udp, local: to, remote: from), at: place)
            handle(.datagram(bytes, local: to, remote: from), at: place)
        case .connect(let place, let flow): connect(place, flow)
        case .input(let input, let place):
            switch input {
            case .failed(let flow): peers[flow] = nil
            case .bytes(let bytes, let flow): noteArrival(of: bytes, flow, at: place)
            default: break
            }
            handle(input, at: place)
        }
    }

    private func noteArrival(of bytes: [UInt8], _ flow: Flow, at place: Place) {
        if bytes.count > 4 { tap?(place, TappedMessage(bytes, flow, isSent: false, at: now)) }
    }

    private mutating func connect(_ place: Place, _ flow: Flow) {
        guard leaves(flow.local), takesConnections(flow.remote), let other = places[flow.remote],
            let accepted = accept(flow, at: other)
        else {
            return handle(.failed(flow), at: place)
        }
        peers[flow] = (other, accepted)
        peers[accepted] = (place, flow)
        handle(.opened(flow), at: place)
    }

    private mutating func accept(_ flow: Flow, at place: Place) -> Flow? {
        let (transport, local) = (flow.transport, flow.remote)
        let remote = flow.local.with(port: connectionPort ?? flow.local.port)
        switch place {
        case .agent(let index):
            return nodes[index].agent.accept(transport, local: local, remote: remote, at: now)
        case .server(let index):
            return servers[index].server.accept(transport, local: local, remote: remote, at: now)
        }
    }
}
