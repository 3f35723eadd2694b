import CallBasics
@testable import RTP
import Testing

/// Every loss of one or two packets of a train of events, every change of order, every repetition: each press is told
/// once, with its end and its length.
@Suite struct TelephoneEventLossTests {
    struct Train: CustomTestStringConvertible {
        let milliseconds: Int64
        let gap: Int64
        let keys: [UInt8]
        /// Every packet as it is sent.
        let packets: [(bytes: [UInt8], time: MediaTime)]

        var testDescription: String { "\(keys) of \(milliseconds) ms, \(gap) ms apart" }
        var units: UInt32 { UInt32(milliseconds * 8) }

        init(_ keys: [UInt8], milliseconds: Int64, gap: Int64) {
            self.keys = keys
            self.milliseconds = milliseconds
            self.gap = gap
            var sender = TelephoneEventSender(clockRate: 8000)
            for key in keys {
                sender.enqueue(key, duration: .milliseconds(milliseconds), gap: .milliseconds(gap))
            }
            var sent: [(bytes: [UInt8], time: MediaTime)] = []
            var sequence: UInt16 = 65530
            for tick in Int64(0)..<100_000 where !sender.isIdle {
                let time = UInt32(truncatingIfNeeded: 0xFFFF_FF00 + tick * 80)
                while let packet = sender.next(at: time) {
                    let bytes = TelephoneEventTests.packet(packet, sequence: sequence)
                    sent.append((bytes, MediaTime(nanoseconds: tick * 10_000_000)))
                    sequence &+= 1
                }
                // Audio between the events has sequence numbers of its own.
                if !sender.isSending, tick % 2 == 0 { sequence &+= 1 }
            }
            packets = sent
        }
    }

    static let trains = [
        Train([5, 5, 7], milliseconds: 40, gap: 20),
        Train([5, 5, 7], milliseconds: 40, gap: 100),
        Train([1, 1, 1, 2], milliseconds: 70, gap: 40),
        Train([11, 11, 0], milliseconds: 100, gap: 100),
        Train([9, 9], milliseconds: 250, gap: 60),
        Train([3], milliseconds: 1000, gap: 40),
    ]

    @Test(arguments: trains) func `nothing lost`(train: Train) throws {
        #expect(train.packets.count == train.keys.count * (Int(train.milliseconds + 19) / 20 + 2))
        try Self.expectAll(train, train.packets, "as sent")
    }

    @Test(arguments: trains) func `any one or two packets lost`(train: Train) throws {
        for first in train.packets.indices {
            for second in first..<train.packets.count {
                var left = train.packets
                left.remove(at: second)
                if second > first { left.remove(at: first) }
                try Self.expectAll(train, left, "without \(first) and \(second)")
            }
        }
    }

    @Test(arguments: trains) func `any packet late by one to three places`(train: Train) throws {
        for from in train.packets.indices {
            for places in 1...3 where from + places < train.packets.count {
                try Self.expectAll(train, Self.moved(train.packets, from, places), "\(from) late by \(places)")
            }
        }
    }

    @Test(arguments: trains) func `any packet late and any other lost`(train: Train) throws {
        for from in train.packets.indices.dropLast() {
            let late = Self.moved(train.packets, from, 1)
            for lost in late.indices {
                var left = late
                left.remove(at: lost)
                try Self.expectAll(train, left, "\(from) late and \(lost) lost")
            }
        }
    }

    @Test(arguments: trains) func `any packet twice, at once or later`(train: Train) throws {
        for index in train.packets.indices {
            for places in [0, 1, 4] where index + places < train.packets.count {
                var repeated = train.packets
                repeated.insert(
                    (train.packets[index].bytes, train.packets[index + places].time),
                    at: index + places + 1
                )
                try Self.expectAll(train, repeated, "\(index) again \(places) later")
            }
        }
    }

    @Test(arguments: trains) func `a press without any of its ends is told once, and ends`(train: Train) throws {
        for key in train.keys.indices {
            var ends = 0
            let left = train.packets.filter { packet in
                guard packet.bytes[13] & 0x80 != 0 else { return true }
                ends += 1
                return (ends - 1) / 3 != key
            }
            let reports = try Self.reports(left)
            #expect(reports.filter { $0.kind == .started }.map(\.code) == train.keys)
            #expect(reports.filter { $0.kind != .started }.map(\.code) == train.keys)
            #expect(reports.filter { $0.kind == .presumedEnded }.count == 1)
        }
    }

    /// RFC 4733, 2.5.1.3 and 2.5.1.4: a segment of 65535 units ends without the E bit, and its last packet is sent three
    /// times as that of an event is.
    @Test func `a press of 20 s is one press, whatever packet is lost about its segments' ends`() throws {
        let train = Train([4], milliseconds: 20_000, gap: 40)
        let lasts = train.packets.indices.filter { index in
            train.packets[index].bytes[14...15].allSatisfy { $0 == 0xFF }
        }
        #expect(lasts.count == 6)
        #expect(lasts.allSatisfy { train.packets[$0].bytes[13] & 0x80 == 0 })
        try Self.expectAll(train, train.packets, "as sent")
        for first in lasts[0]...(lasts[2] + 2) {
            for second in first...(lasts[2] + 2) {
                var left = train.packets
                left.remove(at: second)
                if second > first { left.remove(at: first) }
                try Self.expectAll(train, left, "without \(first) and \(second)")
            }
            try Self.expectAll(train, Self.moved(train.packets, first, 2), "\(first) late")
        }
    }

    private static func moved(
        _ packets: [(bytes: [UInt8], time: MediaTime)],
        _ from: Int,
        _ places: Int
    ) -> [(bytes: [UInt8], time: MediaTime)] {
        var order = packets.map(\.bytes)
        order.insert(order.remove(at: from), at: from + places)
        return zip(order, packets).map { ($0, $1.time) }
    }

    private static func expectAll(
        _ train: Train,
        _ packets: [(bytes: [UInt8], time: MediaTime)],
        _ why: String
    ) throws {
        let reports = try reports(packets)
        let isRight =
            reports.count == 2 * train.keys.count
            && reports.enumerated().allSatisfy { index, report in
                report.code == train.keys[index / 2]
                    && report.kind == (index % 2 == 0 ? .started : .ended)
                    && (report.kind == .started || report.duration == train.units)
            }
        #expect(isRight, "\(why): \(reports)")
    }

    private static func reports(
        _ packets: [(bytes: [UInt8], time: MediaTime)]
    ) throws -> [TelephoneEventReceiver.Report] {
        var receiver = TelephoneEventReceiver()
        var reports: [TelephoneEventReceiver.Report] = []
        for packet in packets {
            let parsed = try RTPPacket(parsing: packet.bytes.span)
            receiver.receive(
                parsed.header,
                payload: parsed.payload(in: packet.bytes.span),
                clockRate: 8000,
                arrival: packet.time
            )
            while let report = receiver.next() { reports.append(report) }
        }
        receiver.advance(to: MediaTime(nanoseconds: 1_000_000_000_000))
        while let report = receiver.next() { reports.append(report) }
        return reports
    }
}

extension TelephoneEventTests {
    static func packet(_ packet: TelephoneEventSender.Packet, sequence: UInt16) -> [UInt8] {
        var payload = [UInt8](repeating: 0, count: 4)
        var payloadTarget = payload.mutableSpan
        packet.event.serialize(into: &payloadTarget)
        var storage = [UInt8](repeating: 0, count: 16)
        let header = RTPHeader(
            isMarked: packet.isMarked,
            payloadType: 101,
            sequenceNumber: sequence,
            timestamp: packet.timestamp,
            ssrc: 1
        )
        var target = storage.mutableSpan
        header.serialize(with: payload.span, into: &target)
        return storage
    }
}
