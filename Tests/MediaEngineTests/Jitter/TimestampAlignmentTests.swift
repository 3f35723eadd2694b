@testable import MediaEngine
import Testing

@Suite struct TimestampAlignmentTests {
    /// One packet of 20 ms: number, time stamp, clock rate, arrival in ms, and its place at 8000 Hz.
    struct Row: Sendable {
        let number: UInt16
        let timestamp: UInt32
        let rate: Int
        let arrival: Int64
        let place: UInt32

        init(_ number: UInt16, _ timestamp: UInt32, _ rate: Int, _ arrival: Int64, _ place: UInt32) {
            (self.number, self.timestamp, self.rate) = (number, timestamp, rate)
            (self.arrival, self.place) = (arrival, place)
        }
    }

    static let timelines: [[Row]] = [
        // One clock rate: time stamps are places, over the wrap, too.
        [Row(1, 4_294_967_200, 8000, 0, 4_294_967_200), Row(2, 64, 8000, 20, 64), Row(5, 544, 8000, 80, 544)],
        // A stream that begins with another rate than its own.
        [Row(1, 5000, 48_000, 0, 5000), Row(2, 5960, 48_000, 20, 5160)],
        // To another rate and back, with a packet lost at the first change.
        [
            Row(65_535, 1000, 8000, 0, 1000), Row(1, 7_000_000, 48_000, 40, 1320), Row(2, 7_000_960, 48_000, 60, 1480),
            Row(3, 90, 8000, 80, 1640), Row(4, 250, 8000, 100, 1800),
        ],
        // The last packet of the old rate comes after the first of the new.
        [
            Row(1, 1000, 8000, 0, 1000), Row(3, 50, 48_000, 40, 1320), Row(2, 1160, 8000, 41, 1160),
            Row(4, 1010, 48_000, 60, 1480),
        ],
        // Half a second late, of a third rate: it goes before its successors and moves nothing.
        [
            Row(10, 1000, 8000, 0, 1000), Row(11, 50, 48_000, 20, 1160), Row(8, 9, 16_000, 520, 680),
            Row(9, 840, 8000, 520, 840), Row(12, 1010, 48_000, 540, 1320),
        ],
        // Five seconds forward, where the first packet after it overtakes another.
        [
            Row(1, 1000, 8000, 0, 1000), Row(3, 41_320, 8000, 40, 1320), Row(2, 41_160, 8000, 41, 1160),
            Row(4, 41_480, 8000, 60, 1480),
        ],
        // A packet half a second late, and then a pause of a second: nothing has leapt.
        [Row(1, 1000, 8000, 0, 1000), Row(2, 1160, 8000, 520, 1160), Row(3, 9320, 8000, 1040, 9320)],
        // A change behind a pause of a second.
        [Row(1, 1000, 8000, 0, 1000), Row(2, 50, 48_000, 1020, 9160)],
    ]

    @Test(arguments: timelines) func `packets of all clock rates lie on one time line`(rows: [Row]) {
        var alignment = TimestampAlignment(rate: 8000)
        for row in rows {
            let header = PacketHeader(
                rtpTimestamp: row.timestamp,
                sequenceNumber: row.number,
                arrival: .zero + .milliseconds(row.arrival)
            )
            #expect(alignment.place(header, clockRate: row.rate, duration: 160) == row.place)
        }
    }

    @Test func `days of packets stay on the line`() {
        var alignment = TimestampAlignment(rate: 8000)
        let first = PacketHeader(rtpTimestamp: 0, sequenceNumber: 0)
        _ = alignment.place(first, clockRate: 48_000, duration: 160)
        // An hour between packets, for four days.
        for hour in 1...100 {
            let timestamp = UInt32(truncatingIfNeeded: hour * 3600 * 48_000)
            let header = PacketHeader(
                rtpTimestamp: timestamp,
                sequenceNumber: UInt16(hour),
                arrival: .zero + .seconds(hour * 3600)
            )
            let place = alignment.place(header, clockRate: 48_000, duration: 160)
            #expect(place == UInt32(truncatingIfNeeded: hour * 3600 * 8000))
        }
    }
}
