import CallBasics
@testable import RTP
import TestSupport
import Testing

@Suite struct RTCPLossRLETests {
    /// Of a report that holds one Loss RLE block about 0x09090909: the block.
    private func block(_ range: String, _ chunks: String, thinning: UInt8 = 0) -> (RTCPLossRLE?, [UInt8]) {
        let content = bytes("09090909" + range + chunks)
        let head = [0x80, 0xCF, 0, UInt8(content.count / 4 + 2), 0, 0, 0, 77, 1, 0xF0 | thinning, 0]
        let report = head + [UInt8(content.count / 4)] + content
        return (read(report), report)
    }

    private func read(_ bytes: [UInt8]) -> RTCPLossRLE? {
        guard var report = try? RTCPExtendedReport(parsing: bytes.span) else { return nil }
        guard case .lossRLE(let losses) = report.next(in: bytes.span) else { return nil }
        return losses
    }

    private func runs(_ range: String, _ chunks: String, thinning: UInt8 = 0) -> LossRuns? {
        let (losses, bytes) = block(range, chunks, thinning: thinning)
        return losses?.runs(in: bytes.span)
    }

    // By hand, from the layout of RFC 3611, section 4.1: begin_seq, end_seq, chunks; packets, lost, runs, longest.
    @Test(arguments: [
        // 4 came.
        ("0001 0005", "4004 0000", 4, 0, 0, 0),
        // 3 lost, 5 came.
        ("0064 006c", "0003 4005", 8, 3, 1, 3),
        // 1 10101010 1010101: every second lost, from the second on.
        ("0064 0073", "d555 0000", 15, 7, 7, 1),
        // 2 came, then 0 0 1 0 1 1 1 1 1 1 1 1 1 1 1, over the wrap.
        ("fff8 0009", "4002 97ff 0000 0000", 17, 3, 2, 2),
        // A run of losses that goes on from a vector into a run and into a vector.
        ("0000 0032", "fffc 0014 9fff 0000", 50, 24, 1, 24),
        // The bits after the last packet say nothing.
        ("0000 0003", "b000 0000", 3, 1, 1, 1),
        // What stands after a null chunk says nothing.
        ("0000 0003", "4003 0000 ffff ffff", 3, 0, 0, 0),
        // Two of the longest runs.
        ("ffff 7ffd", "3fff 7fff", 32_766, 16_383, 1, 16_383),
    ])
    func `what is written by hand is read`(
        range: String,
        chunks: String,
        packets: Int,
        lost: Int,
        count: Int,
        longest: Int
    )
        throws
    {
        let found = try #require(runs(range, chunks))
        #expect(found.packetCount == packets && found.lostCount == lost)
        #expect(found.runCount == count && found.longestRun == longest)
    }

    @Test(arguments: [
        ("0001 0001", "4004 0000"), ("0005 0001", "4004 0000"), ("0000 fffe", "7fff 7fff 7fff 7fff"),
        ("0001 0005", "4003 0000"), ("0001 0005", "4005 0000"), ("0001 0005", "4004 4001"),
        ("0001 0005", "4004 8000"), ("0001 0005", "4000 4004"), ("0001 0005", "0000 4004"), ("0001 0005", ""),
        ("0000 0010", "ffff 0000"),
    ]) func `a range that its chunks do not cover just so is refused`(range: String, chunks: String) {
        #expect(runs(range, chunks) == nil)
    }

    @Test func `a trace that leaves numbers out tells no runs`() throws {
        let (losses, bytes) = block("0000 0010", "4004 0000", thinning: 2)
        #expect(try #require(losses).thinning == 2)
        let runs = losses?.runs(in: bytes.span)
        #expect(runs == nil)
    }

    // Packets of each trace, in percent; what is written must be read as it was.
    @Test(arguments: [0, 1, 5, 20, 50, 90], [1, 14, 15, 16, 250, 1024]) func `traces survive writing and reading`(
        percent: Double,
        count: Int
    ) throws {
        var generator = SeededGenerator(seed: UInt64(count))
        for first in [0, 65_400] as [UInt16] {
            var record = ReceptionRecord()
            var expected = LossRuns()
            var missing = 0
            record.begin(at: first)
            expected.count(1, areLost: false)
            for index in 1..<count {
                // What comes last must come, for its predecessors to be lost.
                let isLost = index < count - 1 && generator.nextUnit() * 100 < percent
                if !isLost { record.advance(by: missing + 1) }
                missing = isLost ? missing + 1 : 0
                expected.count(1, areLost: isLost)
            }
            var storage = [UInt8](repeating: 0xEE, count: 300)
            var target = storage.mutableSpan
            let byteCount = RTCPExtendedReport.serialize(ssrc: 77, losses: (9, record.unreported), into: &target)
            #expect(byteCount <= 8 + RTCPLossRLE.maximumByteCount && storage[byteCount] == 0xEE)
            storage.removeSubrange(byteCount...)
            let losses = try #require(read(storage))
            #expect(losses.ssrc == 9 && losses.thinning == 0)
            #expect(losses.beginSequence == first && losses.endSequence == first &+ UInt16(count))
            let runs = losses.runs(in: storage.span)
            let found = try #require(runs)
            #expect(found.packetCount == count && found.lostCount == expected.lostCount)
            #expect(found.runCount == expected.runCount && found.longestRun == expected.longestRun)
        }
    }

    @Test func `what is written is what the layout asks for`() {
        var record = ReceptionRecord()
        record.begin(at: 100)
        for number in Array(101..<120) + [122, 123] + Array(125..<160) {
            record.advance(by: number - Int(record.highest))
        }
        var storage = [UInt8](repeating: 0xEE, count: 40)
        var target = storage.mutableSpan
        let count = RTCPExtendedReport.serialize(ssrc: 77, losses: (0x0909_0909, record.unreported), into: &target)
        // 20 came; 2 lost, 2 came, 1 lost, 10 came; 25 came.
        let expected = bytes("80cf0006 0000004d 01000004 09090909 006400a0 4014 9bff 4019 0000")
        #expect(Array(storage.prefix(count)) == expected && storage[count] == 0xEE)
    }

    @Test func `an empty trace is not written`() {
        var storage = [UInt8](repeating: 0xEE, count: 40)
        var target = storage.mutableSpan
        let count = RTCPExtendedReport.serialize(ssrc: 77, losses: (9, ReceptionRecord().unreported), into: &target)
        #expect(count == 0 && storage[0] == 0xEE)
    }

    @Test func `no bytes trap, and what is read covers its range`() {
        let (_, valid) = block("fff0 0042", "400a 9d55 000a aaaa 4011 ffff")
        forEachSpoiling(of: valid) { bytes in
            guard var report = try? RTCPExtendedReport(parsing: bytes) else { return }
            while let block = report.next(in: bytes) {
                guard case .lossRLE(let losses) = block, let runs = losses.runs(in: bytes) else { continue }
                #expect(runs.packetCount == Int(losses.endSequence &- losses.beginSequence))
                #expect(runs.lostCount <= runs.packetCount && runs.runCount <= runs.lostCount)
            }
        }
    }
}
