import Foundation
@testable import MediaEngine
import Testing

/// Every limit of ITU-T Q.24 from inside and from outside, all sixteen digits, with phases and starts drawn by seed.
///
/// Units: ms, dB, dBm0 of each sine; noise in dB below the pair.
@Suite struct DTMFLimitTests {
    struct Limit: CustomTestStringConvertible {
        var name: String
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

    static let tunes: [Limit] = {
        let cases: [(twist: Double, sound: Double, noise: Double?)] = [(0, 40, nil), (8, 50, 15), (-4, 50, 15)]
        var limits: [Limit] = []
        for low in [-1.0, 1] {
            for high in [-1.0, 1] {
                for item in cases {
                    var limit = Limit(name: "tune \(low) \(high), twist \(item.twist) dB", count: 1)
                    limit.deviation = (low * 0.015, high * 0.015)
                    limit.offset = (low * 2, high * 2)
                    limit.level = (-10 + min(0, item.twist), -10 - max(0, item.twist))
                    limit.sound = [item.sound]
                    limit.noise = item.noise
                    limits.append(limit)
                }
            }
        }
        return limits
    }()

    static let mistunes: [Limit] = {
        var limits: [Limit] = []
        for by in [-0.035, 0.035] {
            for deviation in [(by, 0.0), (0, by), (by, by)] {
                for noise in [nil, 15.0] as [Double?] {
                    let name = "out of tune by \(deviation)" + (noise == nil ? "" : " in noise")
                    limits.append(Limit(name: name, deviation: deviation, sound: [200], noise: noise, count: 0))
                }
            }
        }
        return limits
    }()

    static let levels: [Limit] =
        [0.0, -10, -25, -36, -40].map { Limit(name: "\($0) dBm0", level: ($0, $0), sound: [40], count: 1) }
        + [Limit(name: "-55 dBm0", level: (-55, -55), sound: [200], count: 0)]

    /// Low over high; Q.24 asks for 8 and -4.
    static let twists: [Limit] = {
        let cases: [(twist: Double, count: Int)] = [(8, 1), (4, 1), (-4, 1), (13, 0), (-9, 0), (25, 0)]
        return cases.map { item in
            var limit = Limit(name: "twist \(item.twist) dB", count: item.count)
            limit.level = (-5 + min(0, item.twist), -5 - max(0, item.twist))
            limit.sound = [item.count == 1 ? 40 : 200]
            return limit
        }
    }()

    static let lengths: [Limit] = {
        let cases: [(sound: Double, count: Int)] = [(40, 1), (36, 1), (23, 0), (20, 0), (10, 0)]
        return cases.flatMap { item in
            [
                Limit(name: "\(item.sound) ms", sound: [item.sound], count: item.count),
                Limit(name: "\(item.sound) ms in noise", sound: [item.sound], noise: 15, count: item.count),
            ]
        }
    }()

    static let pauses: [Limit] = {
        let cases: [(pause: Double, count: Int)] = [(1, 1), (5, 1), (10, 1), (40, 2), (45, 2)]
        return cases.flatMap { item in
            let limit = Limit(name: "pause of \(item.pause) ms", sound: [40, 40], pause: item.pause, count: item.count)
            var noisy = limit
            noisy.name += " in noise"
            noisy.noise = 15
            return [limit, noisy]
        }
    }()

    static let noises: [Limit] = {
        let cases: [(noise: Double, sound: Double)] = [(15, 40), (12, 40), (12, 50), (6, 100)]
        return cases.map { item in
            let name = "\(item.sound) ms in noise \(item.noise) dB below"
            return Limit(name: name, sound: [item.sound], noise: item.noise, count: 1)
        }
    }()

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
