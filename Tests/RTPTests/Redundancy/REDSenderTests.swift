import CallBasics
@testable import RTP
import Testing

/// What goes into redundant audio, and what comes out of it at the other end.
@Suite struct REDSenderTests {
    private static let audio: UInt8 = 0
    private static let events: UInt8 = 101

    /// The blocks of a packed packet: "type@offset:first byte", the primary last; "" when it goes as it is.
    private func blocks(_ bytes: [UInt8], _ count: Int) throws -> String {
        guard count > 0 else { return "" }
        let whole = Array(bytes.prefix(count))
        let payload = try REDPayload(parsing: whole.span)
        var parts: [String] = []
        for index in 0..<payload.redundantCount {
            let block = payload.redundant(index)
            parts.append("\(block.payloadType)@\(block.timestampOffset):\(block.content(in: whole.span)[0])")
        }
        parts.append("\(payload.primary.payloadType):\(payload.primary.content(in: whole.span)[0])")
        return parts.joined(separator: " ")
    }

    private func pack(
        _ sender: inout REDSender,
        _ timestamp: UInt32,
        _ byte: UInt8,
        byteCount: Int = 20,
        isMarked: Bool = false,
        generations: Int = 2
    ) throws -> String {
        let payload = [UInt8](repeating: byte, count: byteCount)
        let header = PayloadHeader(payloadType: Self.audio, timestamp: timestamp, isMarked: isMarked)
        var bytes = [UInt8](repeating: 0, count: 1200)
        var target = bytes.mutableSpan
        let count = sender.pack(
            header,
            payload: payload.span,
            generations: generations,
            eventPayloadType: Self.events,
            into: &target
        )
        return try blocks(bytes, count)
    }

    private func packEvent(_ sender: inout REDSender, _ timestamp: UInt32, code: UInt8, isEnd: Bool) throws -> String {
        let event = TelephoneEvent(code: code, isEnd: isEnd, volume: 10, duration: 800)
        let packet = TelephoneEventSender.Packet(event: event, timestamp: timestamp, isMarked: false)
        var payload = [UInt8](repeating: 0, count: 4)
        var payloadTarget = payload.mutableSpan
        event.serialize(into: &payloadTarget)
        var bytes = [UInt8](repeating: 0, count: 1200)
        var target = bytes.mutableSpan
        let count = sender.pack(packet, payload: payload.span, payloadType: Self.events, into: &target)
        return try blocks(bytes, count)
    }

    @Test func `each packet repeats up to two before it, from the first one on that is asked to`() throws {
        var sender = REDSender()
        #expect(try pack(&sender, 160, 1, generations: 0) == "")
        #expect(try pack(&sender, 320, 2, generations: 0) == "")
        #expect(try pack(&sender, 480, 3) == "0@320:1 0@160:2 0:3")
        #expect(try pack(&sender, 640, 4, generations: 1) == "0@160:3 0:4")
        #expect(try pack(&sender, 800, 5) == "0@320:3 0@160:4 0:5")
    }

    @Test func `keys of another time line are not repeated`() throws {
        var sender = REDSender()
        #expect(try packEvent(&sender, 1000, code: 1, isEnd: true) == "")
        #expect(try packEvent(&sender, 3000, code: 2, isEnd: true) == "101@2000:1 101:2")
        sender.forgetEvents()
        #expect(try pack(&sender, 3400, 7) == "")
        #expect(try packEvent(&sender, 4000, code: 3, isEnd: true) == "")
    }

    @Test func `nothing is repeated across a silence or a lost step`() throws {
        var sender = REDSender()
        for index in 1...3 { _ = try pack(&sender, UInt32(index * 160), UInt8(index)) }
        #expect(try pack(&sender, 1600, 4, isMarked: true) == "")
        #expect(try pack(&sender, 1760, 5) == "0@160:4 0:5")
        #expect(try pack(&sender, 2080, 6) == "")
    }

    @Test func `what headers cannot tell, or a datagram not hold, is left out`() throws {
        var sender = REDSender()
        _ = try pack(&sender, 0, 1, byteCount: 1024)
        #expect(try pack(&sender, 160, 2, byteCount: 500) == "")
        #expect(try pack(&sender, 320, 3, byteCount: 500) == "0@160:2 0:3")
        #expect(try pack(&sender, 480, 4, byteCount: 500) == "0@160:3 0:4")
        #expect(try pack(&sender, 640, 5, byteCount: 100) == "0@320:3 0@160:4 0:5")
        #expect(try pack(&sender, 800, 6, byteCount: 1190) == "")
        var slow = REDSender()
        _ = try pack(&slow, 0, 1)
        #expect(try pack(&slow, 16384, 2) == "")
    }

    @Test func `the ends of two keys before are repeated, and the last one in two audio packets`() throws {
        var sender = REDSender()
        _ = try pack(&sender, 0, 9)
        #expect(try packEvent(&sender, 160, code: 1, isEnd: false) == "")
        #expect(try packEvent(&sender, 160, code: 1, isEnd: true) == "")
        #expect(try packEvent(&sender, 160, code: 1, isEnd: true) == "")
        #expect(try packEvent(&sender, 1760, code: 5, isEnd: false) == "101@1600:1 101:5")
        #expect(try packEvent(&sender, 1760, code: 5, isEnd: true) == "101@1600:1 101:5")
        #expect(try packEvent(&sender, 3360, code: 7, isEnd: true) == "101@3200:1 101@1600:5 101:7")
        #expect(try pack(&sender, 4000, 2, isMarked: false) == "101@640:7 0:2")
        #expect(try pack(&sender, 4160, 3) == "101@800:7 0@160:2 0:3")
        #expect(try pack(&sender, 4320, 4) == "0@320:2 0@160:3 0:4")
    }

    // MARK: The other end

    private func header(_ sequence: UInt16, _ timestamp: UInt32, isMarked: Bool = false) -> RTPHeader {
        RTPHeader(isMarked: isMarked, payloadType: 0, sequenceNumber: sequence, timestamp: timestamp, ssrc: 1)
    }

    @Test func `a copy gets the number of the packet that is missing, once`() {
        var receiver = REDReceiver()
        let start: UInt16 = 65534
        func at(_ index: UInt16) -> RTPHeader { header(start &+ index, UInt32(index) &* 160 &- 320) }
        for index: UInt16 in 0...2 { receiver.note(at(index), isAudio: true) }
        // Packets 3 and 4 are lost.
        let five = at(5)
        #expect(receiver.claim(timestampOffset: 320, before: five) == start &+ 3)
        #expect(receiver.claim(timestampOffset: 160, before: five) == start &+ 4)
        receiver.note(five, isAudio: true)
        let six = at(6)
        #expect(receiver.claim(timestampOffset: 320, before: six) == nil)
        #expect(receiver.claim(timestampOffset: 160, before: six) == nil)
        receiver.note(six, isAudio: true)
        // Packet 7 comes late, behind 8, which brought its copy.
        let eight = at(8)
        #expect(receiver.claim(timestampOffset: 160, before: eight) == start &+ 7)
        receiver.note(eight, isAudio: true)
        receiver.note(at(7), isAudio: true)
        #expect(receiver.claim(timestampOffset: 160, before: at(9)) == nil)
    }

    @Test func `copies that cannot be placed are left out`() {
        var receiver = REDReceiver()
        #expect(receiver.claim(timestampOffset: 160, before: header(5, 800)) == nil)
        receiver.note(header(5, 800), isAudio: true)
        #expect(receiver.claim(timestampOffset: 160, before: header(6, 960)) == nil)
        receiver.note(header(6, 960), isAudio: true)
        // No whole number of packets, the packet itself, and more than a payload repeats.
        for offset: UInt16 in [80, 240, 0, 1600] {
            #expect(receiver.claim(timestampOffset: offset, before: header(20, 3200)) == nil)
        }
        // After a silence of 1 s the copy of the packet before it would get a number that is long taken.
        #expect(receiver.claim(timestampOffset: 1280, before: header(7, 2240)) == nil)
        receiver.note(header(7, 9120, isMarked: true), isAudio: true)
        #expect(receiver.claim(timestampOffset: 160, before: header(9, 9440)) == 8)
        // Keys take numbers, and their time stands still.
        receiver.note(header(9, 9280), isAudio: false)
        receiver.note(header(10, 9280), isAudio: false)
        #expect(receiver.claim(timestampOffset: 320, before: header(11, 10400)) == nil)
        #expect(receiver.claim(timestampOffset: 160, before: header(12, 10560)) == 11)
    }

    @Test func `any numbers at all are answered`() {
        var generator = SeededGenerator(seed: 7)
        var receiver = REDReceiver()
        for _ in 0..<50_000 {
            let (a, b) = (generator.next(), generator.next())
            let near = b & 7 == 0 ? UInt16(truncatingIfNeeded: a) : UInt16(truncatingIfNeeded: a & 31)
            let packet = header(near, UInt32(truncatingIfNeeded: b >> 8), isMarked: a & 1024 != 0)
            _ = receiver.claim(timestampOffset: UInt16(truncatingIfNeeded: a >> 20) & 0x3FFF, before: packet)
            if a & 2048 != 0 { receiver.note(packet, isAudio: a & 4096 != 0) }
        }
    }
}
