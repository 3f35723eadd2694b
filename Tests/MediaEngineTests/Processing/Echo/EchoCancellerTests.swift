import Glibc
@testable import MediaEngine
import MediaEngineTesting
import TestSupport
import Testing

/// The figures of an echo canceller in a room of 80 ms, in virtual time.
@Suite struct EchoCancellerTests {
    private static func room(_ delay: Int, _ gain: Double, _ seed: UInt64) -> AcousticPathConfiguration {
        var room = AcousticPathConfiguration()
        room.delay = .milliseconds(delay)
        room.gain = Decibels(gain)
        room.seed = seed
        return room
    }

    @Test(
        arguments: thorough(
            [(40, -6.0, UInt64(1)), (120, -12, 2), (20, -3, 3), (300, 0, 4)],
            quick: [(120, -12, 2)]
        )
    )
    func `the echo of a far end is 35 dB less after 10 s`(delay: Int, gain: Double, seed: UInt64) throws {
        let rig = EchoRig(Self.room(delay, gain, seed), far: try EchoRig.speech(14))
        rig.run(until: 14)
        #expect(rig.reduction(10, 14) >= 38)
        #expect(rig.reduction(3, 5) >= 25)
        let found = try #require(rig.canceller.statistics.delay)
        #expect(abs(found.milliseconds - Double(delay)) <= 2)
    }

    @Test(
        arguments: thorough([5, 16, 48, 160], quick: [48]),
        thorough([(40, -6.0, UInt64(1)), (120, -12, 2)], quick: [(40, -6, 1)])
    )
    func `within a second of lost samples the echo is 25 dB less again`(
        lost: Int,
        room: (Int, Double, UInt64)
    ) throws {
        let rig = EchoRig(Self.room(room.0, room.1, room.2), far: try EchoRig.speech(14))
        rig.run(until: 11.5)
        rig.path.lose(lost)
        rig.run(until: 13.5)
        #expect(rig.reduction(12.5, 13.5) >= 35)
        #expect(rig.canceller.statistics.realignmentCount == 1)
        #expect(rig.canceller.statistics.restartCount == 1)
    }

    @Test func `a loss that is told costs less than half a second`() throws {
        let rig = EchoRig(Self.room(40, -6, 1), far: try EchoRig.speech(13))
        rig.run(until: 11.5)
        rig.path.lose(100)
        rig.canceller.realign(by: -100)
        rig.run(until: 13)
        #expect(rig.reduction(11.7, 12.5) >= 25)
    }

    @Test func `clocks 100 ppm apart, with the drift taken out before, leave 30 dB`() throws {
        let rig = EchoRig(Self.room(60, -6, 5), far: try EchoRig.speech(14))
        // A card whose clock is 100 ppm fast, and the resampler that repairs it.
        let card = Resampler(from: 10000, to: 10001, quality: .high)
        let repair = Resampler(from: 10001, to: 10000, quality: .high)
        var waiting = [Int16](repeating: 0, count: 4)
        rig.capture = { heard in
            var fast = [Int16](repeating: 0, count: 200)
            var target = fast.mutableSpan
            let count = card.process(heard.span, into: &target).produced
            var even = [Int16](repeating: 0, count: 200)
            var repaired = even.mutableSpan
            let repairedCount = repair.process(fast.span.extracting(0..<count), into: &repaired).produced
            waiting += even.prefix(repairedCount)
            defer { waiting.removeFirst(min(160, waiting.count)) }
            return Array(waiting.prefix(160)) + [Int16](repeating: 0, count: max(0, 160 - waiting.count))
        }
        rig.run(until: 14)
        #expect(rig.reduction(10, 14) >= 30)
    }

    @Test func `another route is found, and the echo is less again 4 s later`() throws {
        let rig = EchoRig(Self.room(40, -6, 1), far: try EchoRig.speech(18))
        rig.run(until: 10)
        rig.path.change(delay: .milliseconds(180))
        rig.run(until: 13)
        let found = try #require(rig.canceller.statistics.delay)
        #expect(abs(found.milliseconds - 180) <= 2)
        rig.run(until: 16)
        #expect(rig.reduction(14, 16) >= 15)
    }

    /// Who speaks how loud against how loud an echo: near and far pitch, delay, echo gain, near gain, noise, room.
    private static let conversations: [(Double, Double, Int, Double, Double, Double, UInt64)] = [
        (1, 1, 40, -6, 1, -76, 1), (1, 1, 120, -12, 1, -76, 2), (1, 1, 20, -3, 1, -76, 3), (1, 1, 60, 0, 1, -76, 4),
        (1.3, 1, 40, -6, 1, -76, 5), (0.8, 1, 80, -6, 1, -70, 6), (1, 1.3, 200, -3, 1, -76, 7),
        (1, 0.8, 30, -6, 1, -66, 8), (1.3, 0.8, 300, 0, 1, -76, 9), (0.8, 1.3, 100, -9, 0.5, -76, 10),
        (1.3, 1.3, 50, -6, 0.5, -76, 11), (0.8, 0.8, 150, -12, 0.25, -76, 12),
    ]

    @Test(arguments: thorough(conversations, quick: [conversations[0], conversations[8]]))
    func `when both speak the near end is kept`(
        _ conversation: (Double, Double, Int, Double, Double, Double, UInt64)
    ) throws {
        let (nearPitch, farPitch, delay, gain, nearGain, noise, seed) = conversation
        let silence = [Int16](repeating: 0, count: 8 * 16000)
        let near = silence + (try EchoRig.speech(8, from: 4.3, gain: nearGain, pitch: nearPitch))
        var room = Self.room(delay, gain, seed)
        room.noise = Decibels(noise)
        let rig = EchoRig(room, far: try EchoRig.speech(16, pitch: farPitch), near: near)
        rig.run(until: 16)
        // The suppressor's windows delay by 10 ms.
        let range = 9 * 16000..<16 * 16000 - 160
        let (clean, mixed) = (Array(near[range]), Array(rig.captured[range]))
        let kept = Array(rig.output[range.lowerBound + 160..<range.upperBound + 160])
        #expect(Self.likeness(clean, kept) >= 0.97)
        #expect(Self.likeness(clean, kept) > Self.likeness(clean, mixed))
        let loudness = EchoRig.energy(kept[...]) / EchoRig.energy(clean[...])
        #expect(loudness > 0.8 && loudness < 1.2)
        let distance = SpectralDistance.between(
            near,
            rig.output,
            format: AudioFormat(sampleRate: 16000),
            delay: .milliseconds(10),
            from: .seconds(9)
        )
        #expect(distance < 0.45, "\(distance) dB")
    }

    @Test(arguments: thorough([1.3, 1], quick: [1.3]))
    func `an echo is learnt also when both speak from the beginning`(pitch: Double) throws {
        let near = try EchoRig.speech(16, from: 4.3, pitch: pitch)
        let rig = EchoRig(Self.room(40, -6, 1), far: try EchoRig.speech(16), near: near)
        rig.run(until: 16)
        let range = 10 * 16000..<16 * 16000 - 160
        let kept = Array(rig.output[range.lowerBound + 160..<range.upperBound + 160])
        #expect(Self.likeness(Array(near[range]), kept) >= 0.95)
    }

    @Test func `a microphone with a constant is freed of it`() throws {
        let rig = EchoRig(Self.room(40, -6, 1), far: try EchoRig.speech(10))
        rig.capture = { heard in heard.map { Int16(clamping: Int($0) + 3000) } }
        rig.run(until: 10)
        let sum = rig.output[80000...].reduce(0) { $0 + Int($1) }
        #expect(abs(sum / (rig.output.count - 80000)) < 10)
        let left = rig.output[80000...].map { Double($0) * Double($0) }.reduce(0, +) / Double(rig.output.count - 80000)
        #expect(10 * log10(left + 1) < 25)
    }

    @Test func `an echo that moves is followed, also behind a microphone with a constant`() throws {
        let rig = EchoRig(Self.room(40, -20, 1), far: try EchoRig.speech(22))
        rig.capture = { heard in heard.map { Int16(clamping: Int($0) + 3000) } }
        rig.run(until: 10)
        let restarts = rig.canceller.statistics.restartCount
        // A sound server puts 140 ms into the way, and tells nobody.
        var late: [Int16] = [Int16](repeating: 3000, count: 2240)
        rig.capture = { heard in
            late += heard.map { Int16(clamping: Int($0) + 3000) }
            defer { late.removeFirst(heard.count) }
            return Array(late.prefix(heard.count))
        }
        rig.run(until: 22)
        #expect(rig.canceller.statistics.restartCount > restarts)
        let left = rig.output[18 * 16000..<22 * 16000].map { Double($0) * Double($0) }.reduce(0, +) / 64000
        #expect(10 * log10(left + 1) < 25)
    }

    @Test func `a near end alone passes as it is`() throws {
        let near = try EchoRig.speech(6)
        var room = Self.room(40, -6, 1)
        room.noise = .silence
        let rig = EchoRig(room, far: [], near: near)
        rig.run(until: 6)
        let (clean, kept) = (Array(near[16000..<6 * 16000 - 160]), Array(rig.output[16160..<6 * 16000]))
        #expect(Self.likeness(clean, kept) >= 0.96)
        #expect(rig.canceller.statistics.realignmentCount == 0)
    }

    @Test(arguments: [Int16(0), 32767, -32768])
    func `a constant, full scale or nothing, does no harm`(level: Int16) throws {
        let canceller = EchoCanceller()
        let block = [Int16](repeating: level, count: 160)
        var result = block
        for _ in 0..<300 {
            var samples = result.mutableSpan
            canceller.process(captured: block.span, reference: block.span, into: &samples)
        }
        #expect(canceller.statistics.realignmentCount == 0)
        #expect(result.allSatisfy { abs(Int($0)) < 3000 })
    }

    @Test func `loud noise on both sides that has nothing in common moves nothing`() throws {
        var random = SeededGenerator(seed: 3)
        let canceller = EchoCanceller()
        var result = [Int16](repeating: 0, count: 160)
        for _ in 0..<800 {
            let left = (0..<160).map { _ in Int16.random(in: -9000...9000, using: &random) }
            let right = (0..<160).map { _ in Int16.random(in: -9000...9000, using: &random) }
            var samples = result.mutableSpan
            canceller.process(captured: left.span, reference: right.span, into: &samples)
        }
        #expect(canceller.statistics.delay == nil)
        #expect(canceller.statistics.realignmentCount == 0)
    }

    /// The correlation of the two, 1 for equals.
    private static func likeness(_ left: [Int16], _ right: [Int16]) -> Double {
        var (product, leftEnergy, rightEnergy) = (0.0, 1.0, 1.0)
        for (left, right) in zip(left, right) {
            product += Double(left) * Double(right)
            leftEnergy += Double(left) * Double(left)
            rightEnergy += Double(right) * Double(right)
        }
        return product / (leftEnergy * rightEnergy).squareRoot()
    }
}
