import CallBasics
import SDP
import Testing

@testable import SIP

/// User agents on one network in virtual time: datagrams and connections take 10 ms, and may be lost by order.
struct AgentWorld {
    struct Node {
        var agent: UserAgent
        let address: SocketAddress
        var events: [AgentEvent] = []
    }

    private enum Packet {
        case datagram([UInt8], from: SocketAddress, to: SocketAddress)
        case connect(node: Int, Flow)
        case bytes([UInt8], node: Int, Flow)
        case closed(node: Int, Flow)
    }

    var now = MediaTime.zero
    var nodes: [Node] = []
    private var packets: [(time: MediaTime, order: Int, packet: Packet)] = []
    private var order = 0
    private var peers: [Flow: (node: Int, flow: Flow)] = [:]
    /// Whether a datagram arrives; it is asked for each, with its start line.
    var arrives: (String) -> Bool = { _ in true }
    /// The start lines of all that was sent, in order, behind the index of who sent it.
    var sent: [String] = []
    /// The bytes of all that was sent, with the index of who sent it.
    var wire: [(node: Int, bytes: [UInt8])] = []

    /// Adds an agent on a port of 192.0.2.1 and up, and gives its index.
    mutating func add(_ name: String, _ change: (inout AgentConfiguration) -> Void = { _ in }) throws -> Int {
        let address = try #require(SocketAddress(host: "192.0.2.\(nodes.count + 1)", port: 5060))
        let uri = try SIPURI(parsing: Bytes("sip:\(name)@\(address.host)"))
        var configuration = AgentConfiguration(identity: NameAddress(uri))
        change(&configuration)
        var agent = UserAgent(configuration, seed: UInt64(nodes.count + 1))
        for transport in [Flow.Transport.udp, .tcp] { agent.setLocalAddresses([address], of: transport, at: now) }
        nodes.append(Node(agent: agent, address: address))
        return nodes.count - 1
    }

    /// Lets an agent do something, and carries what it says.
    @discardableResult
    mutating func with<Result>(_ index: Int, _ body: (inout UserAgent, MediaTime) throws -> Result) rethrows -> Result {
        let result = try body(&nodes[index].agent, now)
        carry(index)
        return result
    }

    private mutating func carry(_ index: Int) {
        while let output = nodes[index].agent.poll() {
            switch output {
            case .open(let flow, _): push(.connect(node: index, flow))
            case .send(let bytes, let flow):
                let line = String(decoding: bytes.prefix { $0 != 0x0D }, as: UTF8.self)
                wire.append((index, bytes))
                sent.append("\(index) \(line)")
                guard flow.transport == .udp else {
                    if let peer = peers[flow] { push(.bytes(bytes, node: peer.node, peer.flow)) }
                    continue
                }
                guard arrives(line) else { continue }
                push(.datagram(bytes, from: flow.local, to: flow.remote))
            case .close(let flow):
                if let peer = peers.removeValue(forKey: flow) { push(.closed(node: peer.node, peer.flow)) }
            case .ask: Issue.record("a name was asked for")
            case .event(let event): nodes[index].events.append(event)
            }
        }
    }

    private mutating func push(_ packet: Packet) {
        order += 1
        packets.append((now + .milliseconds(10), order, packet))
    }

    /// Lets time go on until `end`, or until nothing is to happen any more.
    mutating func run(for duration: Duration) {
        let end = now + duration
        while true {
            let packet = packets.indices.min {
                (packets[$0].time, packets[$0].order) < (packets[$1].time, packets[$1].order)
            }
            let deadline = nodes.compactMap(\.agent.deadline).min()
            let next = [packet.map { packets[$0].time }, deadline].compactMap(\.self).min()
            guard let next, next <= end else { break }
            now = max(now, next)
            if let packet, packets[packet].time <= now {
                deliver(packets.remove(at: packet).packet)
            } else {
                for index in nodes.indices {
                    nodes[index].agent.handleTimeout(at: now)
                    carry(index)
                }
            }
        }
        now = end
    }

    private mutating func deliver(_ packet: Packet) {
        switch packet {
        case .datagram(let bytes, let from, let to):
            guard let index = nodes.firstIndex(where: { $0.address == to }) else { return }
            nodes[index].agent.receive(datagram: bytes, local: to, remote: from, at: now)
            carry(index)
        case .connect(let node, let flow):
            guard let index = nodes.firstIndex(where: { $0.address == flow.remote }),
                let accepted = nodes[index].agent.accept(
                    flow.transport,
                    local: flow.remote,
                    remote: flow.local,
                    at: now
                )
            else {
                nodes[node].agent.handleFailed(flow, at: now)
                return carry(node)
            }
            peers[flow] = (index, accepted)
            peers[accepted] = (node, flow)
            nodes[node].agent.handleOpened(flow, at: now)
            carry(node)
        case .bytes(let bytes, let node, let flow):
            nodes[node].agent.receive(bytes, on: flow, at: now)
            carry(node)
        case .closed(let node, let flow):
            peers[flow] = nil
            nodes[node].agent.handleFailed(flow, at: now)
            carry(node)
        }
    }

    /// What an agent told since the last time, as short words.
    mutating func words(_ index: Int) -> [String] {
        defer { nodes[index].events = [] }
        return nodes[index].events.compactMap(\.word)
    }

    /// The call that was told last.
    func call(_ index: Int) throws -> CallHandle {
        try #require(nodes[index].events.compactMap(\.call).last)
    }
}

extension AgentEvent {
    var word: String? {
        switch self {
        case .registration(_, let state, _): "registration \(state)"
        case .registrationFailed: "registration unanswered"
        case .incoming: "incoming"
        case .progress(_, let response): "progress \(response.statusCode ?? 0)"
        case .agreed(_, let session):
            "agreed \(session.audio?.direction.word ?? "none")"
                + (session.audio?.isHeldRemotely == true ? " held by them" : "")
                + (session.audio?.isHeldLocally == true ? " held by us" : "")
        case .established: "established"
        case .key(_, let relay): "key \(relay.key)"
        case .changeRefused(_, let status): "refused \(status)"
        case .ended(_, let end): "ended \(end.side) \(end.cause)"
        case .message(let message, _): "message \(String(decoding: message.body, as: UTF8.self))"
        case .response(_, let response, _): "response \(response.statusCode ?? 0)"
        case .failed: "failed"
        case .targets: nil
        }
    }
}

extension MediaDirection {
    fileprivate var word: String { "\(sends ? "sends" : "")\(receives ? "receives" : "")" }
}

extension SessionConfiguration {
    /// PCMU at an address.
    static func plain(_ host: String, port: UInt16 = 4000) -> SessionConfiguration {
        let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        return SessionConfiguration(address: host, media: [MediaConfiguration(port: port, formats: [format])])
    }
}
