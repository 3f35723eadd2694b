import Foundation
import MediaEngine
import Testing

/// Every limit of ITU-T Q.24 from inside and from outside, all sixteen digits, with phases and starts drawn by seed.
///
/// Units: ms, dB, dBm0 of each sine; noise in dB below the pair.
@Suite struct DTMFLimitTests {
    struct Limit: CustomTestStringConvertible {
        let name: String
        var deviation = (low: 0.0, high: 0.0)
        var offset = (low: 0.0, high: 0.0)
        var level = (low: -10.0, high: -10.0)
        var sound = [50.0]
        var pause = 0.0
        var noise: Double?
        /// How often the digit must be heard.
        let count: Int

        var testDescription: String { name }
    }

    static let tunes: [Limit] = [-1.0, 1].flatMap { low in
        [-1.0, 1].flatMap { high in
            [(0.0, 40.0, nil), (8, 50, 15.0), (-4, 50, 15)].map { twist, sound, noise in
                Limit(
                    name: "\(low * 1.5) % and \(high * 1.5) %, 2 Hz more, twist \(twist) dB, noise \(noise ?? 99) dB",
                    deviation: (low * 0.015, high * 0.015),
                    offset: (low * 2, high * 2),
                    level: (-10 + min(0, twist), -10 - max(0, twist)),
                    sound: [sound],
                    noise: noise,
                    count: 1
                )
            }
        }
    }

    static let mistunes: [Limit] = [-0.035, 0.035].flatMap { by in
        [nil, 15.0].flatMap { noise in
            [
                Limit(name: "row \(by)", deviation: (by, 0), sound: [200], noise: noise, count: 0),
                Limit(name: "column \(by)", deviation: (0, by), sound: [200], noise: noise, count: 0),
                Limit(name: "both \(by)", deviation: (by, by), sound: [200], noise: noise, count: 0),
            ]
        }
    }

    static let levels: [Limit] =
        [0.0, -10, -25, -36, -40].map {
            Limit(name: "\($0) dBm0", level: ($0, $0), sound: [40], count: 1)
        } + [Limit(name: "-55 dBm0", level: (-55, -55), sound: [200], count: 0)]

    /// Low over high; Q.24 asks for 8 and -4.
    static let twists: [Limit] = [(8.0, 1), (4, 1), (-4, 1), (13, 0), (-9, 0), (25, 0)].map { twist, count in
        Limit(
            name: "twist \(twist) dB",
            level: (-5 + min(0, twist), -5 - max(0, twist)),
            sound: [count == 1 ? 40 : 200],
            count: count
        )
    }

    static let lengths: [Limit] = [nil, 15.0].flatMap { noise in
        [(40.0, 1), (36, 1), (23, 0), (20, 0), (10, 0)].map { sound, count in
            Limit(name: "\(sound) ms, noise \(noise ?? 99) dB", sound: [sound], noise: noise, count: count)
        }
    }

    static let pauses: [Limit] = [nil, 15.0].flatMap { noise in
        [(1.0, 1), (5, 1), (10, 1), (40, 2), (45, 2)].map { pause, count in
            Limit(
                name: "pause of \(pause) ms, noise \(noise ?? 99) dB",
                sound: [40, 40],
                pause: pause,
                noise: noise,
                count: count
            )
        }
    }

    static let noises: [Limit] = [(15.0, 40.0), (12, 40), (12, 50), (6, 100)].map { noise, sound in
        Limit(name: "\(sound) ms in noise \(noise) dB below", sound: [sound], noise: noise, count: 1)
    }

    @Test(arguments: tunes + mistunes + levels + twists + lengths + pauses + noises)
    func `a limit holds for every digit`(limit: Limit) throws {
        var random = ToneTestRandom(seed: 2026)
        for digit in DTMFDigit.all {
            let (samples, start, length) = Self.signal(digit, limit, &random)
            let found = try ToneTestSignal.detections(in: samples, rate: 8000).filter { $0.phase == .ended }
            #expect(found.map(\.digit) == Array(repeating: digit, count: limit.count))
            guard limit.count == 1, let heard = found.first else { continue }
            #expect(abs(heard.frameCount - length) <= 80 && abs(heard.startFrame - start) <= 80, "\(digit)")
        }
    }

    /// 0 dBm0 is 3.17 dB below the loudest sine.
    private static func signal(
        _ digit: DTMFDigit,
        _ limit: Limit,
        _ random: inout ToneTestRandom
    ) -> (samples: [Int16], start: Int, length: Int) {
        let low = peak(limit.level.low), high = peak(limit.level.high)
        let lowTurn = 2 * Double.pi * (digit.lowFrequency * (1 + limit.deviation.low) + limit.offset.low) / 8000
        let highTurn = 2 * Double.pi * (digit.highFrequency * (1 + limit.deviation.high) + limit.offset.high) / 8000
        let phases = (7 * random.uniform(), 7 * random.uniform())
        var samples = [Double](repeating: 0, count: 480 + Int(80 * random.uniform()))
        let start = samples.count
        for (index, sound) in limit.sound.enumerated() {
            if index > 0 { samples += [Double](repeating: 0, count: Int(limit.pause * 8)) }
            for _ in 0..<Int(sound * 8) {
                let time = Double(samples.count - start)
                samples.append(low * sin(lowTurn * time + phases.0) + high * sin(highTurn * time + phases.1))
            }
        }
        let length = samples.count - start
        samples += [Double](repeating: 0, count: 560)
        if let noise = limit.noise {
            let gain = ((low * low + high * high) / 2 * pow(10, -noise / 10)).squareRoot()
            for index in samples.indices { samples[index] += gain * random.gaussian() }
        }
        return (samples.map { Int16(max(-32768, min(32767, $0.rounded()))) }, start, length)
    }

    private static func peak(_ level: Double) -> Double { 32767 * pow(10, (level - 3.17) / 20) }
}
