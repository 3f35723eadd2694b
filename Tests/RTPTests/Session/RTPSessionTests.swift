import CallBasics
@testable import RTP
import TestSupport
import Testing

@Suite struct RTPSessionTests {
    static let peerAddress = SocketAddress(ipv4: 0x0A00_0001, port: 4000)
    static let otherAddress = SocketAddress(ipv4: 0x0A00_0002, port: 5000)

    static let payloads: PayloadMap = {
        var payloads = PayloadMap()
        payloads.set(0, .audio, clockRate: 8000)
        payloads.set(101, .telephoneEvent, clockRate: 8000)
        return payloads
    }()

    static func session(_ seed: UInt64 = 1, _ change: (inout RTPSessionConfiguration) -> Void = { _ in }) -> RTPSession
    {
        var configuration = RTPSessionConfiguration(
            canonicalName: "test@host",
            unixNanosecondsAtZero: 1_700_000_000_000_000_000
        )
        change(&configuration)
        return RTPSession(configuration: configuration, payloads: payloads, seed: seed)
    }

    static func packet(_ sequence: Int, ssrc: UInt32 = 77, payloadType: UInt8 = 0) -> [UInt8] {
        var storage = [UInt8](repeating: 0xFF, count: 172)
        var target = storage.mutableSpan
        RTPHeader(
            payloadType: payloadType,
            sequenceNumber: UInt16(truncatingIfNeeded: sequence),
            timestamp: UInt32(truncatingIfNeeded: sequence * 160),
            ssrc: ssrc
        ).serialize(into: &target)
        return storage
    }

    /// RTCP by which 77, who heard nobody, leaves.
    static let goodbye = bytes("80c90001 0000004d 81cb0001 0000004d")

    static func at(_ milliseconds: Int) -> MediaTime { MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000) }

    static func reason(_ reception: RTPReception) -> RTPReception.Reason? {
        if case .ignored(let reason) = reception { reason } else { nil }
    }

    static func media(_ reception: RTPReception) -> RTPReception.Media? {
        if case .media(let media) = reception { media } else { nil }
    }

    private func control(_ session: RTPSession, at now: MediaTime) -> [UInt8] {
        var storage = [UInt8](repeating: 0, count: RTPSession.maximumControlByteCount)
        var target = storage.mutableSpan
        let count = session.makeRTCP(at: now, into: &target)
        return Array(storage.prefix(count))
    }

    /// The first datagram that the session makes from `start` on, and when.
    private func nextControl(_ session: RTPSession, from start: MediaTime) -> (datagram: [UInt8], time: MediaTime)? {
        var now = start
        for _ in 0..<3000 {
            var storage = [UInt8](repeating: 0, count: RTPSession.maximumControlByteCount)
            var target = storage.mutableSpan
            let count = session.makeRTCP(at: now, into: &target)
            if count > 0 { return (Array(storage.prefix(count)), now) }
            now += .milliseconds(10)
        }
        return nil
    }

    @Test func `packets are numbered from a random start and carry a random offset`() throws {
        let session = Self.session()
        let first = session.prepare(
            payloadType: 0,
            isMarked: true,
            timestamp: 0,
            payloadByteCount: 160,
            clockRate: 8000,
            at: .zero
        )
        let second = session.prepare(
            payloadType: 0,
            isMarked: false,
            timestamp: 160,
            payloadByteCount: 160,
            clockRate: 8000,
            at: Self.at(20)
        )
        #expect(second.sequenceNumber == first.sequenceNumber &+ 1)
        #expect(second.timestamp == first.timestamp &+ 160)
        #expect(first.ssrc == session.localSSRC && first.isMarked)
        #expect(session.statistics.sentPacketCount == 2 && session.statistics.sentPayloadByteCount == 320)
        let same = Self.session().prepare(
            payloadType: 0,
            isMarked: true,
            timestamp: 0,
            payloadByteCount: 0,
            clockRate: 8000,
            at: .zero
        )
        let other = Self.session(2).prepare(
            payloadType: 0,
            isMarked: true,
            timestamp: 0,
            payloadByteCount: 0,
            clockRate: 8000,
            at: .zero
        )
        #expect(same == first && other != first)
    }

    @Test func `the first packet is handed on, and the second locks the source and makes it valid`() throws {
        let session = Self.session()
        let one = session.receive(Self.packet(1).span, from: Self.peerAddress, arrival: .zero)
        let first = try #require(Self.media(one))
        #expect(first.isNewSource && first.verdict == .probation && first.packet.payloadByteCount == 160)
        #expect(session.destination == nil)
        let two = session.receive(Self.packet(2).span, from: Self.peerAddress, arrival: Self.at(20))
        let second = try #require(Self.media(two))
        #expect(!second.isNewSource && second.verdict == .inOrder)
        #expect(session.destination == Self.peerAddress)
        #expect(session.statistics.receivedPacketCount == 2 && session.statistics.remoteSSRC == 77)
    }

    @Test func `without symmetric RTP the destination stays`() {
        let named = Self.peerAddress.with(port: 9)
        let session = Self.session {
            $0.addresses.isSymmetric = false
            $0.addresses.destination = named
        }
        for index in 0..<5 {
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20))
        }
        #expect(session.statistics.receivedPacketCount == 5 && session.destination == named)
    }

    @Test func `bytes that are no packet are counted`() {
        let session = Self.session()
        #expect(Self.reason(session.receive([1, 2, 3].span, from: Self.peerAddress, arrival: .zero)) == .otherProtocol)
        #expect(Self.reason(session.receive([0x80, 0].span, from: Self.peerAddress, arrival: .zero)) == .malformed)
        #expect(Self.reason(session.receive([UInt8]().span, from: Self.peerAddress, arrival: .zero)) == .malformed)
        #expect(session.statistics.malformedCount == 2 && session.statistics.remoteSSRC == nil)
        #expect(session.statistics.otherProtocolCount == 1 && session.statistics.foreignPacketCount == 0)
    }

    @Test func `RTCP of others is refused before it is read`() {
        let session = Self.session { $0.addresses.destination = Self.peerAddress }
        let broken = bytes("80c90009 0000004d")
        let reception = session.receive(broken.span, from: Self.otherAddress, arrival: .zero)
        #expect(Self.reason(reception) == .refused(.otherControl))
        #expect(Self.reason(session.receive(broken.span, from: Self.peerAddress, arrival: .zero)) == .malformed)
        #expect(session.statistics.malformedCount == 1 && session.statistics.otherControlCount == 1)
    }

    @Test func `a packet of a type that was not announced is counted, and its number is not missing`() throws {
        let session = Self.session { $0.addresses.isMultiplexed = true }
        for index in 0..<50 {
            let bytes = Self.packet(index, payloadType: index % 2 == 0 ? 0 : 99)
            let reception = session.receive(bytes.span, from: Self.peerAddress, arrival: Self.at(index * 20))
            #expect(Self.media(reception)?.kind == (index % 2 == 0 ? .audio : .unknown))
        }
        let statistics = session.statistics
        #expect(statistics.unknownPayloadTypeCount == 25 && statistics.lostCount == 0)
        #expect(statistics.reception.statistics.lostCount == 0)
        let (datagram, _) = try #require(nextControl(session, from: Self.at(1000)))
        let report = try RTCPReceiverReport(parsing: datagram.span)
        let found = report.blocks.block(about: 77, in: datagram.span)
        let block = try #require(found)
        #expect(block.ssrc == 77 && block.cumulativeLost == 0 && block.fractionLost == 0)
        #expect(block.extendedHighestSequence == 49)
    }

    @Test func `nobody else is heard, whatever the silence, and his RTCP says nothing`() throws {
        let session = Self.session { $0.addresses.isMultiplexed = true }
        for index in 0..<10 {
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20))
        }
        for index in 10..<1000 {
            let time = Self.at(index * 20)
            for packet in [
                Self.packet(index), Self.packet(500 + index, ssrc: 88), Self.packet(index, ssrc: session.localSSRC),
            ] {
                let reception = session.receive(packet.span, from: Self.otherAddress, arrival: time)
                #expect(Self.reason(reception) == .refused(.otherAddress))
            }
            let control = session.receive(Self.goodbye.span, from: Self.otherAddress, arrival: time)
            #expect(Self.reason(control) == .refused(.otherControl))
        }
        let statistics = session.statistics
        #expect(session.destination == Self.peerAddress && statistics.remoteSSRC == 77)
        #expect(
            statistics.sourceChangeCount == 0 && statistics.collisionCount == 0 && statistics.receivedPacketCount == 10
        )
        #expect(statistics.otherAddressCount == 3 * 990 && statistics.otherControlCount == 990)
        let again = session.receive(Self.packet(10).span, from: Self.peerAddress, arrival: Self.at(20_000))
        #expect(Self.media(again)?.verdict == .inOrder)
    }

    @Test func `another SSRC of the same address is heard from its first packet on`() {
        let session = Self.session()
        for index in 0..<10 {
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20))
        }
        for index in 0..<10 {
            let packet = Self.packet(500 + index, ssrc: 88)
            let reception = session.receive(packet.span, from: Self.peerAddress, arrival: Self.at(200 + index * 20))
            #expect(Self.media(reception)?.isNewSource == (index == 0))
        }
        let statistics = session.statistics
        #expect(statistics.remoteSSRC == 88 && statistics.sourceChangeCount == 1 && statistics.foreignPacketCount == 0)
        #expect(statistics.receivedPacketCount == 20 && statistics.lostCount == 0)
    }

    @Test(arguments: [MediaTime.zero, nil])
    func `the named host's time to begin runs from the session's beginning, where that is told`(began: MediaTime?) {
        var configuration = RTPSessionConfiguration(canonicalName: "test@host")
        configuration.addresses.destination = Self.peerAddress
        let session = RTPSession(configuration: configuration, payloads: Self.payloads, seed: 1)
        if let began { session.begin(at: began) }
        // Nobody has sent anything for 5 s.
        let reception = session.receive(Self.packet(1).span, from: Self.otherAddress, arrival: Self.at(5000))
        #expect((Self.media(reception) != nil) == (began != nil))
        #expect(session.statistics.unnamedHostCount == (began == nil ? 1 : 0))
    }

    @Test func `a stray first packet does not keep the real source out`() {
        let session = Self.session()
        _ = session.receive(Self.packet(900, ssrc: 88).span, from: Self.otherAddress, arrival: .zero)
        for index in 1..<10 {
            let reception = session.receive(
                Self.packet(index).span,
                from: Self.peerAddress,
                arrival: Self.at(index * 20)
            )
            #expect((Self.media(reception) != nil) == (index > 1))
        }
        #expect(session.destination == Self.peerAddress && session.statistics.foreignPacketCount == 1)
        #expect(session.statistics.sourceChangeCount == 0)
    }

    @Test func `goodbye counts from the source that is heard`() throws {
        let session = Self.session { $0.addresses.isMultiplexed = true }
        for index in 0..<5 {
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20))
        }
        let reception = session.receive(Self.goodbye.span, from: Self.peerAddress, arrival: Self.at(100))
        guard case .control(let events) = reception else {
            Issue.record("goodbye was not heard")
            return
        }
        #expect(events.hasGoodbye && !events.hasRemoteReport)
        let other = session.receive(Self.packet(9, ssrc: 88).span, from: Self.otherAddress, arrival: Self.at(110))
        #expect(Self.reason(other) == .refused(.otherAddress))
    }

    @Test func `who says goodbye and goes on is reported on again`() {
        let session = Self.session { $0.addresses.isMultiplexed = true }
        for index in 0..<5 {
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20))
        }
        _ = session.receive(Self.goodbye.span, from: Self.peerAddress, arrival: Self.at(100))
        // What was under way says nothing.
        _ = session.receive(Self.packet(5).span, from: Self.peerAddress, arrival: Self.at(110))
        #expect(session.receiver.heardSource == nil)
        _ = session.receive(Self.packet(6).span, from: Self.peerAddress, arrival: Self.at(400))
        #expect(session.receiver.heardSource?.ssrc == 77)
    }

    @Test func `goodbye beside a report of another source does nothing`() {
        let session = Self.session { $0.addresses.isMultiplexed = true }
        for index in 0..<5 {
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20))
        }
        let mixed = bytes("80c90001 00000058 81cb0001 0000004d")
        let reception = session.receive(mixed.span, from: Self.peerAddress, arrival: Self.at(100))
        #expect(Self.reason(reception) == .refused(.otherControl) && session.receiver.heardSource?.ssrc == 77)
    }

    @Test func `RTCP on a port of its own follows the stream to another host`() {
        var addresses = RTPAddresses()
        addresses.destination = Self.peerAddress
        let session = Self.session { $0.addresses = addresses }
        func hear(_ first: Int, from source: SocketAddress, at start: Int) {
            for index in 0..<5 {
                let arrival = Self.at(start + index * 20)
                _ = session.receive(Self.packet(first + index).span, from: source, arrival: arrival)
            }
        }
        hear(0, from: Self.peerAddress, at: 0)
        addresses.destination = Self.otherAddress
        session.update(addresses, at: Self.at(110))
        let report = bytes("80c90001 0000004d 81ca0002 0000004d 01000000")
        // The old host's last words come before the new one's first packet.
        _ = session.receive(report.span, from: Self.peerAddress.with(port: 4001), arrival: Self.at(120))
        hear(5, from: Self.otherAddress, at: 130)
        let control = Self.otherAddress.with(port: 4001)
        _ = session.receive(report.span, from: control, arrival: Self.at(300))
        #expect(session.controlDestination == control && session.statistics.otherControlCount == 0)
    }

    @Test func `RTCP on a port of its own goes where sound goes, also while the former host is still heard`() {
        var addresses = RTPAddresses()
        addresses.destination = Self.peerAddress
        addresses.controlDestination = Self.peerAddress.with(port: 4001)
        let session = Self.session { $0.addresses = addresses }
        for index in 0..<5 {
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20))
        }
        addresses.destination = Self.otherAddress
        addresses.controlDestination = Self.otherAddress.with(port: 5001)
        session.update(addresses, at: Self.at(110))
        let report = bytes("80c90001 0000004d 81ca0002 0000004d 01000000")
        for index in 5..<500 {
            let now = Self.at(index * 20)
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: now)
            _ = session.receive(report.span, from: Self.peerAddress.with(port: 4001), arrival: now)
            #expect(session.destination == Self.otherAddress)
            #expect(session.controlDestination == Self.otherAddress.with(port: 5001))
        }
        #expect(session.statistics.receivedPacketCount == 500 && session.statistics.otherControlCount == 0)
    }

    @Test func `signalling moves a stream, which goes on from the old address until the new one speaks`() {
        var addresses = RTPAddresses()
        addresses.destination = Self.peerAddress
        let session = Self.session { $0.addresses = addresses }
        for index in 0..<5 {
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20))
        }
        addresses.destination = Self.otherAddress
        session.update(addresses, at: Self.at(90))
        #expect(session.destination == Self.otherAddress)
        let old = session.receive(Self.packet(5).span, from: Self.peerAddress, arrival: Self.at(100))
        #expect(Self.media(old)?.isNewSource == false)
        let moved = session.receive(Self.packet(6).span, from: Self.otherAddress, arrival: Self.at(120))
        #expect(Self.media(moved)?.isNewSource == false)
        let late = session.receive(Self.packet(7).span, from: Self.peerAddress, arrival: Self.at(140))
        #expect(Self.reason(late) == .refused(.otherAddress))
        #expect(session.statistics.receivedPacketCount == 7 && session.statistics.lostCount == 0)
        #expect(session.statistics.sourceChangeCount == 1)
    }

    @Test(arguments: [true, false])
    func `whoever was learnt before anybody was named is forgotten, with its reports`(sharesPort: Bool) {
        var addresses = RTPAddresses()
        addresses.isMultiplexed = sharesPort
        let session = Self.session { $0.addresses = addresses }
        let stranger = Self.otherAddress
        let strangerControl = sharesPort ? stranger : stranger.with(port: 5001)
        for index in 0..<5 {
            _ = session.receive(Self.packet(index, ssrc: 88).span, from: stranger, arrival: Self.at(index * 20))
        }
        _ = session.receive(bytes("80c90001 00000058").span, from: strangerControl, arrival: Self.at(90))
        #expect(session.destination == stranger && session.controlDestination == strangerControl)
        addresses.destination = Self.peerAddress
        addresses.controlDestination = Self.peerAddress.with(port: 4001)
        session.update(addresses, at: Self.at(95))
        let control = sharesPort ? Self.peerAddress : Self.peerAddress.with(port: 4001)
        #expect(session.destination == Self.peerAddress && session.controlDestination == control)
        #expect(session.receiver.heardSource == nil)
        let late = session.receive(bytes("80c90001 00000058").span, from: strangerControl, arrival: Self.at(100))
        #expect(Self.reason(late) == .refused(.otherControl))
        // Of whoever listens and has sent nothing yet.
        _ = session.receive(bytes("80c90001 0000004d").span, from: control, arrival: Self.at(110))
        for index in 5..<10 {
            _ = session.receive(Self.packet(index, ssrc: 88).span, from: stranger, arrival: Self.at(index * 20))
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20 + 1))
        }
        let statistics = session.statistics
        #expect(statistics.remoteSSRC == 77 && statistics.receivedControlCount == 2)
        #expect(statistics.receivedPacketCount == 10 && statistics.lostCount == 0)
        #expect(statistics.unnamedHostCount == 1 && statistics.otherAddressCount == 4)
        #expect(session.destination == Self.peerAddress && session.controlDestination == control)
    }

    @Test func `RTCP on a port of its own comes from the source's host, and is answered there`() {
        let session = Self.session { $0.addresses.controlDestination = Self.peerAddress.with(port: 4001) }
        for index in 0..<5 {
            _ = session.receive(Self.packet(index).span, from: Self.peerAddress, arrival: Self.at(index * 20))
        }
        #expect(session.controlDestination == Self.peerAddress.with(port: 4001))
        let report = bytes("80c90001 0000004d 81ca0002 0000004d 01000000")
        let foreign = session.receive(report.span, from: Self.otherAddress, arrival: Self.at(100))
        #expect(Self.reason(foreign) == .refused(.otherControl))
        guard
            case .control = session.receive(
                report.span,
                from: Self.peerAddress.with(port: 6001),
                arrival: Self.at(100)
            )
        else {
            Issue.record("RTCP of the source was not heard")
            return
        }
        #expect(session.controlDestination == Self.peerAddress.with(port: 6001))
    }

    @Test func `duplicates and strays are counted and not handed on`() {
        let session = Self.session()
        for sequence in [1, 2, 3] {
            _ = session.receive(Self.packet(sequence).span, from: Self.peerAddress, arrival: .zero)
        }
        #expect(Self.reason(session.receive(Self.packet(2).span, from: Self.peerAddress, arrival: .zero)) == .duplicate)
        guard case .stray = session.receive(Self.packet(30000).span, from: Self.peerAddress, arrival: .zero) else {
            Issue.record("a stray was handed on")
            return
        }
        #expect(session.statistics.duplicateCount == 1 && session.statistics.badSequenceCount == 1)
    }

    @Test func `a stray that another continues counts, and its type where that is unknown`() {
        let session = Self.session()
        for sequence in [1, 2, 3, 30_000, 30_001] {
            _ = session.receive(Self.packet(sequence).span, from: Self.peerAddress, arrival: .zero)
        }
        #expect(session.statistics.receivedPacketCount == 5 && session.statistics.restartCount == 1)
        session.payloads = PayloadMap()
        for sequence in [10_000, 10_001] {
            _ = session.receive(Self.packet(sequence).span, from: Self.peerAddress, arrival: .zero)
        }
        #expect(session.statistics.receivedPacketCount == 7 && session.statistics.unknownPayloadTypeCount == 2)
    }

    @Test func `somebody with this side's SSRC makes it change, with goodbye`() throws {
        let session = Self.session()
        _ = session.prepare(
            payloadType: 0,
            isMarked: false,
            timestamp: 0,
            payloadByteCount: 1,
            clockRate: 8000,
            at: .zero
        )
        let old = session.localSSRC
        let collision = session.receive(Self.packet(1, ssrc: old).span, from: Self.peerAddress, arrival: Self.at(10))
        #expect(Self.reason(collision) == .collision && session.localSSRC != old)
        let datagram = control(session, at: Self.at(20))
        let text = Array(datagram.suffix(8))
        #expect(text == bytes("81cb0001") + withUnsafeBytes(of: old.bigEndian) { Array($0) })
        let loop = session.receive(
            Self.packet(2, ssrc: session.localSSRC).span,
            from: Self.peerAddress,
            arrival: Self.at(30)
        )
        #expect(Self.reason(loop) == .looped)
        #expect(session.statistics.collisionCount == 1 && session.statistics.loopedCount == 1)
    }

    @Test func `a stranger with this side's SSRC changes nothing, also before anybody is locked`() {
        let session = Self.session { $0.addresses.destination = Self.peerAddress }
        let own = session.localSSRC
        let stranger = session.receive(Self.packet(1, ssrc: own).span, from: Self.otherAddress, arrival: Self.at(10))
        #expect(Self.reason(stranger) == .refused(.unnamedHost) && session.localSSRC == own)
        #expect(session.statistics.unnamedHostCount == 1 && session.statistics.collisionCount == 0)
        let peer = session.receive(Self.packet(1, ssrc: own).span, from: Self.peerAddress, arrival: Self.at(20))
        #expect(Self.reason(peer) == .collision && session.localSSRC != own)
    }

    @Test func `two sessions measure loss, jitter and round trip by RTCP`() throws {
        let one = Self.session(1) {
            $0.addresses.isMultiplexed = true
            $0.addresses.destination = Self.peerAddress
        }
        let two = Self.session(2) {
            $0.addresses.isMultiplexed = true
            $0.addresses.destination = Self.otherAddress
        }
        let delay = Duration.milliseconds(30)
        // Datagrams under way in each direction.
        var toOne: [(MediaTime, [UInt8])] = []
        var toTwo: [(MediaTime, [UInt8])] = []
        var storage = [UInt8](repeating: 0, count: RTPSession.maximumControlByteCount)
        let payload = [UInt8](repeating: 0x55, count: 160)
        for tick in 0..<3000 {
            let now = Self.at(tick * 10)
            while let (time, datagram) = toOne.first, time <= now {
                _ = one.receive(datagram.span, from: Self.peerAddress, arrival: time)
                toOne.removeFirst()
            }
            while let (time, datagram) = toTwo.first, time <= now {
                _ = two.receive(datagram.span, from: Self.otherAddress, arrival: time)
                toTwo.removeFirst()
            }
            var target = storage.mutableSpan
            if tick % 2 == 0 {
                let count = one.makePacket(
                    payloadType: 0,
                    isMarked: false,
                    timestamp: UInt32(tick * 80),
                    payload: payload.span,
                    clockRate: 8000,
                    at: now,
                    into: &target
                )
                // Every tenth packet is lost.
                if tick % 20 != 10 { toTwo.append((now + delay, Array(storage.prefix(count)))) }
            }
            var controlTarget = storage.mutableSpan
            let count = one.makeRTCP(at: now, into: &controlTarget)
            if count > 0 { toTwo.append((now + delay, Array(storage.prefix(count)))) }
            var otherTarget = storage.mutableSpan
            let otherCount = two.makeRTCP(at: now, into: &otherTarget)
            if otherCount > 0 { toOne.append((now + delay, Array(storage.prefix(otherCount)))) }
        }
        let sender = one.statistics
        let receiver = two.statistics
        #expect(sender.sentPacketCount == 1500)
        // The last one is under way, and 150 are lost.
        #expect(receiver.receivedPacketCount == 1349 && receiver.lostCount == 150)
        #expect(abs(sender.remoteFractionLost - 0.1) < 0.03)
        #expect((sender.roundTrip?.milliseconds).map { abs($0 - 60) < 0.1 } == true)
        #expect(receiver.jitterNanoseconds == 0)
        #expect((4...12).contains(sender.sentControlCount) && sender.receivedControlCount > 2)
        #expect(sender.malformedCount == 0 && receiver.malformedCount == 0 && receiver.foreignPacketCount == 0)
    }

    @Test func `a sender report relates RTP time and wall clock`() throws {
        let session = Self.session()
        let header = session.prepare(
            payloadType: 0,
            isMarked: false,
            timestamp: 0,
            payloadByteCount: 160,
            clockRate: 8000,
            at: .zero
        )
        let (datagram, time) = try #require(nextControl(session, from: .zero))
        let report = try RTCPSenderReport(parsing: datagram.span)
        #expect(report.packetCount == 1 && report.octetCount == 160)
        #expect(report.rtpTimestamp == header.timestamp &+ UInt32(time.nanoseconds / 125_000))
        #expect(report.ntpTimestamp == NTPTimestamp(unixNanoseconds: 1_700_000_000_000_000_000 + time.nanoseconds))
    }

    @Test func `the first RTCP comes after about half the interval`() throws {
        for seed in 0..<20 as Range<UInt64> {
            let session = Self.session(seed)
            let (datagram, time) = try #require(nextControl(session, from: .zero))
            #expect((1.0...3.1).contains(time.nanoseconds.seconds))
            #expect(datagram[1] == 201)
            let again = try #require(nextControl(session, from: time))
            #expect((2.0...6.2).contains((again.time - time).nanoseconds.seconds))
        }
    }

    /// A session in which another turns out to have the same SSRC, speaks for a while and leaves: its RTCP in a minute.
    private func minuteOfControl(_ seed: UInt64, asking: (RTPSession, MediaTime) -> Bool) -> [[UInt8]] {
        let session = Self.session(seed) { $0.addresses.isMultiplexed = true }
        var datagrams: [[UInt8]] = []
        for tick in 0..<6000 {
            let now = Self.at(tick * 10)
            let ssrc = tick == 1500 ? session.localSSRC : 77
            if tick < 3000, tick % 2 == 0 {
                _ = session.receive(Self.packet(tick / 2, ssrc: ssrc).span, from: Self.peerAddress, arrival: now)
            }
            if tick == 3000 {
                _ = session.receive(Self.goodbye.span, from: Self.peerAddress, arrival: now)
            }
            guard asking(session, now) else { continue }
            let datagram = control(session, at: now)
            if !datagram.isEmpty { datagrams.append(datagram) }
        }
        #expect(session.statistics.collisionCount == 1)
        return datagrams
    }

    @Test func `who asks only when a report does not lie ahead sends the same reports`() {
        for seed in 0..<20 as Range<UInt64> {
            let asked = minuteOfControl(seed) { _, _ in true }
            #expect(minuteOfControl(seed) { session, now in !session.waitsForReport(at: now) } == asked)
            #expect((8...40).contains(asked.count))
        }
    }

    @Test func `goodbye is said only by who was heard`() {
        let session = Self.session()
        var storage = [UInt8](repeating: 0, count: RTPSession.maximumControlByteCount)
        var target = storage.mutableSpan
        let none = session.makeGoodbye(at: .zero, into: &target)
        #expect(none == 0)
        _ = session.prepare(
            payloadType: 0,
            isMarked: false,
            timestamp: 0,
            payloadByteCount: 1,
            clockRate: 8000,
            at: .zero
        )
        let count = session.makeGoodbye(at: .zero, into: &target)
        #expect(count > 8 && storage[count - 7] == 203)
    }

    @Test func `any datagrams do not trap`() {
        let session = Self.session()
        var time = 0
        for valid in [Self.packet(1), RTCPTests.receiverReport + RTCPTests.sourceDescription + RTCPTests.goodbye] {
            forEachSpoiling(of: valid) { bytes in
                time += 10
                _ = session.receive(
                    bytes,
                    from: time % 30 == 0 ? Self.peerAddress : Self.otherAddress,
                    arrival: Self.at(time)
                )
            }
        }
        _ = control(session, at: Self.at(time + 60_000))
    }
}

extension Int64 {
    fileprivate var seconds: Double { Double(self) / 1_000_000_000 }
}
