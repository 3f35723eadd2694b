/// What a codec costs in the E-model, and how well it bears loss.
///
/// Units: of the R scale.
/// Source: ITU-T G.113, Appendix I, where the case says nothing else.
package struct CodecImpairment: Hashable, Sendable, BitwiseCopyable {
    /// The equipment impairment factor, Ie: what the codec costs on a clean path.
    package var equipment: Double
    /// The packet-loss robustness factor, Bpl: the loss in percent that costs half of what is left.
    package var lossRobustness: Double

    /// An impairment with the given factors.
    package init(equipment: Double, lossRobustness: Double) {
        self.equipment = equipment
        self.lossRobustness = lossRobustness
    }

    /// The impairment of the codec with this encoding name; nil when nothing is known of it.
    ///
    /// All values are on the narrowband scale, whose best is R = 93.2, so that a wideband codec is not told from G.711
    /// on a clean path.
    package init?(codecName: String) {
        switch codecName.lowercased() {
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
            // No value on this scale: the narrowband costs nothing, and the lost state of ADPCM conceals like GSM-EFR.
            self.init(equipment: 0, lossRobustness: 10)
        case "opus":
            // In no table of G.113. PESQ of bare libopus 1.3.1 at 24 kbit/s without FEC is 3.31 at 0 %, 1.88 at 5 % and
            // 1.45 at 10 % loss; by Annex B of G.107 that takes 28 and 38 from R, which a Bpl of 12 to 15 gives.
            self.init(equipment: 0, lossRobustness: 12)
        default:
            return nil
        }
    }
}
