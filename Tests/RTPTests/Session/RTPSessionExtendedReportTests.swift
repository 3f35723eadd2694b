import CallBasics
@testable import RTP
import TestSupport
import Testing

/// Extended reports between sessions, and those of a peer that lies.
@Suite struct RTPSessionExtendedReportTests {
    /// Sends packets and RTCP between two sessions, `delay` apart, for `seconds`.
    private final class Pair {
        let one: RTPSession
        let two: RTPSession
        /// RTCP that `two` sent.
        var fromTwo: [[UInt8]] = []

        init(_ change: (inout RTPSessionConfiguration) -> Void = { _ in }) {
            one = RTPSessionTests.session(1) {
                $0.addresses.isMultiplexed = true
                $0.addresses.destination = RTPSessionTests.peerAddress
                change(&$0)
            }
            two = RTPSessionTests.session(2) {
                $0.addresses.isMultiplexed = true
                $0.addresses.destination = RTPSessionTests.otherAddress
                change(&$0)
            }
        }

        func run(seconds: Int, delay: Duration = .milliseconds(30), isLost: (Int) -> Bool = { _ in false }) {
            var toOne: [(MediaTime, [UInt8])] = []
            var toTwo: [(MediaTime, [UInt8])] = []
            let payload = [UInt8](repeating: 0x55, count: 160)
            for tick in 0..<(seconds * 100) {
                let now = RTPSessionTests.at(tick * 10)
                while let (time, datagram) = toOne.first, time <= now {
                    _ = one.receive(datagram.span, from: RTPSessionTests.peerAddress, arrival: time)
                    toOne.removeFirst()
                }
                while let (time, datagram) = toTwo.first, time <= now {
                    _ = two.receive(datagram.span, from: RTPSessionTests.otherAddress, arrival: time)
                    toTwo.removeFirst()
                }
                if tick % 2 == 0 {
                    let datagram = write { bytes in
                        one.makePacket(
                            payloadType: 0,
                            isMarked: false,
                            timestamp: UInt32(tick * 80),
                            payload: payload.span,
                            clockRate: 8000,
                            at: now,
                            into: &bytes
                        )
                    }
                    if !isLost(tick / 2) { toTwo.append((now + delay, datagram)) }
                }
                let control = write { one.makeRTCP(at: now, into: &$0) }
                if !control.isEmpty { toTwo.append((now + delay, control)) }
                let answer = write { two.makeRTCP(at: now, into: &$0) }
                if !answer.isEmpty {
                    toOne.append((now + delay, answer))
                    fromTwo.append(answer)
                }
            }
        }

        private func write(_ body: (inout MutableSpan<UInt8>) -> Int) -> [UInt8] {
            var storage = [UInt8](repeating: 0, count: RTPSession.maximumControlByteCount)
            var target = storage.mutableSpan
            let count = body(&target)
            return Array(storage.prefix(count))
        }
    }

    @Test func `also who only receives measures the round trip`() throws {
        let pair = Pair()
        pair.run(seconds: 30)
        let listener = pair.two.statistics
        #expect(listener.sentPacketCount == 0 && !listener.hasRemoteReport)
        #expect(abs(try #require(listener.roundTrip).milliseconds - 60) < 0.1)
        #expect(listener.implausibleReportCount == 0 && pair.one.statistics.implausibleReportCount == 0)
        #expect(listener.malformedCount == 0 && pair.one.statistics.malformedCount == 0)
    }

    @Test func `the sender hears how it is heard`() throws {
        let pair = Pair()
        pair.two.voicePath = VoicePath(codecName: "PCMU", sendingDelay: .milliseconds(20))
        pair.run(seconds: 60, isLost: { $0 % 100 == 50 || $0 % 400 == 51 })
        let metrics = try #require(pair.one.statistics.remoteMetrics)
        #expect(metrics.ssrc == pair.one.localSSRC && metrics.isPlausible)
        #expect((2...3).contains(metrics.lossRate) && metrics.discardRate == 0)
        // Two in a row are a burst of 40 ms; one alone of a hundred lies in a gap.
        #expect(metrics.burstDensity == 255 && metrics.burstDuration == 40)
        #expect((1...3).contains(metrics.gapDensity) && metrics.gapThreshold == 16)
        #expect(metrics.roundTripDelay == 60 && metrics.endSystemDelay == 20)
        #expect((85...93).contains(try #require(metrics.knownRFactor)))
        #expect(try #require(metrics.knownConversationalQuality) <= #require(metrics.knownListeningQuality))
        #expect(metrics.knownSignalLevel == nil)
    }

    @Test func `the sender hears in what runs its packets are lost since the report before`() throws {
        let pair = Pair()
        pair.run(seconds: 60, isLost: { $0 % 60 < 3 })
        let statistics = pair.one.statistics
        let runs = try #require(statistics.remoteLossRuns)
        // From 2.5 to 7.5 s, divided by e - 1.5; the edges may cut a run.
        #expect((100...310).contains(runs.packetCount) && (2...6).contains(runs.runCount))
        #expect(runs.longestRun == 3)
        #expect(try #require(runs.meanRun) > 2.4)
        #expect(abs(Double(runs.lostCount) / Double(runs.packetCount) - statistics.remoteFractionLost) < 0.005)
        #expect(statistics.implausibleReportCount == 0 && statistics.malformedCount == 0)
    }

    @Test func `nothing is sent when it is turned off`() throws {
        let pair = Pair { $0.sendsExtendedReports = false }
        pair.run(seconds: 30)
        #expect(pair.one.statistics.remoteMetrics == nil && pair.two.statistics.roundTrip == nil)
        #expect(pair.one.statistics.hasRemoteReport && pair.one.statistics.remoteLossRuns == nil)
        for datagram in pair.fromTwo {
            var compound = try RTCPCompound(parsing: datagram.span)
            while let packet = compound.next(in: datagram.span) {
                if case .extendedReport = packet { Issue.record("an extended report was sent") }
            }
        }
        #expect(!pair.fromTwo.isEmpty)
    }

    @Test func `the largest datagram fits`() throws {
        let long = RTPSession(
            configuration: RTPSessionConfiguration(canonicalName: String(repeating: "x", count: 300)),
            payloads: RTPSessionTests.payloads,
            seed: 1
        )
        for index in 0..<1030 {
            let time = RTPSessionTests.at(index)
            // The first two make the source valid; then no run is longer than a vector.
            guard index < 2 || index % 2 == 1 else { continue }
            _ = long.receive(RTPSessionTests.packet(index).span, from: RTPSessionTests.peerAddress, arrival: time)
            _ = long.prepare(
                payloadType: 0,
                isMarked: false,
                timestamp: 0,
                payloadByteCount: 1,
                clockRate: 8000,
                at: time
            )
        }
        let question = bytes("80c90001 0000004d 80cf0004 0000004d 04000002 00000001 00000002")
        _ = long.receive(question.span, from: RTPSessionTests.peerAddress, arrival: RTPSessionTests.at(1000))
        var storage = [UInt8](repeating: 0, count: RTPSession.maximumControlByteCount)
        var target = storage.mutableSpan
        let count = long.makeGoodbye(at: RTPSessionTests.at(1100), into: &target)
        // All but the reference time, which only a listener sends; with IPv6 and UDP it fits the smallest MTU.
        #expect(count == RTPSession.maximumControlByteCount - 12 && count + 48 < 1280)
        var compound = try RTCPCompound(parsing: storage.span.extracting(first: count))
        var kinds = ""
        while let packet = compound.next(in: storage.span) {
            switch packet {
            case .senderReport: kinds += "S"
            case .receiverReport: kinds += "R"
            case .sourceDescription: kinds += "D"
            case .extendedReport: kinds += "X"
            case .goodbye: kinds += "B"
            case .other: kinds += "?"
            }
        }
        #expect(kinds == "SDXB" && compound.malformedCount == 0)
    }

    // MARK: Lies

    private static let loss = RTCPReportBlock(
        ssrc: 0,
        fractionLost: 255,
        cumulativeLost: 0x7F_FFFF,
        extendedHighestSequence: 1,
        jitter: 1
    )

    /// A session that has sent 100 packets in 2 s, and heard a source of SSRC 77.
    private func session() -> RTPSession {
        let session = RTPSessionTests.session()
        for index in 0..<100 {
            let time = RTPSessionTests.at(index * 20)
            _ = session.prepare(
                payloadType: 0,
                isMarked: false,
                timestamp: 0,
                payloadByteCount: 1,
                clockRate: 8000,
                at: time
            )
            _ = session.receive(RTPSessionTests.packet(index).span, from: RTPSessionTests.peerAddress, arrival: time)
        }
        return session
    }

    private func receive(_ datagram: [UInt8], at session: RTPSession) -> RTPReception {
        session.receive(datagram.span, from: RTPSessionTests.peerAddress, arrival: RTPSessionTests.at(2000))
    }

    /// A receiver report of 77 with `block`, and an extended one of `reporter` with `metrics`.
    private func datagram(
        _ block: RTCPReportBlock?,
        reporter: UInt32 = 77,
        delay: RTCPReceiverReportDelay? = nil,
        metrics: RTCPVoIPMetrics? = nil
    ) -> [UInt8] {
        var storage = [UInt8](repeating: 0, count: 200)
        var target = storage.mutableSpan
        var count = RTCPReceiverReport(ssrc: 77).serialize(with: block, into: &target)
        count += RTCPExtendedReport.serialize(
            ssrc: reporter,
            delay: delay,
            metrics: metrics,
            into: &target,
            at: count
        )
        return Array(storage.prefix(count))
    }

    @Test func `more loss than was sent is counted, not believed`() {
        let session = session()
        var block = Self.loss
        block.ssrc = session.localSSRC
        guard case .control(let events) = receive(datagram(block), at: session) else {
            Issue.record("the report was not read")
            return
        }
        #expect(events == RTPReception.ControlEvents())
        #expect(!session.statistics.hasRemoteReport && session.statistics.implausibleReportCount == 1)
        block.cumulativeLost = 100
        _ = receive(datagram(block), at: session)
        #expect(session.statistics.hasRemoteReport && session.statistics.remoteFractionLost > 0.99)
    }

    @Test(arguments: [(0x1234_5678, 0), (0xFFFF_FFFF, 0xFFFF_FFFF), (1, 5)] as [(UInt32, UInt32)])
    func `an answer to a time that was never sent gives no round trip`(time: UInt32, delay: UInt32) {
        let session = session()
        var block = Self.loss
        block.ssrc = session.localSSRC
        block.cumulativeLost = 3
        (block.lastSenderReport, block.delaySinceLastSenderReport) = (time, delay)
        _ = receive(datagram(block), at: session)
        #expect(session.statistics.roundTrip == nil && session.statistics.implausibleReportCount == 1)
        let answer = RTCPReceiverReportDelay(ssrc: session.localSSRC, lastReferenceTime: time, delay: delay)
        _ = receive(datagram(nil, delay: answer), at: session)
        #expect(session.statistics.roundTrip == nil && session.statistics.implausibleReportCount == 2)
    }

    @Test func `an answer that claims to have waited longer than the time is old gives no round trip`() throws {
        let session = session()
        var storage = [UInt8](repeating: 0, count: RTPSession.maximumControlByteCount)
        var (time, count) = (1990, 0)
        while count == 0, time < 9000 {
            time += 10
            var target = storage.mutableSpan
            count = session.makeRTCP(at: RTPSessionTests.at(time), into: &target)
        }
        let sent = try RTCPSenderReport(parsing: storage.span).ntpTimestamp.compact
        var block = Self.loss
        block.ssrc = session.localSSRC
        (block.cumulativeLost, block.lastSenderReport, block.delaySinceLastSenderReport) = (0, sent, 65_536)
        let lie = datagram(block)
        let source = RTPSessionTests.peerAddress
        _ = session.receive(lie.span, from: source, arrival: RTPSessionTests.at(time + 500))
        #expect(session.statistics.roundTrip == nil && session.statistics.implausibleReportCount == 1)
        _ = session.receive(lie.span, from: source, arrival: RTPSessionTests.at(time + 1040))
        #expect(abs(try #require(session.statistics.roundTrip).milliseconds - 40) < 0.1)
    }

    @Test func `metrics out of range, about others, or of others, are not believed`() {
        let session = session()
        var metrics = RTCPVoIPMetrics(ssrc: session.localSSRC)
        metrics.rFactor = 120
        _ = receive(datagram(nil, metrics: metrics), at: session)
        #expect(session.statistics.remoteMetrics == nil && session.statistics.implausibleReportCount == 1)
        metrics.rFactor = 80
        _ = receive(datagram(nil, reporter: 99, metrics: metrics), at: session)
        #expect(session.statistics.remoteMetrics == nil && session.statistics.foreignPacketCount == 1)
        metrics.ssrc = 5
        _ = receive(datagram(nil, metrics: metrics), at: session)
        #expect(session.statistics.remoteMetrics == nil)
        metrics.ssrc = session.localSSRC
        _ = receive(datagram(nil, metrics: metrics), at: session)
        #expect(session.statistics.remoteMetrics == metrics)
    }

    /// A receiver report of 77 that tells `block`, and a Loss RLE block of `chunks` about packets `first` and after.
    private func datagram(_ session: RTPSession, first: UInt16, count: UInt16, chunks: String, thinning: UInt8 = 0)
        -> [UInt8]
    {
        let block = RTCPReportBlock(
            ssrc: session.localSSRC,
            fractionLost: 10,
            cumulativeLost: 2,
            extendedHighestSequence: 1,
            jitter: 1
        )
        func big(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xFF)] }
        let source = big(UInt16(session.localSSRC >> 16)) + big(UInt16(session.localSSRC & 0xFFFF))
        let content = source + big(first) + big(first &+ count) + bytes(chunks)
        let words = UInt8(content.count / 4)
        return datagram(block) + [0x80, 0xCF, 0, words + 2, 0, 0, 0, 77, 1, thinning, 0, words] + content
    }

    @Test func `runs of what was never sent, or that do not add up, are counted, not believed`() throws {
        let session = session()
        let next = session.prepare(
            payloadType: 0,
            isMarked: false,
            timestamp: 0,
            payloadByteCount: 1,
            clockRate: 8000,
            at: .zero
        )
        let first = next.sequenceNumber &- 100
        let lies: [(UInt16, UInt16, String)] = [
            (first &- 1, 10, "0003 4007"), (first &+ 92, 10, "0003 4007"), (first &+ 20_000, 10, "0003 4007"),
            (first, 0, "4001 0000"), (first, 10, "4001 0000"), (first, 10, "7fff 0000"),
        ]
        for (index, lie) in lies.enumerated() {
            _ = receive(datagram(session, first: lie.0, count: lie.1, chunks: lie.2), at: session)
            #expect(session.statistics.remoteLossRuns == nil)
            #expect(session.statistics.implausibleReportCount == UInt64(index + 1))
        }
        _ = receive(datagram(session, first: first &+ 91, count: 10, chunks: "0003 4007"), at: session)
        #expect(try #require(session.statistics.remoteLossRuns).meanRun == 3)
        _ = receive(datagram(session, first: first, count: 10, chunks: "4007 0003", thinning: 1), at: session)
        #expect(session.statistics.remoteLossRuns == nil, "a report without runs, whose loss they would not explain")
        #expect(session.statistics.implausibleReportCount == UInt64(lies.count))
    }

    @Test func `a truncated extended report is counted, and what stands before it is believed`() {
        let session = session()
        var block = Self.loss
        (block.ssrc, block.cumulativeLost) = (session.localSSRC, 2)
        var bytes = datagram(block, metrics: RTCPVoIPMetrics(ssrc: session.localSSRC))
        // The block says that it is longer than the packet.
        bytes[32 + 8 + 3] = 20
        _ = receive(bytes, at: session)
        #expect(session.statistics.malformedCount == 1 && session.statistics.remoteMetrics == nil)
        #expect(session.statistics.remoteCumulativeLost == 2)
    }

    @Test func `any datagrams with extended reports do not trap`() {
        let session = session()
        var time = 2000
        let valid = RTCPTests.receiverReport + RTCPExtendedReportTests.everyBlock
        forEachSpoiling(of: valid, seed: 9) { bytes in
            time += 10
            _ = session.receive(bytes, from: RTPSessionTests.peerAddress, arrival: RTPSessionTests.at(time))
        }
        #expect(session.statistics.malformedCount > 100)
    }
}
