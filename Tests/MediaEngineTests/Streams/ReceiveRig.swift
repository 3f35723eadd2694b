@testable import MediaEngine
import RTP

/// Datagrams that a test lays out; it takes everybody's, as a kernel may that knows no filter.
final class ScriptedLink: DatagramLink, @unchecked Sendable {
    private var waiting: [(bytes: [UInt8], source: SocketAddress, arrival: MediaTime)] = []
    private var next = 0
    private(set) var takenCount = 0
    /// What was sent, in its order.
    private(set) var sent: [(bytes: [UInt8], time: MediaTime)] = []
    /// Where that went.
    private(set) var destinations: [SocketAddress] = []
    /// Whose datagrams alone it was asked to let through; empty is everybody's.
    private(set) var acceptedSources: [SocketAddress] = []
    /// How often it is still to refuse that.
    var refusalCount = 0
    var forgedCount = 0

    func add(_ bytes: [UInt8], from source: SocketAddress, at arrival: MediaTime) {
        waiting.append((bytes, source, arrival))
    }

    /// Forgets what waits.
    func drop() { next = waiting.count }

    func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        sent.append((bytes.indices.map { bytes[$0] }, now))
        destinations.append(destination)
        return true
    }

    func accept(only source: SocketAddress?, or other: SocketAddress?) -> Bool {
        acceptedSources = [source, other].compactMap(\.self)
        guard source != nil, refusalCount > 0 else { return true }
        refusalCount -= 1
        acceptedSources = []
        return false
    }

    func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        guard next < waiting.count else {
            waiting.removeAll(keepingCapacity: true)
            next = 0
            return nil
        }
        let (bytes, source, arrival) = waiting[next]
        next += 1
        takenCount += 1
        for index in 0..<min(bytes.count, buffer.count) { buffer[index] = bytes[index] }
        return ReceivedDatagram(byteCount: bytes.count, source: source, arrival: arrival)
    }
}

/// Keeps the headers of the packets it is given.
final class PacketSink: Filter, @unchecked Sendable {
    private(set) var headers: [PacketHeader] = []

    init() {
        super.init(FilterDescription(name: "packets", purpose: "keeps headers", inputs: [.packets()]))
    }

    override func process(_ io: borrowing FilterIO) {
        let packets = io.inputPackets()
        for index in 0..<packets.count { headers.append(packets.header(index)) }
    }
}

/// A receive filter whose datagrams a test sends, 10 ms a tick.
final class ReceiveRig {
    static let peer = SocketAddress(ipv4: 0x0A00_0001, port: 4000)
    let link = ScriptedLink()
    /// RTCP's own, where there is one.
    let controlLink = ScriptedLink()
    let session: RTPSession
    let filter: RTPReceiveFilter
    let sink = PacketSink()
    let runner = GraphRunner()
    private(set) var now = MediaTime.zero
    private(set) var events: [RTPReceiveEvent] = []

    /// A filter of the leg over `link`, or over `self.link`, whose other side signalling has named; with `hasControlPort`,
    /// RTCP comes over `controlLink`.
    init(
        named: SocketAddress? = ReceiveRig.peer,
        over link: (any DatagramLink)? = nil,
        hasControlPort: Bool = false,
        taking others: (inout PayloadMap) -> Void = { _ in }
    ) throws {
        var payloads = PayloadMap()
        payloads.set(0, .audio, clockRate: 8000)
        others(&payloads)
        var configuration = RTPSessionConfiguration(canonicalName: "test")
        configuration.addresses.destination = named
        configuration.addresses.isMultiplexed = !hasControlPort
        session = RTPSession(configuration: configuration, payloads: payloads, seed: 1)
        let port = RTPPort(
            link: link ?? self.link,
            controlLink: hasControlPort ? controlLink : nil,
            localAddress: .loopback(port: 1)
        )
        filter = RTPReceiveFilter(RTPLeg(session: session, port: port))
        var graph = Graph()
        try graph.connect(filter, to: sink)
        runner.install(try GraphPlan(graph))
    }

    func send(_ number: Int, ssrc: UInt32 = 1, from source: SocketAddress = ReceiveRig.peer) {
        link.add(Self.packet(number, ssrc: ssrc), from: source, at: now)
    }

    func tick(_ count: Int = 1) {
        for _ in 0..<count {
            runner.tick(at: now)
            now += .milliseconds(10)
            runner.drainEvents(of: filter) { events.append($0) }
        }
    }

    static func packet(_ number: Int, ssrc: UInt32) -> [UInt8] {
        packet(number, ssrc: ssrc, payloadType: 0, timestamp: number * 160, [UInt8](repeating: 0xFF, count: 160))
    }

    static func packet(
        _ number: Int,
        ssrc: UInt32 = 1,
        payloadType: UInt8,
        timestamp: Int,
        _ payload: [UInt8]
    ) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 12)
        var target = bytes.mutableSpan
        RTPHeader(
            payloadType: payloadType,
            sequenceNumber: UInt16(truncatingIfNeeded: number),
            timestamp: UInt32(truncatingIfNeeded: timestamp),
            ssrc: ssrc
        ).serialize(into: &target)
        return bytes + payload
    }

    /// RTCP of `ssrc`: a receiver report without blocks, and goodbye.
    static func goodbye(_ ssrc: UInt32) -> [UInt8] {
        let source = withUnsafeBytes(of: ssrc.bigEndian) { Array($0) }
        return [0x80, 201, 0, 1] + source + [0x81, 203, 0, 1] + source
    }

    /// Keys that went down, and keys that went up.
    var keyCounts: [Int] {
        [
            events.count { if case .keyDown = $0 { true } else { false } },
            events.count { if case .keyUp = $0 { true } else { false } },
        ]
    }
    var goodbyeCount: Int { events.count { if case .goodbye = $0 { true } else { false } } }
    var sourceChangeCount: Int { events.count { if case .sourceChanged = $0 { true } else { false } } }
}
