import CallBasics
import Glibc

/// The E-model: a rating R of a call from its delay, its codec and its losses, and the mean opinion score for it.
///
/// The whole algorithm is here: noise (Ro), loudness, sidetone and quantising (Is), talker and listener echo and delay
/// (Id), codec and loss (Ie,eff). What describes telephones and rooms has the Recommendation's defaults, among them an
/// echo path of 65 dB loss (TELR) that is as long as the one-way delay. Left out are the cases of a sidetone below 9
/// or above 20 dB, which the defaults exclude. On the wideband scale delay is taken to cost the same points.
/// Units: dB and the R scale, where 93.2 is a telephone call without delay or loss, and 129 a wideband one.
/// Source: ITU-T G.107, sections 7.2 to 7.6 and Annex B; ITU-T G.107.1, section 7 and Annex A
package struct EModel: Hashable, Sendable, BitwiseCopyable {
    /// What the codec costs.
    package var impairment: CodecImpairment
    /// The one-way delay from mouth to ear, Ta, which is also the echo path's, T.
    package var oneWayDelay: Duration
    /// Packets lost or discarded, Ppl, in percent.
    package var lossPercent: Double
    /// How much losses cling together, BurstR; 1 when each is for itself.
    package var burstRatio: Double
    /// What people forgive for an advantage of access, A: 0 for a wire, up to 10 on the move.
    package var advantage: Double

    /// A model of a call.
    ///
    /// - Parameters:
    ///   - impairment: what the codec costs.
    ///   - oneWayDelay: from mouth to ear; up to a minute is looked at.
    ///   - lossPercent: packets lost or discarded, 0 to 100.
    ///   - burstRatio: how much losses cling together, at least 1.
    ///   - advantage: what people forgive.
    package init(
        _ impairment: CodecImpairment,
        oneWayDelay: Duration = .zero,
        lossPercent: Double = 0,
        burstRatio: Double = 1,
        advantage: Double = 0
    ) {
        self.impairment = impairment
        self.oneWayDelay = oneWayDelay
        self.lossPercent = lossPercent
        self.burstRatio = burstRatio
        self.advantage = advantage
    }

    /// The transmission rating factor R.
    package var rating: Double {
        let milliseconds = min(max(oneWayDelay.milliseconds, 0), 60_000)
        guard !impairment.isWideband else {
            return Self.widebandBest - (delay(milliseconds) - delay(0)) - effectiveEquipment + advantage
        }
        return Self.signalToNoise - simultaneous(milliseconds) - delay(milliseconds) - effectiveEquipment + advantage
    }

    /// The mean opinion score, 1 to 4.5.
    package var score: Double {
        Self.meanOpinionScore(rating: impairment.isWideband ? rating / Self.widebandRatio : rating)
    }

    /// The best rating of wideband speech, and how much longer its scale is.
    package static var widebandBest: Double { 129 }
    package static var widebandRatio: Double { 1.29 }

    /// The mean opinion score, 1 to 4.5, that goes with the rating `rating` on the narrowband scale.
    ///
    /// Source: ITU-T G.107, Annex B
    package static func meanOpinionScore(rating: Double) -> Double {
        guard rating > 0 else { return 1 }
        guard rating < 100 else { return 4.5 }
        // Below 6.5 the polynomial would dip under the worst score.
        return max(1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6, 1)
    }

    /// Codec and loss: Ie,eff (section 7.5).
    package var effectiveEquipment: Double {
        let loss = min(max(lossPercent, 0), 100)
        let share = loss / (loss / max(burstRatio, 1) + max(impairment.lossRobustness, 0.1))
        // Much loss in long bursts would go beyond the scale's end.
        return min(impairment.equipment + (95 - impairment.equipment) * share, 95)
    }

    /// Loudness, sidetone and quantising: Is (section 7.3); the sidetone grows with an early echo.
    private func simultaneous(_ milliseconds: Double) -> Double {
        let loudness = Self.overallLoudness + 0.2 * (64 + Self.noise - Self.receiveLoudness)
        let tooLoud = 20 * (pow(1 + pow(loudness / 8, 8), 1 / 8) - loudness / 8)
        let sidetone =
            -10 * log10(pow(10, -Self.sidetone / 10) + exp(-milliseconds / 4) * pow(10, -Self.talkerEchoLoss / 10))
        let sidetoneImpairment =
            12 * pow(1 + pow((sidetone - 13) / 6, 8), 1 / 8)
            - 28 * pow(1 + pow((sidetone + 1) / 19.4, 35), 1 / 35)
            - 13 * pow(1 + pow((sidetone - 3) / 33, 13), 1 / 13) + 29
        let quantising = 37.0
        let distortion = 1.07 + 0.258 * quantising + 0.0602 * quantising * quantising
        let fromNoise = (Self.signalToNoise - 100) / 15 + 46 / 8.4 - distortion / 9
        let fromDistortion = 46.0 / 30 - distortion / 40
        return tooLoud + sidetoneImpairment + 15 * log10(1 + pow(10, fromNoise) + pow(10, fromDistortion))
    }

    /// Talker echo, listener echo and plain delay: Id (section 7.4).
    private func delay(_ milliseconds: Double) -> Double {
        talkerEcho(milliseconds) + listenerEcho(2 * milliseconds) + Self.plainDelay(milliseconds)
    }

    private func talkerEcho(_ milliseconds: Double) -> Double {
        guard milliseconds >= 1 else { return 0 }
        let echo =
            Self.talkerEchoLoss - 40 * log10((1 + milliseconds / 10) / (1 + milliseconds / 150))
            + 6 * exp(-0.3 * milliseconds * milliseconds)
        let difference = -1.5 * (Self.noise - Self.receiveLoudness) - (80 + 2.5 * (echo - 14))
        return (difference / 2 + (difference * difference / 4 + 100).squareRoot() - 1) * (1 - exp(-milliseconds))
    }

    private func listenerEcho(_ milliseconds: Double) -> Double {
        let difference = Self.signalToNoise - 10.5 * (Self.weightedEchoPathLoss + 7) * pow(milliseconds + 1, -0.25)
        return difference / 2 + (difference * difference / 4 + 169).squareRoot()
    }

    /// What delay alone costs, without any echo: Idd; nothing up to 100 ms.
    static func plainDelay(_ milliseconds: Double) -> Double {
        guard milliseconds > 100 else { return 0 }
        let doublings = log2(milliseconds / 100)
        return 25 * (pow(1 + pow(doublings, 6), 1 / 6) - 3 * pow(1 + pow(doublings / 3, 6), 1 / 6) + 2)
    }

    // MARK: The telephone of table 2

    /// RLR, and OLR, its sum with SLR.
    private static var receiveLoudness: Double { 2 }
    private static var overallLoudness: Double { 10 }
    /// STMR, TELR and WEPL.
    private static var sidetone: Double { 15 }
    private static var talkerEchoLoss: Double { 65 }
    private static var weightedEchoPathLoss: Double { 110 }

    /// No: circuit noise, both rooms' noise and the noise floor, added by power (section 7.2).
    private static var noise: Double {
        let sendLoudness = 8.0
        let (sendRoom, receiveRoom, sendSensitivity, listenerSidetone) = (35.0, 35.0, 3.0, 18.0)
        let heardRoom = receiveRoom + 10 * log10(1 + pow(10, (10 - listenerSidetone) / 10))
        let masking = sendRoom - overallLoudness - sendSensitivity - 14
        let fromSender = sendRoom - sendLoudness - sendSensitivity - 100 + 0.004 * masking * masking
        let fromReceiver = receiveLoudness - 121 + heardRoom + 0.008 * (heardRoom - 35) * (heardRoom - 35)
        let powers = pow(10, -7.0) + pow(10, fromSender / 10) + pow(10, fromReceiver / 10)
        return 10 * log10(powers + pow(10, (-64 + receiveLoudness) / 10))
    }

    /// Ro: the signal above all noise.
    private static var signalToNoise: Double { 15 - 1.5 * (8 + noise) }
}
