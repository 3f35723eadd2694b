import CallBasics
import Foundation
@testable import RTP
import TestSupport
import Testing

@Suite struct TelephoneEventTests {
    struct Case: Decodable, CustomTestStringConvertible {
        let id: String
        let packets: [String]
        let expect: [String]
        let why: String
        var testDescription: String { id }
    }

    static func cases() throws -> [Case] {
        let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Fixtures/telephone-event-cases.json")
        return try JSONDecoder().decode([Case].self, from: Data(contentsOf: url))
    }

    /// The keys pressed, by the reports of their beginning, and the reports themselves.
    static func receive(_ packets: [[UInt8]]) throws -> (keys: [String], reports: [TelephoneEventReceiver.Report]) {
        var receiver = TelephoneEventReceiver()
        var reports: [TelephoneEventReceiver.Report] = []
        for (index, packet) in packets.enumerated() {
            let parsed = try RTPPacket(parsing: packet.span)
            let arrival = MediaTime(nanoseconds: Int64(index) * 20_000_000)
            receiver.receive(parsed.header, payload: parsed.payload(in: packet.span), clockRate: 8000, arrival: arrival)
            while let report = receiver.next() { reports.append(report) }
        }
        receiver.advance(to: MediaTime(nanoseconds: Int64(packets.count) * 20_000_000 + 1_000_000_000))
        while let report = receiver.next() { reports.append(report) }
        let keys = reports.filter { $0.kind == .started }.map { $0.code == 16 ? "flash" : key($0.code) }
        return (keys, reports)
    }

    static func key(_ code: UInt8) -> String { TelephoneEvent.key(of: code).map { String($0) } ?? "?" }

    // own/telephone-event/cases.json of the shared corpora: packet sequences with the digits they mean.
    @Test(arguments: try cases()) func `packet sequences mean the digits they should`(given: Case) throws {
        let (keys, reports) = try Self.receive(given.packets.map { bytes($0) })
        #expect(keys == given.expect, "\(given.why)")
        #expect(reports.count == 2 * given.expect.count)
        for (index, report) in reports.enumerated() { #expect((report.kind == .started) == (index % 2 == 0)) }
    }

    @Test(arguments: try cases()) func `no loss of one or two packets changes the digits`(given: Case) throws {
        let packets = given.packets.map { bytes($0) }
        guard packets.count / max(given.expect.count, 1) > 6 else { return }
        for first in packets.indices {
            for second in first..<packets.count {
                let left = packets.indices.filter { $0 != first && $0 != second }.map { packets[$0] }
                #expect(try Self.receive(left).keys == given.expect, "without packets \(first) and \(second)")
            }
        }
    }

    @Test(arguments: try cases()) func `neighbours that change places do not change the digits`(given: Case) throws {
        let packets = given.packets.map { bytes($0) }
        let perEvent = packets.count / max(given.expect.count, 1)
        for first in packets.indices.dropLast() where (first + 1) % perEvent != 0 {
            var swapped = packets
            swapped.swapAt(first, first + 1)
            #expect(try Self.receive(swapped).keys == given.expect, "with \(first) and \(first + 1) swapped")
        }
    }

    @Test(arguments: try cases()) func `packets that come twice do not double the digits`(given: Case) throws {
        let packets = given.packets.map { bytes($0) }
        #expect(try Self.receive(packets.flatMap { [$0, $0] }).keys == given.expect)
        for late in packets.indices where late + 3 < packets.count {
            var repeated = packets
            repeated.insert(packets[late], at: late + 3)
            #expect(try Self.receive(repeated).keys == given.expect, "with packet \(late) again three later")
        }
    }

    @Test func `ends are told with the duration`() throws {
        let given = try #require(try Self.cases().first { $0.id == "plain-8k" })
        let reports = try Self.receive(given.packets.map { bytes($0) }).reports
        for report in reports where report.kind == .ended {
            #expect(report.duration == 800 && report.milliseconds == 100 && report.volume == 10)
        }
        #expect(reports.allSatisfy { $0.kind != .presumedEnded })
    }

    @Test func `a sender that moves the time stamp with every packet presses once`() throws {
        // RestComm/media-core #62: each packet had a new time stamp.
        var packets: [[UInt8]] = []
        for index in 0..<8 {
            let event = TelephoneEvent(
                code: 5,
                isEnd: index > 4,
                volume: 10,
                duration: UInt16(160 * min(index + 1, 5))
            )
            packets.append(Self.packet(event, sequence: UInt16(index), timestamp: UInt32(1000 + 160 * min(index, 5))))
        }
        #expect(try Self.receive(packets).keys == ["5"])
    }

    @Test func `one time stamp for all presses still gives each of them`() throws {
        var packets: [[UInt8]] = []
        for (press, code) in [UInt8(1), 2, 2, 2].enumerated() {
            for index in 0..<6 {
                let event = TelephoneEvent(
                    code: code,
                    isEnd: index > 3,
                    volume: 10,
                    duration: UInt16(160 * min(index + 1, 4))
                )
                packets.append(Self.packet(event, sequence: UInt16(press * 6 + index), timestamp: 1000))
            }
        }
        #expect(try Self.receive(packets).keys == ["1", "2", "2", "2"])
    }

    @Test func `a press without ends is ended by the next, or by silence`() throws {
        let packets = (0..<4).map { index in
            let event = TelephoneEvent(
                code: UInt8(index / 2),
                isEnd: false,
                volume: 10,
                duration: UInt16(160 * (index % 2 + 1))
            )
            return Self.packet(event, sequence: UInt16(index), timestamp: UInt32(index / 2 * 1600))
        }
        let reports = try Self.receive(packets).reports
        #expect(reports.map(\.kind) == [.started, .presumedEnded, .started, .presumedEnded])
        #expect(reports.map(\.code) == [0, 0, 1, 1])
        #expect(reports.map(\.duration) == [160, 320, 160, 320])
    }

    @Test func `another event than a key is not reported, and what cannot be read is told`() {
        var receiver = TelephoneEventReceiver()
        let header = RTPHeader(payloadType: 101, sequenceNumber: 1, timestamp: 1, ssrc: 1)
        let (other, short) = (bytes("20 0a 00a0"), bytes("01 0a 00"))
        let isOtherRead = receiver.receive(header, payload: other.span, clockRate: 8000, arrival: .zero)
        let isShortRead = receiver.receive(header, payload: short.span, clockRate: 8000, arrival: .zero)
        #expect(isOtherRead && !isShortRead && receiver.next() == nil)
    }

    @Test func `keys and codes belong together`() {
        for (code, key) in "0123456789*#ABCD!".enumerated() {
            #expect(TelephoneEvent.code(of: key) == UInt8(code))
            #expect(TelephoneEvent.key(of: UInt8(code)) == key)
        }
        for other in ["x", "٣", "½", " ", ","] as [Character] { #expect(TelephoneEvent.code(of: other) == nil) }
        #expect(TelephoneEvent.key(of: 17) == nil)
    }

    @Test func `any packets do not trap, and every start has its end`() {
        var generator = SeededGenerator(seed: 3)
        var receiver = TelephoneEventReceiver()
        var open = 0
        for step in 0..<50_000 {
            let random = generator.next()
            let header = RTPHeader(
                isMarked: random & 1 == 1,
                payloadType: 101,
                sequenceNumber: UInt16(truncatingIfNeeded: random >> 1) & 31,
                timestamp: random & 2 == 0
                    ? UInt32(truncatingIfNeeded: random >> 32) & 4095 : UInt32(truncatingIfNeeded: random >> 32),
                ssrc: 1
            )
            let payload = withUnsafeBytes(of: generator.next()) { Array($0.prefix(Int(random >> 60))) }
            receiver.receive(
                header,
                payload: payload.span,
                clockRate: 8000,
                arrival: MediaTime(nanoseconds: Int64(step) * 10_000_000)
            )
            while let report = receiver.next() {
                open += report.kind == .started ? 1 : -1
                #expect((0...2).contains(open))
            }
        }
        receiver.reset()
        while let report = receiver.next() { open += report.kind == .started ? 1 : -1 }
        #expect(open == 0)
    }

    static func packet(_ event: TelephoneEvent, sequence: UInt16, timestamp: UInt32) -> [UInt8] {
        var storage = [UInt8](repeating: 0, count: 16)
        var payload = [UInt8](repeating: 0, count: 4)
        var payloadTarget = payload.mutableSpan
        event.serialize(into: &payloadTarget)
        let header = RTPHeader(payloadType: 101, sequenceNumber: sequence, timestamp: timestamp, ssrc: 1)
        var target = storage.mutableSpan
        header.serialize(with: payload.span, into: &target)
        return storage
    }
}
