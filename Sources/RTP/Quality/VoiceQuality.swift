import CallBasics

/// An estimate of how a leg sounds, from what was lost, what had to be invented and how long it takes.
///
/// Packets that never came and packets that were thrown away count alike. A stall that loses no packet is heard all the same:
/// where more was invented than those packets hold, that counts as if so much had been lost.
///
/// The R factor of a conversation counts the delay, that of listening does not.
/// Source: RFC 3611, section 4.7.5; ITU-T G.107 and G.107.1
package struct VoiceQuality: Hashable, Sendable, BitwiseCopyable {
    /// Whether ratings are on the wideband scale, whose best is 129; else on that of telephones, 93.2 at best.
    package let isWideband: Bool
    /// R of listening, 0 to 100, of a wideband codec to 129.
    package let listeningRating: Double
    /// R of conversing, likewise; nil while the delay is not known.
    package let conversationalRating: Double?

    /// The quality of a leg; nil when it has received nothing, or nothing is known of its codec.
    ///
    /// - Parameters:
    ///   - loss: what became of packets.
    ///   - interruptions: when sound was invented in place of packets.
    ///   - packet: what a packet lasts; zero while that is not known.
    ///   - impairment: what the codec costs.
    ///   - oneWayDelay: from mouth to ear.
    package init?(
        _ loss: BurstGapStatistics,
        interruptions: PlayoutInterruptions = PlayoutInterruptions(),
        packet: Duration = .zero,
        impairment: CodecImpairment?,
        oneWayDelay: Duration?
    ) {
        guard let impairment, loss.packetCount > 0 else { return nil }
        isWideband = impairment.isWideband
        let (share, burstRatio) = Self.lost(loss, interruptions, packetNanoseconds: packet.nanoseconds)
        var model = EModel(impairment, lossPercent: share * 100, burstRatio: burstRatio)
        listeningRating = Self.clamped(model)
        guard let oneWayDelay else {
            conversationalRating = nil
            return
        }
        model.oneWayDelay = oneWayDelay
        conversationalRating = Self.clamped(model)
    }

    /// The mean opinion score of listening.
    package var listeningScore: Double { EModel.meanOpinionScore(rating: normalized(listeningRating)) }

    /// The mean opinion score of conversing; nil while the delay is not known.
    package var conversationalScore: Double? {
        conversationalRating.map { EModel.meanOpinionScore(rating: normalized($0)) }
    }

    /// R of conversing, or of listening while the delay is not known, on a scale of 100, as reports to others have it.
    package var reportedRating: Double { normalized(conversationalRating ?? listeningRating) }

    /// The share of sound that was not the sender's, and how much that clings together.
    private static func lost(
        _ loss: BurstGapStatistics,
        _ interruptions: PlayoutInterruptions,
        packetNanoseconds: Int64
    ) -> (share: Double, burstRatio: Double) {
        let unserved = Double(loss.lostCount &+ loss.discardedCount)
        // In packets.
        let invented = packetNanoseconds > 0 ? Double(interruptions.nanoseconds) / Double(packetNanoseconds) : 0
        guard invented > unserved else { return (loss.lossFraction + loss.discardFraction, loss.burstRatio) }
        let share = invented / (Double(loss.packetCount) + invented - unserved)
        let runs = Double(max(interruptions.count, loss.runCount, 1))
        return (share, max(invented / runs * (1 - share), 1))
    }

    private func normalized(_ rating: Double) -> Double { isWideband ? rating / EModel.widebandRatio : rating }

    private static func clamped(_ model: EModel) -> Double {
        min(max(model.rating, 0), model.impairment.isWideband ? EModel.widebandBest : 100)
    }
}
