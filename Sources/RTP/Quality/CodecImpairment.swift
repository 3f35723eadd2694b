/// What a codec costs in the E-model, and how well it bears loss.
///
/// Units: of the R scale, whose best is 93.2 for codecs of the telephone's band (ITU-T G.107) and 129 for wideband ones
/// (ITU-T G.107.1): numbers of the two do not compare, and scores only roughly.
/// Source: ITU-T G.113, Appendices I and IV, where the case says nothing else.
package struct CodecImpairment: Hashable, Sendable, BitwiseCopyable {
    /// The equipment impairment factor, Ie: what the codec costs on a clean path.
    package var equipment: Double
    /// The packet-loss robustness factor, Bpl: the loss in percent that costs half of what is left.
    package var lossRobustness: Double
    /// Whether the factors are on the scale of wideband speech (50 to 7000 Hz).
    package var isWideband: Bool

    /// An impairment with the given factors.
    package init(equipment: Double, lossRobustness: Double, isWideband: Bool = false) {
        self.equipment = equipment
        self.lossRobustness = lossRobustness
        self.isWideband = isWideband
    }

    /// The impairment of a codec; nil when nothing is known of it.
    ///
    /// Appendix IV has an equipment factor of G.722, and none of Opus; loss robustness on the wideband scale is an
    /// approximation in each case: what makes the same share of the scale as the loss does on the narrowband one.
    ///
    /// - Parameters:
    ///   - codecName: Its encoding name.
    ///   - sampleRate: Samples per second, where its name leaves that open (L16).
    package init?(codecName: String, sampleRate: Int = 8000) {
        switch codecName.lowercased() {
        case "l16" where sampleRate >= 16_000:
            // The reference of the wideband scale; its concealment is that of G.711.
            self.init(equipment: 0, lossRobustness: 18, isWideband: true)
        case "pcmu", "pcma", "l16":
            // With concealment like that of G.711, Appendix I; without any, Bpl would be 4.3. L16 is no worse.
            self.init(equipment: 0, lossRobustness: 25.1)
        case "g729":
            // G.729 Annex A with VAD, which G.113 gives a Bpl for.
            self.init(equipment: 11, lossRobustness: 19)
        case "gsm":
            // Ie of GSM 06.10; G.113 has no Bpl of it, so that of GSM-EFR stands in, which conceals in the same way.
            self.init(equipment: 20, lossRobustness: 10)
        case "g722":
            // Ie,wb at 64 kbit/s; the lost state of ADPCM conceals like GSM-EFR, whose Bpl is 10 on the narrowband scale.
            self.init(equipment: 13, lossRobustness: 5, isWideband: true)
        case "opus":
            // In no table of G.113: taken as G.722.2 at 23.85 kbit/s. PESQ of bare libopus 1.3.1 at 24 kbit/s without FEC is
            // 3.31 at 0 %, 1.88 at 5 % and 1.45 at 10 % loss; by Annex B of G.107 that takes 28 and 38 from R, or 36 and 49 of
            // the wideband scale, which a Bpl of 6 to 8 gives.
            self.init(equipment: 8, lossRobustness: 7, isWideband: true)
        default:
            return nil
        }
    }
}
