@testable import MediaEngine
import RTP
import Synchronization
import TestSupport
import Testing

@Suite struct RTPReceiveFilterTests {
    @Test func `a source that begins other numbers is handed on from the first of them`() throws {
        let rig = try ReceiveRig()
        // 15,000 is a stray that nobody continues.
        let numbers = Array(0..<10) + [15_000] + Array(10..<20) + Array(20_000..<20_010)
        for number in numbers {
            rig.send(number)
            rig.tick(2)
        }
        let headers = rig.sink.headers
        #expect(headers.map(\.sequenceNumber) == numbers.filter { $0 != 15_000 }.map { UInt16($0) })
        #expect(headers.filter(\.beginsSource).map(\.sequenceNumber) == [0])
        #expect(headers.filter(\.beginsNumbers).map(\.sequenceNumber) == [20_000])
        let sent = numbers.firstIndex(of: 20_000).map { MediaTime.zero + .milliseconds($0 * 20) }
        #expect(headers.first(where: \.beginsNumbers)?.arrival == sent)
        let statistics = rig.session.statistics
        #expect(statistics.receivedPacketCount == 30 && statistics.lostCount == 0)
        #expect(statistics.badSequenceCount == 1 && statistics.restartCount == 1)
    }

    @Test func `a packet that is kept is dropped when signalling changes what payload types mean`() throws {
        let rig = try ReceiveRig()
        for number in Array(0..<10) + [20_000] {
            rig.send(number)
            rig.tick(2)
        }
        #expect(rig.runner.give([.command(.update(at: rig.now), to: rig.filter)]) != nil)
        for number in 20_001..<20_010 {
            rig.send(number)
            rig.tick(2)
        }
        #expect(rig.sink.headers.map(\.sequenceNumber) == (Array(0..<10) + Array(20_001..<20_010)).map { UInt16($0) })
        #expect(rig.sink.headers.filter(\.beginsNumbers).map(\.sequenceNumber) == [20_001])
    }

    @Test func `new numbers that begin in a full tick lose nothing`() throws {
        let rig = try ReceiveRig()
        for number in 0..<10 {
            rig.send(number)
            rig.tick(2)
        }
        for number in Array(10..<25) + Array(20_000..<20_020) { rig.send(number) }
        rig.tick(6)
        #expect(rig.sink.headers.count == 45)
    }

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

    @Test func `keys that come all at once are all told`() throws {
        let rig = try ReceiveRig { $0.set(101, .telephoneEvent, clockRate: 8000) }
        rig.send(0)
        rig.tick(2)
        for number in 0..<30 {
            for end: UInt8 in [0, 0x80] {
                let event: [UInt8] = [UInt8(number % 10), end | 10, 0x01, 0x90]
                let sequence = 1 + 2 * number + (end > 0 ? 1 : 0)
                let packet = ReceiveRig.packet(sequence, payloadType: 101, timestamp: 1000 * (number + 1), event)
                rig.link.add(packet, from: ReceiveRig.peer, at: rig.now)
            }
        }
        rig.tick(4)
        #expect(rig.keyCounts == [30, 30])
    }

    /// Offsets count in the clock of the primary block: an event of another clock would seem to be another press.
    @Test(.tags(.rfc), arguments: [8000, 16_000]) func `the end of a key that audio repeats is no second key`(
        clockRate: UInt32
    ) throws {
        let rig = try ReceiveRig { payloads in
            payloads.set(101, .telephoneEvent, clockRate: clockRate)
            payloads.set(121, .redundantAudio, clockRate: 8000)
        }
        rig.send(0)
        rig.tick(2)
        let end: [UInt8] = [1, 0x8A, 0x03, 0x20]
        let event = ReceiveRig.packet(1, payloadType: 101, timestamp: 100_000, end)
        rig.link.add(event, from: ReceiveRig.peer, at: rig.now)
        rig.tick(2)
        // 160 units back, 4 bytes of the event, then sound.
        let copy: [UInt8] =
            [0x80 | 101, 160 >> 6, (160 & 0x3F) << 2, 4, 0] + end + [UInt8](repeating: 0xFF, count: 160)
        let primary = clockRate == 8000 ? 100_160 : 320
        let audio = ReceiveRig.packet(2, payloadType: 121, timestamp: primary, copy)
        rig.link.add(audio, from: ReceiveRig.peer, at: rig.now)
        rig.tick(2)
        #expect(rig.keyCounts == [1, 1])
        #expect(rig.sink.headers.contains { !$0.isNumberOnly && $0.sequenceNumber == 2 })
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

    @Test func `a flood of RTCP's own port costs a bounded time, and no packet`() throws {
        let rig = try ReceiveRig(hasControlPort: true)
        let stranger = SocketAddress(ipv4: 0xC633_6401, port: 4001)
        for number in 0..<50 {
            rig.send(number)
            for _ in 0..<2 {
                for _ in 0..<1000 { rig.controlLink.add(ReceiveRig.goodbye(1), from: stranger, at: rig.now) }
                let before = rig.controlLink.takenCount
                rig.tick()
                #expect(rig.controlLink.takenCount - before == 64)
            }
        }
        #expect(rig.sink.headers.count == 50 && rig.goodbyeCount == 0)
        #expect(rig.session.statistics.otherControlCount == UInt64(rig.controlLink.takenCount))
        // RTCP of the other side is heard among them.
        rig.controlLink.drop()
        rig.controlLink.add(ReceiveRig.goodbye(1), from: stranger, at: rig.now)
        rig.controlLink.add(ReceiveRig.goodbye(1), from: ReceiveRig.peer.with(port: 4001), at: rig.now)
        rig.tick(3)
        #expect(rig.goodbyeCount == 1)
    }

    @Test func `the socket is to drop what strangers send also where the link finds it forged`() throws {
        let rig = try ReceiveRig()
        for number in 0..<5 {
            rig.send(number)
            rig.tick(2)
        }
        rig.link.forgedCount = 64
        rig.tick(20)
        #expect(rig.link.acceptedSources.isEmpty)
        rig.link.forgedCount += 65
        rig.tick()
        #expect(rig.link.acceptedSources.first == ReceiveRig.peer)
        rig.tick(500)
        #expect(rig.link.acceptedSources.isEmpty)
    }

    @Test(arguments: [ReceiveRig.peer, ReceiveRig.peer.with(port: 9)])
    func `the socket is to drop what strangers send while they flood it, and only then`(named: SocketAddress) throws {
        let rig = try ReceiveRig(named: named)
        let stranger = SocketAddress(ipv4: 0xC633_6401, port: 4000)
        for number in 0..<5 {
            rig.send(number)
            rig.tick(2)
        }
        func tick(strangers count: Int) {
            for number in 0..<count { rig.send(number, ssrc: 9, from: stranger) }
            rig.tick()
        }
        for _ in 0..<20 { tick(strangers: 64) }
        #expect(rig.link.acceptedSources.isEmpty)
        tick(strangers: 65)
        // Whom signalling named may still begin where another port of its host is locked.
        let expected = named == ReceiveRig.peer ? [named] : [ReceiveRig.peer, named]
        #expect(rig.link.acceptedSources == expected)
        rig.tick(499)
        #expect(rig.link.acceptedSources == expected)
        rig.tick()
        #expect(rig.link.acceptedSources.isEmpty)
        #expect(rig.session.statistics.otherAddressCount == 20 * 64 + 65)
        tick(strangers: 65)
        #expect(rig.link.acceptedSources == expected)
    }

    @Test func `a socket that cannot drop what strangers send is asked again in every tick`() throws {
        let rig = try ReceiveRig()
        for number in 0..<5 {
            rig.send(number)
            rig.tick(2)
        }
        rig.link.refusalCount = 3
        for number in 0..<65 { rig.send(number, ssrc: 9, from: SocketAddress(ipv4: 0xC633_6401, port: 4000)) }
        rig.tick(3)
        #expect(rig.link.acceptedSources.isEmpty && rig.link.refusalCount == 0)
        rig.tick()
        #expect(rig.link.acceptedSources == [ReceiveRig.peer])
        // The flood has not come again: it is over when the first one would be.
        rig.tick(496)
        #expect(rig.link.acceptedSources == [ReceiveRig.peer])
        rig.tick()
        #expect(rig.link.acceptedSources.isEmpty)
    }

    @Test func `while others could be heard, the socket takes everybody's, whatever their number`() throws {
        let rig = try ReceiveRig()
        for number in 0..<2000 { rig.send(number, ssrc: 9, from: SocketAddress(ipv4: 0xC633_6401, port: 4000)) }
        rig.tick(4)
        #expect(rig.link.acceptedSources.isEmpty && rig.session.statistics.unnamedHostCount == 2000)
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
