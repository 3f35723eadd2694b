import MediaEngine
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
        var burst: Double?
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
            title: "loss in runs of 3 is worth FEC from 4.5 %",
            abilities: opus,
            burst: 3,
            percents: [2, 4, 4.4, 4.6, 4, 1.6, 1.4, 1.4, 1.4],
            modes: "nnnfffffn"
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

    @Test(arguments: rows) func `the mode follows the reports`(row: Row) {
        var policy = LossPolicy(row.abilities)
        var modes = ""
        for (index, percent) in row.percents.enumerated() {
            let before = policy.current.mode
            let decision = policy.update(
                fractionLost: percent / 100,
                meanBurstLength: row.burst,
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
        let fec = policy.update(fractionLost: 0.06, meanBurstLength: 2, at: .zero)
        #expect(fec?.reason == "6.0 % loss reported, 2.0 packets in a row: in-band FEC made for 10 %")
        let red = policy.update(fractionLost: 0.4, at: .zero + .seconds(5))
        #expect(red?.reason == "21.5 % loss reported: RED with 2 copies of each packet at 14.8 kbit/s each")
        #expect(policy.reason == red?.reason)
    }

    @Test(arguments: [-1, 2, .nan, .infinity, -.infinity, 1e300]) func `lies change nothing for the worse`(lie: Double)
    {
        var policy = LossPolicy(Self.opus)
        for index in 0..<5 {
            _ = policy.update(fractionLost: lie, meanBurstLength: lie, at: .zero + .seconds(index))
            _ = policy.update(fractionLost: 0.1, meanBurstLength: lie, at: .zero + .seconds(index))
        }
        for index in 10..<30 { _ = policy.update(fractionLost: 0, at: .zero + .seconds(index)) }
        #expect(policy.current == .none)
    }
}
