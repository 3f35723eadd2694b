import CallBasics
@testable import RTP
import Testing

@Suite struct SequenceCheckTests {
    /// A packet behind number 100, whose time stamp is 0: numbers and milliseconds on, and whether the sequence has jumped.
    struct Row: Sendable {
        let step: Int
        let told: Int
        let elapsed: Int
        let isJump: Bool

        init(_ step: Int, told: Int, elapsed: Int, _ isJump: Bool) {
            (self.step, self.told, self.elapsed, self.isJump) = (step, told, elapsed, isJump)
        }
    }

    static let rows: [Row] = [
        // An outage; one that ended with what a queue had kept; a pause of the sender with losses.
        Row(200, told: 4000, elapsed: 4000, false),
        Row(200, told: 4000, elapsed: 20, false),
        Row(60, told: 9000, elapsed: 9000, false),
        // Events or other packets of types unknown here took numbers, as fast as sound would have.
        Row(200, told: 0, elapsed: 4000, false),
        // Numbers alone, and with time stamps that jump as well.
        Row(200, told: 20, elapsed: 20, true),
        Row(200, told: 520, elapsed: 20, true),
        Row(2900, told: 5020, elapsed: 20, true),
        Row(2900, told: -480, elapsed: 20, true),
        Row(30, told: 20, elapsed: 20, true),
        // Losses and lengths within what is tolerated.
        Row(20, told: 20, elapsed: 20, false),
        // Reordered, a late duplicate, and one from before a pause.
        Row(-3, told: -60, elapsed: 5, false),
        Row(-50, told: -1000, elapsed: 800, false),
        Row(-50, told: -4000, elapsed: 800, false),
        // Older by its number, newer by its time stamp.
        Row(-50, told: 20, elapsed: 20, true),
        Row(-99, told: -480, elapsed: 20, true),
    ]

    private func isJump(_ row: Row, clockRate: UInt32 = 8000, packetMs: Int64 = 20) -> Bool {
        var check = SequenceCheck()
        let start = MediaTime(nanoseconds: 5_000_000_000)
        check.note(
            RTPHeader(payloadType: 0, sequenceNumber: 100, timestamp: 0, ssrc: 1),
            clockRate: 8000,
            arrival: start
        )
        let header = RTPHeader(
            payloadType: 0,
            sequenceNumber: UInt16(truncatingIfNeeded: 100 + row.step),
            timestamp: UInt32(truncatingIfNeeded: row.told * 8),
            ssrc: 1
        )
        return check.isJump(
            header,
            clockRate: clockRate,
            arrival: start + .milliseconds(row.elapsed),
            packetNanoseconds: packetMs * 1_000_000
        )
    }

    @Test(arguments: rows) func `packets for which there was no time are not missing`(row: Row) {
        #expect(isJump(row) == row.isJump)
    }

    @Test func `where time stamps or the length of packets say nothing there is no jump`() {
        let jump = Row(200, told: 20, elapsed: 20, true)
        #expect(!isJump(jump, clockRate: 0) && !isJump(jump, clockRate: 16_000) && !isJump(jump, packetMs: 0))
        let header = RTPHeader(payloadType: 0, sequenceNumber: 7, timestamp: 0, ssrc: 1)
        let check = SequenceCheck()
        #expect(!check.isJump(header, clockRate: 8000, arrival: .zero, packetNanoseconds: 20_000_000))
    }
}
