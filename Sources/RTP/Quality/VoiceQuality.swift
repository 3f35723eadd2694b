/// An estimate of how a leg sounds, from what was lost and how long it takes.
///
/// The R factor of a conversation counts the delay, that of listening does not.
/// Source: RFC 3611, section 4.7.5; ITU-T G.107
package struct VoiceQuality: Hashable, Sendable, BitwiseCopyable {
    /// R of listening, 0 to 100.
    package let listeningRating: Double
    /// R of conversing, 0 to 100; nil while the delay is not known.
    package let conversationalRating: Double?

    /// The quality of a leg; nil when it has received nothing, or nothing is known of its codec.
    ///
    /// - Parameters:
    ///   - loss: what became of packets.
    ///   - impairment: what the codec costs.
    ///   - oneWayDelay: from mouth to ear.
    package init?(_ loss: BurstGapStatistics, impairment: CodecImpairment?, oneWayDelay: Duration?) {
        guard let impairment, loss.packetCount > 0 else { return nil }
        var model = EModel(
            impairment,
            lossPercent: (loss.lossFraction + loss.discardFraction) * 100,
            burstRatio: loss.burstRatio
        )
        listeningRating = Self.clamped(model.rating)
        guard let oneWayDelay else {
            conversationalRating = nil
            return
        }
        model.oneWayDelay = oneWayDelay
        conversationalRating = Self.clamped(model.rating)
    }

    /// The mean opinion score of listening.
    package var listeningScore: Double { EModel.meanOpinionScore(rating: listeningRating) }

    /// The mean opinion score of conversing; nil while the delay is not known.
    package var conversationalScore: Double? { conversationalRating.map(EModel.meanOpinionScore) }

    private static func clamped(_ rating: Double) -> Double { min(max(rating, 0), 100) }
}
