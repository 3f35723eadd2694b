import CallBasics
@testable import RTP
import Testing

@Suite struct EModelTests {
    private static let g711 = CodecImpairment(equipment: 0, lossRobustness: 25.1)

    @Test func `a telephone call without delay or loss is at 93_2, which is a score of 4_41`() {
        let rating = EModel(Self.g711).rating
        #expect(abs(rating - 93.2) < 0.05)
        #expect(abs(EModel.meanOpinionScore(rating: rating) - 4.41) < 0.005)
    }

    // ITU-T G.107, table B.1, the lower limits of the categories; G.109 has the same.
    @Test(arguments: [
        (90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58), (0, 1), (-5, 1), (100, 4.5), (120, 4.5),
    ])
    func `the score of a rating`(rating: Double, score: Double) {
        #expect(abs(EModel.meanOpinionScore(rating: rating) - score) < 0.007)
    }

    // Worked out from the Recommendation's formulas by an independent program, T = Ta = Tr / 2; ITU-T G.114 draws the
    // same curve: users satisfied up to about 200 ms, many dissatisfied at 400 ms.
    @Test(arguments: [
        (0, 93.206), (50, 91.756), (100, 90.664), (150, 89.539), (200, 85.805), (250, 79.177), (300, 72.666),
        (400, 62.247), (500, 54.803),
    ]) func `delay costs what the Recommendation says`(milliseconds: Int, rating: Double) {
        let found = EModel(Self.g711, oneWayDelay: .milliseconds(milliseconds)).rating
        #expect(abs(found - rating) < 0.001)
    }

    @Test func `delay alone costs nothing up to 100 ms`() {
        #expect(EModel.plainDelay(100) == 0)
        #expect(abs(EModel.plainDelay(200) - 3.044) < 0.001 && abs(EModel.plainDelay(400) - 24.070) < 0.001)
    }

    // Ie,eff = Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl), by hand.
    @Test(arguments: [
        (0.0, 25.1, 5.0, 1.0, 15.781), (0, 4.3, 5, 1, 51.075), (11, 19, 5, 1, 28.5), (0, 25.1, 5, 2, 17.210),
        (11, 19, 0, 1, 11), (20, 10, 10, 1, 57.5),
    ]) func `codec and loss cost`(equipment: Double, robustness: Double, loss: Double, ratio: Double, cost: Double) {
        let impairment = CodecImpairment(equipment: equipment, lossRobustness: robustness)
        let model = EModel(impairment, lossPercent: loss, burstRatio: ratio)
        #expect(abs(model.effectiveEquipment - cost) < 0.001)
        #expect(abs(EModel(Self.g711).rating - cost - model.rating) < 0.001)
    }

    @Test func `more loss, longer bursts and more delay never sound better`() {
        var previous = 101.0
        for delay in stride(from: 0, through: 2000, by: 10) {
            let rating = EModel(Self.g711, oneWayDelay: .milliseconds(delay)).rating
            #expect(rating <= previous)
            previous = rating
        }
        for ratio in [1.0, 1.5, 3] {
            previous = 101
            for tenths in 0...1000 {
                let model = EModel(Self.g711, lossPercent: Double(tenths) / 10, burstRatio: ratio)
                #expect(model.rating <= previous && model.rating.isFinite)
                #expect(model.rating <= EModel(Self.g711, lossPercent: Double(tenths) / 10).rating + 1e-9)
                previous = model.rating
            }
        }
        var score = 0.0
        for rating in 0...100 {
            let next = EModel.meanOpinionScore(rating: Double(rating))
            #expect(next >= score && (1...4.5).contains(next))
            score = next
        }
    }

    @Test(arguments: [
        (-1.0, 0.0, Int64.min), (200, 0, .max), (.infinity, -3, 0), (100, 100, 86_400_000_000_000),
    ]) func `numbers that cannot be give a rating all the same`(loss: Double, ratio: Double, nanoseconds: Int64) {
        let model = EModel(
            Self.g711,
            oneWayDelay: .nanoseconds(nanoseconds),
            lossPercent: loss,
            burstRatio: ratio
        )
        #expect(model.rating.isFinite && model.rating < 93.3)
    }

    @Test func `the engine's codecs are known, others are not guessed`() throws {
        for name in ["opus", "PCMU", "PCMA", "G722", "L16", "GSM", "G729"] {
            #expect(CodecImpairment(codecName: name) != nil, "\(name)")
        }
        #expect(CodecImpairment(codecName: "SILK") == nil)
        let g729 = try #require(CodecImpairment(codecName: "G729"))
        #expect(EModel(g729).rating < EModel(Self.g711).rating)
    }

    // R of clean paths by G.113, Appendix IV; the score by R / 1.29.
    @Test(arguments: [("L16", 129, 4.5), ("opus", 121, 4.42), ("G722", 116, 4.34)])
    func `wideband codecs are rated on the wideband scale`(name: String, rating: Double, score: Double) throws {
        let impairment = try #require(CodecImpairment(codecName: name, sampleRate: 16_000))
        let model = EModel(impairment)
        #expect(impairment.isWideband && abs(model.rating - rating) < 0.001)
        #expect(abs(model.score - score) < 0.005)
        var loss = BurstGapStatistics()
        for _ in 0..<100 { loss.count(.received) }
        let quality = try #require(VoiceQuality(loss, impairment: impairment, oneWayDelay: nil))
        #expect(quality.isWideband && quality.listeningRating == rating && quality.listeningScore == model.score)
        // What others are told ends at 100 (RFC 3611, section 4.7.5).
        #expect(quality.reportedRating <= 100 && abs(quality.reportedRating - rating / 1.29) < 0.001)
        // Delay takes as much as from a telephone call.
        let (near, far) = (model.rating, EModel(impairment, oneWayDelay: .milliseconds(300)).rating)
        #expect(abs(near - far - (93.206 - 72.666)) < 0.3)
        #expect(CodecImpairment(codecName: "L16")?.isWideband == false)
    }

    @Test func `stalls that lose no packet count like loss, and losses not twice`() throws {
        var received = BurstGapStatistics()
        for _ in 0..<3000 { received.count(.received) }
        func quality(_ loss: BurstGapStatistics, _ seconds: Double, _ count: Int) throws -> VoiceQuality {
            let interruptions = PlayoutInterruptions(nanoseconds: Int64(seconds * 1e9), count: count)
            let quality = VoiceQuality(
                loss,
                interruptions: interruptions,
                packet: .milliseconds(20),
                impairment: Self.g711,
                oneWayDelay: nil
            )
            return try #require(quality)
        }
        #expect(try quality(received, 0, 0).listeningScore > 4.4)
        let stalled = try quality(received, 5, 5)
        // 250 of 3250 packets, in runs of 50.
        #expect(abs(stalled.listeningRating - (93.206 - 95 * 7.692 / (7.692 / 46.15 + 25.1))) < 0.05)
        #expect(stalled.listeningScore < 3.4)
        // Each packet lost was invented.
        var lossy = BurstGapStatistics()
        for index in 0..<3000 { lossy.count(index % 20 == 0 ? .lost : .received) }
        #expect(try quality(lossy, 3, 150) == quality(lossy, 0, 0))
        #expect(try quality(lossy, 8, 155).listeningRating < quality(lossy, 0, 0).listeningRating - 10)
    }

    @Test func `a third of the packets thrown away makes a bad call`() throws {
        var loss = BurstGapStatistics()
        for index in 0..<1000 { loss.count(index * 324 % 1000 < 324 ? .discarded : .received) }
        #expect(loss.discardFraction == 0.324 && loss.lossFraction == 0)
        let quality = try #require(VoiceQuality(loss, impairment: Self.g711, oneWayDelay: nil))
        #expect(abs(quality.listeningRating - (93.206 - 95 * 32.4 / (32.4 + 25.1))) < 0.05)
        #expect(quality.listeningScore < 2.2)
    }

    @Test func `the estimate of a conversation waits for the delay`() throws {
        var loss = BurstGapStatistics()
        #expect(VoiceQuality(loss, impairment: Self.g711, oneWayDelay: .zero) == nil)
        for index in 0..<1000 { loss.count(index % 20 == 0 ? .lost : .received) }
        #expect(VoiceQuality(loss, impairment: nil, oneWayDelay: .zero) == nil)
        let early = try #require(VoiceQuality(loss, impairment: Self.g711, oneWayDelay: nil))
        #expect(early.conversationalRating == nil && abs(early.listeningRating - (93.206 - 15.781)) < 0.01)
        let later = try #require(VoiceQuality(loss, impairment: Self.g711, oneWayDelay: .milliseconds(300)))
        #expect(later.listeningScore == early.listeningScore)
        #expect((later.conversationalScore ?? 5) < later.listeningScore - 0.3)
    }
}
