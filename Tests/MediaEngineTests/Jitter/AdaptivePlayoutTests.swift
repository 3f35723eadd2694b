import Foundation
@testable import MediaEngine
import Testing

/// A decoder of 20 ms packets of a voice-like tone at 8 kHz; a packet holds its number, and its copy when asked for.
private final class VoiceDecoder: AudioDecoder {
    let format = AudioFormat(sampleRate: 8000)
    var holdsCopies = false

    func frameCount(of payload: Span<UInt8>) -> Int { payload.count == 2 ? 160 : 0 }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        let number = Int(payload[0]) << 8 | Int(payload[1])
        for index in 0..<160 { samples[index] = Self.sample(number * 160 + index) }
        return 160
    }

    func decodeFEC(in next: Span<UInt8>, frameCount: Int, into samples: inout MutableSpan<Int16>) -> Int {
        guard holdsCopies else { return 0 }
        for index in 0..<frameCount { samples[index] = 1 }
        return frameCount
    }

    func carriesFEC(_ payload: Span<UInt8>) -> Bool { holdsCopies }

    func conceal(frameCount: Int, into samples: inout MutableSpan<Int16>) {
        for index in 0..<frameCount { samples[index] = 0 }
    }

    func reset() {}

    /// 125 Hz with overtones: 64 samples a period.
    private static func sample(_ position: Int) -> Int16 {
        let phase = 2 * Double.pi * Double(position % 64) / 64
        return Int16(5000 * sin(phase) + 2000 * sin(2 * phase) + 1000 * sin(3 * phase))
    }
}

/// Streams of 20 ms packets through the adaptive buffer in virtual time.
@Suite struct AdaptivePlayoutTests {
    /// What came out.
    private struct Result {
        var statistics: PlayoutStatistics
        /// The playout delay in ms, second by second.
        var delays: [Int]

        var concealedMs: Int { statistics.concealedFrameCount / 8 }
        var stretchedMs: Int {
            (statistics.buffer.acceleratedDuration + statistics.buffer.expandedDuration) / 48
        }
    }

    private static func ms(_ value: Int) -> MediaTime { MediaTime(nanoseconds: Int64(value) * 1_000_000) }

    /// Plays `seconds` of packets; `delay` gives each packet's way through the network in ms, nil for a lost one.
    private func play(
        seconds: Int,
        holdsCopies: Bool = false,
        ppm: Int = 0,
        timestamp: (Int) -> UInt32 = { UInt32(truncatingIfNeeded: $0 * 160) },
        isSent: (Int) -> Bool = { _ in true },
        isTicking: (Int) -> Bool = { _ in true },
        delay: (Int) -> Int?
    ) -> Result {
        let decoder = VoiceDecoder()
        decoder.holdsCopies = holdsCopies
        let playout = Playout(decoder, delay: .automatic)
        var arrivals: [(time: Int, number: Int, sequence: Int)] = []
        var sequence = 65000
        for number in 0..<seconds * 50 where isSent(number) {
            sequence += 1
            guard let delay = delay(number) else { continue }
            arrivals.append((number * 20_000 * 1_000_000 / (1_000_000 + ppm) / 1000 + delay, number, sequence))
        }
        arrivals.sort { $0.time < $1.time }
        var next = arrivals[...]
        var block = [Int16](repeating: 0, count: 80)
        var delays: [Int] = []
        for tick in 0..<seconds * 100 where isTicking(tick) {
            while let first = next.first, first.time <= tick * 10 {
                next.removeFirst()
                let header = PacketHeader(
                    rtpTimestamp: timestamp(first.number),
                    sequenceNumber: UInt16(truncatingIfNeeded: first.sequence),
                    arrival: Self.ms(first.time)
                )
                let payload: [UInt8] = [UInt8(truncatingIfNeeded: first.number >> 8), UInt8(first.number & 0xFF)]
                playout.insert(header, payload: payload.span)
            }
            var samples = block.mutableSpan
            playout.play(into: &samples, at: Self.ms(tick * 10))
            if tick % 100 == 99 {
                delays.append(Int(playout.statistics.buffer.playoutDelayNanoseconds / 1_000_000))
            }
        }
        return Result(statistics: playout.statistics, delays: delays)
    }

    private static func jitter(_ width: Int, seed: UInt64) -> (Int) -> Int {
        var generator = SeededGenerator(seed: seed)
        let delays = (0..<6000).map { _ in 20 + (width > 0 ? Int(generator.next() % UInt64(width)) : 0) }
        return { delays[$0] }
    }

    @Test func `a steady network is played with the least delay, from the first second on`() {
        let result = play(seconds: 20) { _ in 20 }
        #expect(result.delays.allSatisfy { $0 <= 35 }, "\(result.delays)")
        #expect(result.concealedMs == 0)
        #expect(result.statistics.buffer.lateCount == 0)
    }

    @Test(arguments: [(30, 1), (60, 2), (100, 3)] as [(Int, UInt64)])
    func `jitter is held back as long as it is wide`(_ jitter: Int, _ seed: UInt64) {
        let result = play(seconds: 60, delay: Self.jitter(jitter, seed: seed))
        let settled = result.delays.dropFirst(3)
        #expect(settled.allSatisfy { $0 >= jitter - 5 && $0 <= jitter + 30 }, "\(result.delays)")
        #expect(result.statistics.buffer.lateCount <= 12, "\(result.statistics.buffer.lateCount) late of 3000")
        #expect(result.concealedMs <= 300, "\(result.concealedMs) ms concealed of 60 s")
    }

    @Test func `copies of lost packets are waited for only where they are needed`() {
        func lost(_ number: Int) -> Bool { number % 17 == 16 }
        let jitter = Self.jitter(10, seed: 4)
        let with = play(seconds: 60, holdsCopies: true) { lost($0) ? nil : jitter($0) }
        let without = play(seconds: 60) { lost($0) ? nil : jitter($0) }
        let clean = play(seconds: 60, holdsCopies: true, delay: jitter)
        let lostCount = (0..<3000).filter(lost).count
        #expect(with.statistics.recoveredCount >= lostCount * 9 / 10)
        #expect(without.statistics.recoveredCount == 0)
        #expect(without.concealedMs >= lostCount * 19)
        let (longer, shorter) = (with.delays.suffix(30).reduce(0, +), clean.delays.suffix(30).reduce(0, +))
        #expect(longer > shorter + 30 * 5, "\(with.delays) and \(clean.delays)")
    }

    @Test func `the last packet of a lost burst is recovered`() {
        // Two in a row lost, often enough that copies are waited for.
        let result = play(seconds: 60, holdsCopies: true) { $0 > 100 && $0 % 20 < 2 ? nil : 20 }
        let bursts = (101..<3000).filter { $0 % 20 == 1 }.count
        #expect(result.statistics.recoveredCount >= bursts * 9 / 10, "\(result.statistics.recoveredCount) of \(bursts)")
    }

    @Test func `a stall of 300 ms loses nothing, and its delay is gone 5 s later`() {
        let result = play(seconds: 20) { number in (500..<515).contains(number) ? 320 - (number - 500) * 20 : 20 }
        #expect(result.statistics.buffer.lateCount == 0)
        #expect(result.statistics.buffer.discardedCount == 0)
        #expect(result.concealedMs <= 300)
        #expect(result.delays[10] > 100, "\(result.delays)")
        #expect(result.delays[15...].allSatisfy { $0 <= 40 }, "\(result.delays)")
    }

    @Test func `a path that becomes 100 ms longer and shorter again is followed within 5 s`() {
        let result = play(seconds: 40) { (500..<1000).contains($0) ? 120 : 20 }
        // The delay is told beyond the fastest packet: after the change it is long, until the fastest is another one.
        #expect(result.concealedMs <= 130, "\(result.concealedMs) ms")
        #expect(result.delays[15...18].allSatisfy { $0 <= 40 }, "\(result.delays)")
        #expect(result.delays[25...].allSatisfy { $0 <= 40 }, "\(result.delays)")
    }

    @Test(arguments: [600, 1000, 1500])
    func `after a stall of its own a receiver invents nothing, and throws away what it could never make up for`(
        _ stall: Int
    ) {
        let result = play(seconds: 20, isTicking: { !(800..<800 + stall / 10).contains($0) }, delay: { _ in 20 })
        #expect(result.concealedMs == 0)
        #expect(result.statistics.buffer.lateCount == 0 && result.statistics.buffer.missingCount == 0)
        let surplus = (stall - 600) / 20
        #expect(abs(result.statistics.buffer.discardedCount - surplus) <= 3)
        #expect(result.delays.last.map { $0 <= 100 } == true, "\(result.delays)")
    }

    @Test(arguments: [-10_000, -300, 300, 10_000])
    func `a sender's clock that is off by up to 1 % changes nothing for good`(_ ppm: Int) {
        let result = play(seconds: 60, ppm: ppm) { _ in 20 }
        #expect(result.delays.suffix(40).allSatisfy { $0 >= 5 && $0 <= 90 }, "\(result.delays)")
        #expect(result.statistics.buffer.discardedCount == 0)
        #expect(result.concealedMs <= 200, "\(result.concealedMs) ms")
        if abs(ppm) == 10_000 { #expect(abs(result.stretchedMs - 600) < 150, "\(result.stretchedMs) ms") }
    }

    @Test func `an outage of 3 s is not followed by a burst`() {
        // All that was sent meanwhile comes at once when the network is back.
        let result = play(seconds: 20) { number in (300..<450).contains(number) ? 20 + (450 - number) * 20 : 20 }
        #expect(result.delays[10...].allSatisfy { $0 <= 60 }, "\(result.delays)")
        #expect(result.statistics.buffer.discardedCount >= 100)
    }

    @Test(arguments: [false, true])
    func `what was thrown away hides neither a lost packet behind it nor an event`(_ isEvent: Bool) {
        let buffer = JitterBuffer(bounds: PlayoutDelay.automatic.bounds, rate: 8000)
        func insert(_ number: Int, isNumberOnly: Bool = false) {
            let header = PacketHeader(
                rtpTimestamp: UInt32(number * 160),
                sequenceNumber: UInt16(number),
                isNumberOnly: isNumberOnly,
                arrival: Self.ms(number * 20)
            )
            let payload: [UInt8] = [0, UInt8(number)]
            #expect(buffer.insert(header, payload: payload.span, duration: isNumberOnly ? 0 : 160) == .accepted)
        }
        insert(0)
        #expect(buffer.decide(at: Self.ms(60)) == .play)
        buffer.removeFirst()
        insert(1)
        if isEvent { insert(2, isNumberOnly: true) }
        insert(3)
        insert(4)
        // Nothing was asked for 1.5 s: packet 1 is thrown away.
        let decision = buffer.decide(at: Self.ms(1500))
        #expect(decision == (isEvent ? .play : .recover(duration: 160)))
        let first = buffer.withFirst { header, _ in header }
        #expect(first.sequenceNumber == 3 && !first.isNumberOnly)
        #expect(buffer.statistics.discardedCount == 1)
        #expect(buffer.statistics.missingCount == (isEvent ? 0 : 1))
    }

    @Test func `a pause of the sender is silence, not loss, and resets the delay for free`() {
        let result = play(seconds: 20, isSent: { !(400..<600).contains($0) }) { _ in 20 }
        #expect(result.concealedMs == 0)
        #expect(result.statistics.buffer.comfortDuration > 0)
        #expect(result.delays.last.map { $0 <= 40 } == true, "\(result.delays)")
    }

    @Test func `a sender that sets its clock back or forward is followed`() {
        let result = play(
            seconds: 30,
            timestamp: { UInt32(truncatingIfNeeded: $0 * 160 + ($0 >= 1000 ? 1_000_000 : $0 >= 500 ? -4000 : 0)) }
        ) { _ in 20 }
        #expect(result.statistics.leapCount == 2 && result.statistics.buffer.restartCount == 0)
        #expect(result.statistics.buffer.playedCount >= 1480)
        #expect(result.delays.suffix(5).allSatisfy { $0 <= 40 }, "\(result.delays)")
    }

    @Test func `time stamps and numbers at random do no harm`() {
        var generator = SeededGenerator(seed: 9)
        let decoder = VoiceDecoder()
        let playout = Playout(decoder, delay: .automatic)
        var block = [Int16](repeating: 0, count: 80)
        for tick in 0..<5000 {
            for _ in 0..<Int(generator.next() % 8) {
                let isWild = generator.next() % 4 == 0
                var header = PacketHeader(
                    rtpTimestamp: isWild ? UInt32(truncatingIfNeeded: generator.next()) : UInt32(tick * 80),
                    sequenceNumber: UInt16(truncatingIfNeeded: isWild ? generator.next() : UInt64(tick)),
                    isNumberOnly: generator.next() % 9 == 0,
                    arrival: Self.ms(tick * 10 - Int(generator.next() % 50))
                )
                header.beginsSource = generator.next() % 100 == 0
                let payload: [UInt8] = [0, UInt8(truncatingIfNeeded: tick)]
                if header.beginsSource { playout.reset() }
                playout.insert(header, payload: payload.span)
            }
            var samples = block.mutableSpan
            playout.play(into: &samples, at: Self.ms(tick * 10))
            #expect(playout.buffer.count <= JitterBuffer.capacity)
        }
        #expect(playout.statistics.playedFrameCount > 0)
    }
}
