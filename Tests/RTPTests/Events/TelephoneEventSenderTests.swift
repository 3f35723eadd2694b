import CallBasics
@testable import RTP
import Testing

@Suite struct TelephoneEventSenderTests {
    /// Ticks of 10 ms until the sender is idle; each packet with the time, in ms, when it came.
    static func run(
        _ sender: inout TelephoneEventSender,
        from start: UInt32 = 0,
        limit: Int = 5000,
        during: (Int, inout TelephoneEventSender) -> Void = { _, _ in }
    ) -> [(milliseconds: Int, packet: TelephoneEventSender.Packet)] {
        var result: [(Int, TelephoneEventSender.Packet)] = []
        for tick in 0..<limit {
            during(tick, &sender)
            let timestamp = start &+ UInt32(tick) * sender.clockRate / 100
            while let packet = sender.next(at: timestamp) { result.append((tick * 10, packet)) }
            if sender.isIdle, tick > 0 { break }
        }
        return result
    }

    @Test func `an event has a marker, growing durations, and three spaced ends`() {
        var sender = TelephoneEventSender(clockRate: 8000)
        sender.enqueue(1, duration: .milliseconds(100))
        let sent = Self.run(&sender, from: 1000)
        #expect(sent.map(\.milliseconds) == [0, 20, 40, 60, 80, 100, 120])
        #expect(sent.map(\.packet.event.duration) == [160, 320, 480, 640, 800, 800, 800])
        #expect(sent.map(\.packet.event.isEnd) == [false, false, false, false, true, true, true])
        #expect(sent.map(\.packet.isMarked) == [true, false, false, false, false, false, false])
        #expect(sent.allSatisfy { $0.packet.timestamp == 1000 && $0.packet.event.volume == 10 })
    }

    @Test func `the time stamp may wrap in an event`() {
        var sender = TelephoneEventSender(clockRate: 48000, packetInterval: .milliseconds(50))
        sender.enqueue(11, duration: .milliseconds(120))
        let sent = Self.run(&sender, from: .max - 1000)
        #expect(sent.map(\.milliseconds) == [0, 50, 100, 150, 200])
        #expect(sent.map(\.packet.event.duration) == [2400, 4800, 5760, 5760, 5760])
    }

    @Test func `events follow each other after the gap, and pauses are kept`() {
        var sender = TelephoneEventSender(clockRate: 8000)
        sender.enqueue(1, duration: .milliseconds(100), gap: .milliseconds(100))
        sender.enqueuePause()
        sender.enqueue(2, duration: .milliseconds(100), gap: .zero)
        sender.enqueue(3, duration: .milliseconds(100), gap: .zero)
        let starts = Self.run(&sender).filter(\.packet.isMarked)
        // Without a gap the next event still waits for the repeated ends.
        #expect(starts.map(\.milliseconds) == [0, 2200, 2320])
        #expect(starts.map(\.packet.event.code) == [1, 2, 3])
    }

    @Test func `a held key lasts until it is let go`() {
        var sender = TelephoneEventSender(clockRate: 8000)
        sender.start(5)
        let sent = Self.run(&sender) { tick, sender in if tick == 31 { sender.stop() } }
        #expect(sent.last?.packet.event == TelephoneEvent(code: 5, isEnd: true, volume: 10, duration: 310 * 8 + 80))
        #expect(sent.filter(\.packet.event.isEnd).count == 3)
    }

    @Test func `a key that is let go at once still lasts 100 ms`() {
        var sender = TelephoneEventSender(clockRate: 8000)
        sender.start(5)
        let sent = Self.run(&sender) { tick, sender in if tick == 1 { sender.stop() } }
        #expect(sent.last?.packet.event.duration == 800)
        var queued = TelephoneEventSender(clockRate: 8000)
        queued.start(5)
        queued.stop()
        #expect(Self.run(&queued).last?.packet.event.duration == 800)
    }

    @Test func `a second held key ends the first`() {
        var sender = TelephoneEventSender(clockRate: 8000)
        sender.start(1)
        let sent = Self.run(&sender) { tick, sender in
            if tick == 20 { sender.start(2) }
            if tick == 60 { sender.stop() }
        }
        #expect(sent.filter(\.packet.isMarked).map(\.packet.event.code) == [1, 2])
        #expect(sent.filter(\.packet.event.isEnd).map(\.packet.event.code) == [1, 1, 1, 2, 2, 2])
    }

    @Test func `an event longer than 16 bits goes on in segments`() {
        var sender = TelephoneEventSender(clockRate: 8000)
        sender.enqueue(7, duration: .seconds(20))
        let sent = Self.run(&sender).map(\.packet)
        #expect(sent.filter(\.isMarked).count == 1)
        #expect(Set(sent.map(\.timestamp)) == [0, 65535, 131_070])
        #expect(sent.filter { $0.timestamp == 0 && $0.event.duration == 65535 }.count == 3)
        #expect(
            sent.filter(\.event.isEnd).allSatisfy {
                $0.timestamp == 131_070 && Int($0.event.duration) == 160_000 - 131_070
            }
        )
        let ends = sent.filter(\.event.isEnd).count
        #expect(ends == 3)
    }

    /// Wherever a key is let go, at the end of a segment among them.
    @Test(arguments: [8000, 16_000, 48_000] as [UInt32]) func `a held key that goes on in segments ends with a length`(
        clockRate: UInt32
    ) {
        let segment = Int(0xFFFF / (clockRate / 100))
        for stop in segment - 3...segment + 4 {
            var sender = TelephoneEventSender(clockRate: clockRate)
            sender.start(5)
            let sent = Self.run(&sender) { tick, sender in if tick == stop { sender.stop() } }.map(\.packet)
            let ends = sent.filter(\.event.isEnd)
            #expect(ends.count == 3 && ends.allSatisfy { $0.event.duration > 0 }, "\(stop)")
        }
    }

    @Test(arguments: [0, 1, 5, 409, 410, 411, 412, 500]) func `a long event is one press at the receiver`(lost: Int)
        throws
    {
        var sender = TelephoneEventSender(clockRate: 8000)
        sender.enqueue(7, duration: .seconds(20))
        var receiver = TelephoneEventReceiver()
        for (index, sent) in Self.run(&sender).enumerated() where index != lost {
            var payload = [UInt8](repeating: 0, count: 4)
            var target = payload.mutableSpan
            sent.packet.event.serialize(into: &target)
            let header = RTPHeader(
                isMarked: sent.packet.isMarked,
                payloadType: 101,
                sequenceNumber: UInt16(index),
                timestamp: sent.packet.timestamp,
                ssrc: 1
            )
            receiver.receive(
                header,
                payload: payload.span,
                clockRate: 8000,
                arrival: MediaTime(nanoseconds: Int64(sent.milliseconds) * 1_000_000)
            )
        }
        let start = receiver.next()
        #expect(start?.kind == .started)
        let last = receiver.next()
        let end = try #require(last)
        #expect(end.kind == .ended && end.duration == 160_000)
        let more = receiver.next()
        #expect(more == nil)
    }

    @Test func `the queue is bounded`() {
        var sender = TelephoneEventSender(clockRate: 8000)
        let accepted = (0..<100).filter { _ in sender.enqueue(1) }.count
        #expect(accepted == TelephoneEventSender.capacity)
    }

    @Test func `a flash has no volume`() {
        var sender = TelephoneEventSender(clockRate: 8000)
        sender.enqueue(TelephoneEvent.flash)
        #expect(Self.run(&sender).allSatisfy { $0.packet.event.volume == 0 })
    }

    @Test func `ticks that fall out do not bring a burst`() {
        var sender = TelephoneEventSender(clockRate: 8000)
        sender.enqueue(1, duration: .milliseconds(400))
        var counts: [Int] = []
        for milliseconds in [0, 10, 20, 200, 210, 220] {
            var count = 0
            while sender.next(at: UInt32(milliseconds * 8)) != nil { count += 1 }
            counts.append(count)
        }
        #expect(counts == [1, 0, 1, 1, 0, 1])
    }
}
