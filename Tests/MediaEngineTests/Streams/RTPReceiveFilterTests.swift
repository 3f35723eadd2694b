@testable import MediaEngine
import RTP
import Synchronization
import Testing

/// Datagrams that a test lays out; it takes everybody's, as a kernel may that knows no filter.
private final class ScriptedLink: DatagramLink, @unchecked Sendable {
    private var waiting: [(bytes: [UInt8], source: SocketAddress, arrival: MediaTime)] = []
    private var next = 0
    private(set) var takenCount = 0

    func add(_ bytes: [UInt8], from source: SocketAddress, at arrival: MediaTime) {
        waiting.append((bytes, source, arrival))
    }

    func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool { true }

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
private final class PacketSink: Filter, @unchecked Sendable {
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
private final class ReceiveRig {
    static let peer = SocketAddress(ipv4: 0x0A00_0001, port: 4000)
    let link = ScriptedLink()
    let session: RTPSession
    let filter: RTPReceiveFilter
    let sink = PacketSink()
    private let runner = GraphRunner()
    private(set) var now = MediaTime.zero
    private(set) var events: [RTPReceiveEvent] = []

    init(named: SocketAddress? = ReceiveRig.peer) throws {
        var payloads = PayloadMap()
        payloads.set(0, .audio, clockRate: 8000)
        var configuration = RTPSessionConfiguration(canonicalName: "test")
        configuration.addresses.destination = named
        configuration.addresses.isMultiplexed = true
        session = RTPSession(configuration: configuration, payloads: payloads, seed: 1, began: .zero)
        let leg = RTPLeg(session: session, port: RTPPort(link: link, localAddress: .loopback(port: 1)))
        filter = RTPReceiveFilter(leg, takesRedundancy: false)
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
        var bytes = [UInt8](repeating: 0xFF, count: 172)
        var target = bytes.mutableSpan
        RTPHeader(
            payloadType: 0,
            sequenceNumber: UInt16(truncatingIfNeeded: number),
            timestamp: UInt32(truncatingIfNeeded: number * 160),
            ssrc: ssrc
        ).serialize(into: &target)
        return bytes
    }

    /// RTCP of `ssrc`: a receiver report without blocks, and goodbye.
    static func goodbye(_ ssrc: UInt32) -> [UInt8] {
        let source = withUnsafeBytes(of: ssrc.bigEndian) { Array($0) }
        return [0x80, 201, 0, 1] + source + [0x81, 203, 0, 1] + source
    }

    var goodbyeCount: Int { events.count { if case .goodbye = $0 { true } else { false } } }
    var sourceChangeCount: Int { events.count { if case .sourceChanged = $0 { true } else { false } } }
}

@Suite struct RTPReceiveFilterTests {
    @Test func `20,000 foreign packets a second change nothing, and no real packet is lost`() throws {
        let rig = try ReceiveRig()
        var generator = SeededGenerator(seed: 7)
        rig.send(0)
        rig.tick(2)
        var foreign = 0
        for number in 1..<250 {
            for tick in 0..<2 {
                for _ in 0..<200 {
                    let random = generator.next()
                    // Other hosts, and other ports of the right one, with SSRC and numbers of the real stream.
                    let host = random & 1 == 0 ? 0x0A00_0001 : UInt32(truncatingIfNeeded: random >> 16)
                    let address = SocketAddress(ipv4: host, port: UInt16(truncatingIfNeeded: random >> 48) | 1)
                    let ssrc = random & 2 == 0 ? 1 : UInt32(truncatingIfNeeded: random >> 8)
                    if random & 0x70 == 0 {
                        rig.link.add(ReceiveRig.goodbye(1), from: address, at: rig.now)
                    } else {
                        rig.send(number + Int(random & 4), ssrc: ssrc, from: address)
                    }
                    foreign += 1
                }
                if tick == 0 { rig.send(number) }
                rig.tick()
            }
        }
        rig.tick(4)
        let statistics = rig.session.statistics
        #expect(rig.sink.headers.count == 250)
        #expect(rig.sink.headers.map(\.sequenceNumber) == (0..<250).map { UInt16($0) })
        #expect(statistics.receivedPacketCount == 250 && statistics.lostCount == 0)
        #expect(statistics.remoteSSRC == 1 && statistics.sourceChangeCount == 0 && statistics.collisionCount == 0)
        #expect(rig.session.destination == ReceiveRig.peer)
        #expect(rig.goodbyeCount == 0 && rig.sourceChangeCount == 0)
        #expect(statistics.foreignPacketCount == UInt64(foreign))
        #expect(statistics.otherAddressCount > 0 && statistics.otherControlCount > 0)
        #expect(statistics.otherAddressCount + statistics.otherControlCount == UInt64(foreign))
    }

    @Test func `a flood costs a bounded time`() throws {
        let rig = try ReceiveRig()
        rig.send(0)
        rig.tick(2)
        let before = rig.link.takenCount
        let stranger = SocketAddress(ipv4: 0xC633_6401, port: 1)
        for number in 0..<5000 { rig.send(number, from: stranger) }
        rig.tick()
        #expect(rig.link.takenCount - before <= 1024)
    }

    @Test func `a third party that was first is not heard where signalling named another host`() throws {
        let rig = try ReceiveRig()
        let stranger = SocketAddress(ipv4: 0xC633_6401, port: 4000)
        for number in 0..<100 {
            rig.send(number, ssrc: 9, from: stranger)
            rig.tick(2)
        }
        #expect(rig.sink.headers.isEmpty && rig.session.destination == ReceiveRig.peer)
        #expect(rig.session.statistics.unnamedHostCount == 100)
        rig.send(0)
        rig.tick(2)
        #expect(rig.sink.headers.count == 1 && rig.session.statistics.remoteSSRC == 1)
    }

    @Test func `a new SSRC of the same address is heard from its first packet on`() throws {
        let rig = try ReceiveRig()
        for number in 0..<50 {
            rig.send(number)
            rig.tick(2)
        }
        for number in 0..<50 {
            rig.send(30_000 + number, ssrc: 2)
            rig.tick(2)
        }
        #expect(rig.sink.headers.count == 100)
        #expect(rig.sink.headers.indices.filter { rig.sink.headers[$0].beginsSource } == [0, 50])
        #expect(rig.sourceChangeCount == 1)
        let statistics = rig.session.statistics
        #expect(
            statistics.receivedPacketCount == 100 && statistics.lostCount == 0 && statistics.foreignPacketCount == 0
        )
    }

    @Test func `goodbye is told when the source says it, and by nobody else`() throws {
        let rig = try ReceiveRig()
        for number in 0..<5 {
            rig.send(number)
            rig.tick(2)
        }
        rig.link.add(ReceiveRig.goodbye(1), from: ReceiveRig.peer.with(port: 4002), at: rig.now)
        rig.link.add(ReceiveRig.goodbye(1), from: SocketAddress(ipv4: 0xC633_6401, port: 4000), at: rig.now)
        rig.tick(4)
        #expect(rig.goodbyeCount == 0 && rig.session.statistics.otherControlCount == 2)
        rig.link.add(ReceiveRig.goodbye(1), from: ReceiveRig.peer, at: rig.now)
        rig.tick(4)
        #expect(rig.goodbyeCount == 1)
    }

    @Test func `silence of the other side is told once, and its end`() throws {
        let rig = try ReceiveRig()
        rig.filter.patience.store(1_000_000_000, ordering: .relaxed)
        for number in 0..<10 {
            rig.send(number)
            rig.tick(2)
        }
        rig.tick(300)
        let stalls = rig.events.compactMap { event -> Int64? in
            if case .stalled(let nanoseconds) = event { nanoseconds } else { nil }
        }
        #expect(stalls == [1_000_000_000])
        rig.send(10)
        rig.tick(4)
        #expect(rig.events.count { if case .resumed = $0 { true } else { false } } == 1)
        // While nothing is expected (hold), silence is none.
        rig.filter.patience.store(.max, ordering: .relaxed)
        rig.tick(500)
        #expect(rig.events.count { if case .stalled = $0 { true } else { false } } == 1)
    }
}
