@testable import MediaEngine
import Testing

/// Comfort noise in the pauses of a sender, as the jitter buffers see it: 20 ms packets, time stamps at 8 kHz.
@Suite struct ComfortNoisePlayoutTests {
    private static func header(_ number: Int, timestamp: Int, at now: MediaTime) -> PacketHeader {
        PacketHeader(
            rtpTimestamp: UInt32(truncatingIfNeeded: timestamp),
            sequenceNumber: UInt16(truncatingIfNeeded: number),
            arrival: now
        )
    }

    @Test(arguments: [false, true])
    func `a faster sender does not fill a fixed buffer, however its noise is stamped`(repeatsTimestamp: Bool) {
        let playout = Playout(NumberDecoder(), delay: .fixed(.milliseconds(60)))
        var block = [Int16](repeating: 0, count: 80)
        var (sent, number) = (0, 0)
        for tick in 0..<6000 {
            let now = MediaTime.zero + .milliseconds(10 * tick)
            // Its clock is 1 % fast; of five seconds it speaks four, and then tells its noise every 400 ms.
            while sent * 198 <= tick * 100 {
                let isSound = sent % 250 < 200
                if isSound || sent % 20 == 0 {
                    let lastSound = sent / 250 * 250 + 199
                    let stamped = isSound || !repeatsTimestamp ? sent : lastSound
                    var header = Self.header(number, timestamp: stamped * 160, at: now)
                    header.isComfortNoise = !isSound
                    let payload: [UInt8] = isSound ? [1, 0] : [40]
                    playout.insert(header, payload: payload.span)
                    number += 1
                }
                sent += 1
            }
            var samples = block.mutableSpan
            playout.play(into: &samples, at: now)
        }
        #expect(playout.statistics.buffer.discardedCount > 10)
        #expect(playout.buffer.count < 12, "\(playout.buffer.count) wait")
    }

    @Test func `a copy that comes with noise does not reach over the pause`() {
        let playout = Playout(NumberDecoder(), delay: .automatic)
        var block = [Int16](repeating: 0, count: 80)
        /// Hears the packet `number` of a sender that repeats each in the next one, then plays until `end`.
        func hear(_ number: Int, stamped place: Int, isNoise: Bool = false, until end: Int) {
            let now = MediaTime.zero + .milliseconds(20 * place)
            // RED with copies of all, of which every fourth is needed.
            if number > 0, isNoise || number % 4 == 1 {
                var copy = Self.header(number - 1, timestamp: (isNoise ? place : number) * 160 - 160, at: now)
                copy.isRedundant = true
                playout.insert(copy, payload: [1, 0].span)
            }
            var header = Self.header(number, timestamp: place * 160, at: now)
            header.isComfortNoise = isNoise
            let payload: [UInt8] = isNoise ? [40] : [1, 0]
            playout.insert(header, payload: payload.span)
            for tick in 2 * place..<2 * end {
                var samples = block.mutableSpan
                playout.play(into: &samples, at: .zero + .milliseconds(10 * tick))
            }
        }
        // Every fourth is lost, the last of the spurt among them, and now and then the next one with its copy.
        func isLost(_ number: Int) -> Bool { number % 4 == 0 || number % 20 == 1 }
        var next = 1
        while next < 400 {
            let number = next
            repeat { next += 1 } while isLost(next) && next < 400
            if !isLost(number) { hear(number, stamped: number, until: next) }
        }
        hear(401, stamped: 401, isNoise: true, until: 501)
        #expect(playout.statistics.buffer.targetDelayNanoseconds < 100_000_000)
        hear(402, stamped: 501, until: 502)
        #expect(playout.statistics.buffer.targetDelayNanoseconds < 100_000_000)
    }
}
