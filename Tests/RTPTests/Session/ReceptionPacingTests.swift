import Testing

import CallBasics
@testable import RTP

@Suite struct ReceptionPacingTests {
    private static let tick = Duration.milliseconds(10)

    /// Packets of 20 ms at 8 kHz by their arrival in ms, and the ms of the ticks in which each was read.
    private struct Row {
        let name: String
        let arrivals: [(sequence: UInt16, arrival: Int)]
        /// Ticks that look, up to the last one of the row.
        let looks: [Int]
        /// The tick in which each packet is read.
        let reads: [Int]
    }

    private static let rows = [
        Row(
            name: "a calm stream is looked at once a packet",
            arrivals: [(1, 5), (2, 25), (3, 45), (4, 65)],
            looks: [10, 30, 50, 70],
            reads: [10, 30, 50, 70]
        ),
        Row(
            name: "behind a late packet others may wait",
            arrivals: [(1, 5), (2, 25), (3, 64), (4, 66), (5, 85)],
            looks: [10, 30, 50, 60, 70, 70, 70, 80, 90, 90],
            reads: [10, 30, 70, 70, 90]
        ),
        Row(
            name: "a gap makes every tick look",
            arrivals: [(1, 5), (2, 25), (4, 65), (5, 85)],
            looks: [10, 30, 50, 60, 70, 70, 80, 90, 90],
            reads: [10, 30, 70, 90]
        ),
        Row(
            name: "a stream whose rhythm moves ahead is followed",
            arrivals: [(1, 5), (2, 25), (3, 39), (4, 59)],
            looks: [10, 30, 50, 60],
            reads: [10, 30, 50, 60]
        ),
    ]

    /// The state after a second of calm packets, the last of which, number 0, came at -15 ms and was read at -10 ms.
    private func calmPacing() -> ReceptionPacing {
        var pacing = ReceptionPacing()
        for number in -50...0 {
            let arrival = number * 20 - 15
            pacing.begin()
            pacing.took(
                header(UInt16(truncatingIfNeeded: number)),
                clockRate: 8000,
                arrival: time(arrival),
                at: time(arrival + 5),
                tick: Self.tick
            )
        }
        return pacing
    }

    private func header(_ sequence: UInt16) -> RTPHeader {
        let timestamp = UInt32(truncatingIfNeeded: Int(Int16(bitPattern: sequence)) * 160)
        return RTPHeader(payloadType: 0, sequenceNumber: sequence, timestamp: timestamp, ssrc: 1)
    }

    private func time(_ milliseconds: Int) -> MediaTime { MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000) }

    @Test(arguments: rows.indices)
    func `the socket is looked at when something can be there`(_ index: Int) {
        let row = Self.rows[index]
        var pacing = calmPacing()
        var waiting = row.arrivals[...]
        var looks: [Int] = []
        var reads: [Int] = []
        var now = 0
        while !waiting.isEmpty {
            if pacing.isDue(at: time(now)) {
                pacing.begin()
                while pacing.looksAgain {
                    looks.append(now)
                    guard let next = waiting.first, next.arrival <= now else { break }
                    waiting.removeFirst()
                    reads.append(now)
                    pacing.took(
                        header(next.sequence),
                        clockRate: 8000,
                        arrival: time(next.arrival),
                        at: time(now),
                        tick: Self.tick
                    )
                }
            }
            now += 10
        }
        #expect(looks == row.looks, "\(row.name)")
        #expect(reads == row.reads, "\(row.name)")
    }
}
