import CallBasics
@testable import RTP
import TestSupport
import Testing

@Suite struct RTCPExtendedReportTests {
    // pion/rtcp extended_report_test.go: a block of every type of RFC 3611.
    static let everyBlock = bytes(
        """
        80cf0033 01020304
        010c0004 12345689 0005000c 40060006 87650000
        02060004 12345689 0005000c 41233fff ffff0000
        03030007 98765432 3c483cd9 11111111 22222222 33333333 44444444 55555555
        04000002 01020304 05060708
        05000009 88888888 12345678 99999999 09090909 12345678 99999999 11223344 12345678 99999999
        06e80009 fedcba98 12345678 11111111 22222222 33333333 44444444 55555555 66666666 01020304
        07000008 89abcdef 05060708 11112222 33334444 11223344 55667788 99001122 33445566
        """
    )

    static var metrics: RTCPVoIPMetrics {
        var metrics = RTCPVoIPMetrics(ssrc: 0x89AB_CDEF)
        (metrics.lossRate, metrics.discardRate, metrics.burstDensity, metrics.gapDensity) = (5, 6, 7, 8)
        (metrics.burstDuration, metrics.gapDuration) = (0x1111, 0x2222)
        (metrics.roundTripDelay, metrics.endSystemDelay) = (0x3333, 0x4444)
        (metrics.signalLevel, metrics.noiseLevel, metrics.residualEchoReturnLoss) = (0x11, 0x22, 0x33)
        metrics.gapThreshold = 0x44
        (metrics.rFactor, metrics.externalRFactor) = (0x55, 0x66)
        (metrics.listeningQuality, metrics.conversationalQuality) = (0x77, 0x88)
        metrics.receiverConfiguration = 0x99
        (metrics.nominalBufferDelay, metrics.maximumBufferDelay) = (0x1122, 0x3344)
        metrics.absoluteMaximumBufferDelay = 0x5566
        return metrics
    }

    private func blocks(_ bytes: [UInt8]) throws -> (blocks: [RTCPExtendedReport.Block], malformedCount: Int) {
        var report = try RTCPExtendedReport(parsing: bytes.span)
        var result: [RTCPExtendedReport.Block] = []
        while let block = report.next(in: bytes.span) { result.append(block) }
        return (result, report.malformedCount)
    }

    @Test func `every block of another implementation is read, those not known by their length`() throws {
        let (read, malformedCount) = try blocks(Self.everyBlock)
        #expect(malformedCount == 0)
        guard read.count == 7, case .lossRLE(let losses) = read[0], case .other(2) = read[1], case .other(3) = read[2],
            case .receiverReferenceTime(let time) = read[3], case .receiverReportDelays(let delays) = read[4],
            case .other(6) = read[5], case .voipMetrics(let metrics) = read[6]
        else {
            Issue.record("\(read)")
            return
        }
        #expect(losses.ssrc == 0x1234_5689 && losses.thinning == 12)
        #expect(losses.beginSequence == 5 && losses.endSequence == 12)
        #expect(time.rawValue == 0x0102_0304_0506_0708 && time.compact == 0x0304_0506)
        let delay = delays.delay(about: 0x0909_0909, in: Self.everyBlock.span)
        #expect(delay == RTCPReceiverReportDelay(ssrc: 0x0909_0909, lastReferenceTime: 0x1234_5678, delay: 0x9999_9999))
        let none = delays.delay(about: 1, in: Self.everyBlock.span)
        #expect(delays.count == 3 && none == nil)
        #expect(metrics == Self.metrics)
    }

    @Test func `what is written is what another implementation writes`() {
        var storage = [UInt8](repeating: 0xEE, count: 80)
        var target = storage.mutableSpan
        let count = RTCPExtendedReport.serialize(
            ssrc: 0x0102_0304,
            referenceTime: NTPTimestamp(rawValue: 0x0102_0304_0506_0708),
            delay: RTCPReceiverReportDelay(ssrc: 0x8888_8888, lastReferenceTime: 0x1234_5678, delay: 0x9999_9999),
            metrics: Self.metrics,
            into: &target
        )
        let expected = bytes(
            """
            80cf0011 01020304
            04000002 01020304 05060708
            05000003 88888888 12345678 99999999
            07000008 89abcdef 05060708 11112222 33334444 11223344 55667788 99001122 33445566
            """
        )
        #expect(Array(storage.prefix(count)) == expected)
        #expect(storage[count] == 0xEE)
    }

    /// Wireshark 4.0 reads nothing behind the block of metrics.
    @Test func `the metrics come last`() throws {
        var storage = [UInt8](repeating: 0, count: 200)
        var target = storage.mutableSpan
        var record = ReceptionRecord()
        record.begin(at: 1)
        record.advance(by: 3)
        let count = RTCPExtendedReport.serialize(
            ssrc: 1,
            metrics: Self.metrics,
            losses: (7, record.unreported),
            into: &target
        )
        var types: [UInt8] = []
        var position = 8
        while position < count {
            types.append(storage[position])
            position += 4 * (Int(storage[position + 2]) << 8 + Int(storage[position + 3]) + 1)
        }
        #expect(types == [1, 7] && position == count)
    }

    @Test func `what does not fit, or says nothing, is not written`() {
        var storage = [UInt8](repeating: 0xEE, count: 43)
        var target = storage.mutableSpan
        let empty = RTCPExtendedReport.serialize(ssrc: 1, into: &target)
        let large = RTCPExtendedReport.serialize(ssrc: 1, metrics: Self.metrics, into: &target)
        #expect(empty == 0 && large == 0)
        #expect(storage.allSatisfy { $0 == 0xEE })
    }

    @Test(arguments: [
        ("80cf0000", RTPError.Code.invalidLength),
        ("80cf0002 00000001 04000002", .invalidLength),
        ("80cf0004 00000001 04000003 00000001 00000002", .invalidLength),
        ("80cf0002 00000001 ffffffff", .invalidLength),
        ("80cf0005 00000001 04000002 00000001 00000002", .invalidLength),
        ("a0cf0001 00000000", .invalidPadding),
        ("a0cf0002 00000001 0000000c", .invalidPadding),
        ("a0cf0002 00000001 00000003", .invalidPadding),
        ("80cf00", .truncated),
    ]) func `a report whose lengths lie is refused`(text: String, code: RTPError.Code) {
        let error = #expect(throws: RTPError.self) { try RTCPExtendedReport(parsing: bytes(text).span) }
        #expect(error?.code == code)
    }

    @Test(arguments: [
        "04000001 00000001", "04000003 00000001 00000002 00000003", "05000002 00000001 00000002",
        "07000007 00000001 00000002 00000003 00000004 00000005 00000006 00000007", "01000001 00000001",
    ]) func `a known block of a wrong length is left out and counted, and the next one read`(block: String) throws {
        let body = bytes("00000001" + block + "04000002 00000001 00000002")
        let (read, malformedCount) = try blocks([0x80, 0xCF, 0, UInt8(body.count / 4)] + body)
        #expect(malformedCount == 1 && read.count == 1)
    }

    @Test func `padding belongs to no block`() throws {
        let (read, malformedCount) = try blocks(bytes("a0cf0005 00000001 04000002 00000001 00000002 00000004"))
        #expect(read.count == 1 && malformedCount == 0)
    }

    @Test func `a report in a compound is read, and a broken one counted`() throws {
        let datagram = RTCPTests.receiverReport + Self.everyBlock
        var compound = try RTCPCompound(parsing: datagram.span)
        _ = compound.next(in: datagram.span)
        guard case .extendedReport(let report) = compound.next(in: datagram.span) else {
            Issue.record("no extended report")
            return
        }
        #expect(report.ssrc == 0x0102_0304 && compound.malformedCount == 0)
        let broken = RTCPTests.receiverReport + bytes("80cf0002 00000001 04000002")
        var second = try RTCPCompound(parsing: broken.span)
        while second.next(in: broken.span) != nil {}
        #expect(second.malformedCount == 1)
    }

    @Test func `no bytes trap, and none are read beyond the report`() {
        for valid in [Self.everyBlock, bytes("a0cf0005 00000001 04000002 00000001 00000002 00000004")] {
            forEachSpoiling(of: valid) { bytes in
                guard var report = try? RTCPExtendedReport(parsing: bytes) else { return }
                var blockCount = 0
                while let block = report.next(in: bytes) {
                    blockCount += 1
                    if case .receiverReportDelays(let delays) = block { _ = delays.delay(about: 0, in: bytes) }
                    if case .lossRLE(let losses) = block { _ = losses.runs(in: bytes) }
                }
                #expect(4 * (blockCount + report.malformedCount) <= bytes.count)
            }
        }
    }

    @Test func `fields out of range are not believed`() {
        let fields: [WritableKeyPath<RTCPVoIPMetrics, UInt8>] = [
            \.rFactor, \.externalRFactor, \.listeningQuality, \.conversationalQuality,
        ]
        #expect(RTCPVoIPMetrics(ssrc: 1).isPlausible)
        for field in fields {
            for value in [101, 126, 128, 255] as [UInt8] {
                var metrics = RTCPVoIPMetrics(ssrc: 1)
                metrics[keyPath: field] = value
                #expect(!metrics.isPlausible)
            }
        }
        var metrics = RTCPVoIPMetrics(ssrc: 1)
        (metrics.rFactor, metrics.listeningQuality, metrics.conversationalQuality) = (101, 9, 51)
        #expect(metrics.knownRFactor == nil && metrics.knownListeningQuality == nil)
        #expect(metrics.knownConversationalQuality == nil && metrics.knownSignalLevel == nil)
        (metrics.rFactor, metrics.listeningQuality, metrics.conversationalQuality) = (93, 44, 10)
        metrics.signalLevel = 0xE6
        #expect(metrics.knownRFactor == 93 && metrics.knownListeningQuality == 4.4)
        #expect(metrics.knownConversationalQuality == 1 && metrics.knownSignalLevel == -26)
        #expect(metrics.isPlausible)
        metrics.gapThreshold = 0
        #expect(!metrics.isPlausible)
        (metrics.gapThreshold, metrics.lossRate, metrics.discardRate) = (16, 200, 100)
        #expect(!metrics.isPlausible)
    }
}
