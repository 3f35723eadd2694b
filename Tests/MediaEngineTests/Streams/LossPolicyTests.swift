@testable import MediaEngine
@testable import RTP
import Testing

@Suite struct LossPolicyTests {
    private static let opus = LossPolicy.Abilities(allowsFEC: true, allowsRED: true, bitrate: 32000)
    private static let opusWithoutRED = LossPolicy.Abilities(allowsFEC: true, allowsRED: false, bitrate: 32000)
    private static let fixedRate = LossPolicy.Abilities(allowsFEC: false, allowsRED: true, bitrate: nil)
    private static let helpless = LossPolicy.Abilities(allowsFEC: false, allowsRED: false, bitrate: nil)

    /// Reports of 5 s, and the mode that holds after each: `n`one, `f`ec, `r`ed.
    struct Row: Sendable, CustomTestStringConvertible {
        let title: String
        let abilities: LossPolicy.Abilities
        /// How many packets are lost in a row; nil where the other side does not tell it.
        var run: Int?
        let percents: [Double]
        let modes: String
        var testDescription: String { title }
    }

    static let rows = [
        Row(
            title: "FEC is on from 1.5 % and off after three clean reports",
            abilities: opus,
            percents: [0, 1.4, 1.5, 1, 0, 0, 0, 1, 1.4],
            modes: "nnffffnnn"
        ),
        Row(
            title: "a report that is not clean begins the count anew",
            abilities: opus,
            percents: [2, 0, 0, 0.6, 0, 0, 0],
            modes: "ffffffn"
        ),
        Row(
            title: "scattered losses that are told as such change nothing",
            abilities: opus,
            run: 1,
            percents: [0, 1.4, 1.5, 1, 0, 0, 0, 1, 1.4],
            modes: "nnffffnnn"
        ),
        Row(
            title: "loss in runs of 2 is worth FEC from 6 % to 2 %",
            abilities: opus,
            run: 2,
            percents: [3, 5.9, 6, 2.1, 1.9, 1.9, 2.1, 1.9, 1.9, 1.9],
            modes: "nnfffffffn"
        ),
        Row(
            title: "loss in runs of 3 is worth FEC from 13.5 %",
            abilities: opusWithoutRED,
            run: 3,
            percents: [5, 5, 10, 13.4, 13.5, 5, 4.4, 4.4, 4.4],
            modes: "nnnnffffn"
        ),
        Row(
            title: "much loss in runs is a case for RED, and less of it then not for FEC",
            abilities: opus,
            run: 3,
            percents: [12, 25, 20, 14, 5, 5, 5],
            modes: "nrrrrnn"
        ),
        Row(
            title: "RED begins at 15 % smoothed, and gives way to FEC below 10 %",
            abilities: opus,
            percents: [20, 20, 14, 14, 12, 6, 6, 6],
            modes: "frrrrfff"
        ),
        Row(
            title: "one report of much loss is enough for RED",
            abilities: opus,
            percents: [35, 12, 12, 0, 0, 0],
            modes: "rrrffn"
        ),
        Row(
            title: "RED that was not agreed is not chosen",
            abilities: opusWithoutRED,
            percents: [20, 40, 60, 60],
            modes: "ffff"
        ),
        Row(
            title: "a codec of one rate without FEC repeats from 3 % to 1 %",
            abilities: fixedRate,
            percents: [2.9, 3, 2, 1, 0.9, 0.5, 0, 0],
            modes: "nrrrrrnn"
        ),
        Row(
            title: "with nothing to choose from there is nothing",
            abilities: helpless,
            percents: [50, 50],
            modes: "nn"
        ),
    ]

    /// What a report tells of 1000 packets, lost `length` at a time.
    private static func runs(_ length: Int, percent: Double) -> LossRuns {
        var runs = LossRuns()
        for _ in 0..<Int(percent * 10) / length {
            runs.count(length, areLost: true)
            runs.count(1, areLost: false)
        }
        runs.count(1000 - runs.packetCount, areLost: false)
        return runs
    }

    @Test(arguments: rows) func `the mode follows the reports`(row: Row) {
        var policy = LossPolicy(row.abilities)
        var modes = ""
        for (index, percent) in row.percents.enumerated() {
            let before = policy.current.mode
            let decision = policy.update(
                fractionLost: percent / 100,
                runs: row.run.map { Self.runs($0, percent: percent) },
                at: .zero + .seconds(5) * (index + 1)
            )
            #expect((decision?.isNewMode ?? false) == (policy.current.mode != before))
            modes.append(policy.current.mode.rawValue.prefix(1).description)
        }
        #expect(modes == row.modes)
    }

    @Test func `a weaker mode waits for ten seconds, a stronger one does not`() {
        var policy = LossPolicy(Self.opus)
        func report(_ percent: Double, _ second: Int) -> LossProtection.Mode {
            _ = policy.update(fractionLost: percent / 100, at: .zero + .seconds(second))
            return policy.current.mode
        }
        #expect(report(2, 1) == .fec)
        #expect(report(40, 2) == .red)
        #expect(report(0, 3) == .red)
        #expect(report(0, 4) == .red)
        #expect(report(0, 11) == .red)
        #expect(report(0, 12) == .none)
        #expect(policy.changeCount == 3)
    }

    @Test func `loss that swings between two sides of a limit does not make the mode swing`() {
        var policy = LossPolicy(Self.opus)
        for index in 0..<60 {
            let percent = index % 2 == 0 ? 19.0 : 10.0
            _ = policy.update(fractionLost: percent / 100, at: .zero + .seconds(5) * index)
        }
        #expect(policy.changeCount <= 2)
    }

    @Test func `the expected loss follows what is reported, within bounds`() {
        var policy = LossPolicy(Self.opusWithoutRED)
        func settle(_ fraction: Double, _ start: Int) -> LossProtection {
            for index in 0..<20 { _ = policy.update(fractionLost: fraction, at: .zero + .seconds(start + index * 5)) }
            return policy.current
        }
        #expect(settle(0.2, 0) == .inBandFEC(expectedLossPercent: 20))
        #expect(settle(1, 100) == .inBandFEC(expectedLossPercent: 30))
        #expect(settle(0.016, 200) == .inBandFEC(expectedLossPercent: 10))
        #expect(policy.changeCount == 1)
    }

    // Bitrate, ptime in ms, generations and bitrate of each; 0 where there is no room for RED.
    @Test(arguments: [(32000, 20, 2), (24000, 20, 2), (16000, 20, 1), (14000, 20, 0), (24000, 60, 2), (64000, 10, 2)])
    func `RED stays within one and a half times the configured bitrate`(bitrate: Int, ptime: Int, generations: Int) {
        var abilities = Self.opus
        abilities.bitrate = bitrate
        abilities.ptime = .milliseconds(ptime)
        var policy = LossPolicy(abilities)
        _ = policy.update(fractionLost: 0.5, at: .zero)
        guard case .redundancy(let count, let each?) = policy.current else {
            #expect(generations == 0 && policy.current.mode == .fec)
            return
        }
        #expect(count == generations)
        #expect(each >= LossPolicy.minimumGenerationBitrate)
        let total = Double(each * (count + 1)) + Double(8 * (4 * count + 1)) * 1000 / Double(ptime)
        #expect(total <= 1.5 * Double(bitrate) && total > 1.45 * Double(bitrate))
    }

    @Test func `the reason is one line with the numbers`() {
        var policy = LossPolicy(Self.opus)
        #expect(policy.reason == "no loss reported yet")
        let none = policy.update(fractionLost: 0.05, runs: Self.runs(3, percent: 5), at: .zero - .seconds(5))
        #expect(none == nil && policy.current == .none)
        #expect(
            policy.reason
                == "5.0 % loss reported, 3.0 packets in a row: FEC would cost more than it repairs of such runs"
        )
        policy = LossPolicy(Self.opus)
        let fec = policy.update(fractionLost: 0.06, runs: Self.runs(2, percent: 6), at: .zero)
        #expect(fec?.reason == "6.0 % loss reported, 2.0 packets in a row: in-band FEC made for 10 %")
        let red = policy.update(fractionLost: 0.4, at: .zero + .seconds(5))
        #expect(
            red?.reason
                == "21.5 % loss reported, 2.0 packets in a row: RED with 2 copies of each packet at 14.8 kbit/s each"
        )
        #expect(policy.reason == red?.reason)
        var last: LossPolicy.Decision?
        for index in 0..<4 {
            let runs = Self.runs(3, percent: 4.8)
            last = policy.update(fractionLost: 0.048, runs: runs, at: .zero + .seconds(15 + index * 5)) ?? last
        }
        #expect(
            last?.reason == "loss is down to 9.0 %, 2.6 packets in a row: FEC would cost more than it repairs"
        )
    }

    @Test(arguments: [
        (opus, 0.01, "1.0 % loss reported: too little for FEC"),
        (fixedRate, 0.02, "2.0 % loss reported: too little for RED"),
        (helpless, 0.5, "50.0 % loss reported: neither FEC nor RED is to be had"),
    ]) func `why nothing is done is told, too`(abilities: LossPolicy.Abilities, fraction: Double, reason: String) {
        var policy = LossPolicy(abilities)
        _ = policy.update(fractionLost: fraction, at: .zero)
        #expect(policy.reason == reason)
    }

    /// Twenty reports of 250 packets with 5 % loss, of a path that loses `run` packets in a row on average.
    private static func reports(run: Double, seed: UInt64) -> LossPolicy {
        var impairment = Impairment()
        (impairment.lossPercent, impairment.burstLength) = (5, run)
        var model = ImpairmentModel(impairment, seed: seed)
        var policy = LossPolicy(opus)
        for index in 0..<20 {
            var runs = LossRuns()
            for _ in 0..<250 { runs.count(1, areLost: model.next().isLost) }
            let fraction = Double(runs.lostCount) / 250
            _ = policy.update(fractionLost: fraction, runs: runs, at: .zero + .seconds(5) * index)
        }
        return policy
    }

    @Test func `random paths of one loss rate are told apart by their runs, and stay where they are put`() {
        let seeds = UInt64(1)...200
        let scattered = seeds.map { Self.reports(run: 1, seed: $0) }
        let inRuns = seeds.map { Self.reports(run: 3, seed: $0) }
        #expect(scattered.allSatisfy { $0.current.mode == .fec && $0.changeCount == 1 })
        #expect(inRuns.count { $0.current.mode == .none } > 140)
        #expect(inRuns.reduce(0) { $0 + $1.changeCount } < 150)
        #expect(inRuns.allSatisfy { $0.changeCount <= 4 })
    }

    @Test(arguments: [-1, 2, .nan, .infinity, -.infinity, 1e300]) func `lies change nothing for the worse`(lie: Double)
    {
        // As long a run as a report can tell of, and as many.
        var (longest, most) = (LossRuns(), LossRuns())
        longest.count(65_533, areLost: true)
        for index in 0..<65_533 { most.count(1, areLost: index % 2 == 0) }
        for runs in [LossRuns(), longest, most] {
            var policy = LossPolicy(Self.opus)
            for index in 0..<5 {
                _ = policy.update(fractionLost: lie, runs: runs, at: .zero + .seconds(index))
                _ = policy.update(fractionLost: 0.1, runs: runs, at: .zero + .seconds(index))
            }
            for index in 10..<30 { _ = policy.update(fractionLost: 0, at: .zero + .seconds(index)) }
            #expect(policy.current == .none)
        }
    }
}
