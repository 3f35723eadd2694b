extension LegReport {
    /// How a leg sounds: losses in bursts and gaps (RFC 3611) and an estimate by the E-model (ITU-T G.107), here and,
    /// by its own account, at the other side.
    ///
    /// What had to be invented during stalls counts as loss, and what was thrown away, too.
    ///
    /// Units: percent, ms and the scales of R and MOS (1 to 5).
    public struct Quality: Sendable, Hashable {
        /// The scale of an R factor.
        public enum Scale: String, Sendable, Hashable {
            /// That of telephones (ITU-T G.107): 93.2 at best.
            case narrowband
            /// That of wideband codecs (ITU-T G.107.1): 129 at best.
            case wideband
        }

        /// The R factor, of conversing once the delay is known, of listening before; nil for an unknown codec.
        public var rFactor: Double?
        /// The scale of the R factor, which the codec decides; nil for an unknown codec.
        public var scale: Scale?
        /// The mean opinion score of listening.
        public var mosListening: Double?
        /// The mean opinion score of conversing; nil while the delay is not known.
        public var mosConversational: Double?
        /// Packets that never came and were not rebuilt.
        public var lossPercent: Double
        /// Packets that came and were thrown away: late, too many, or unfit.
        public var discardPercent: Double
        /// Sound that was invented or left silent, because nothing came in time, in ms; an outage of more than 3 s counts before
        /// it ends.
        public var interruptedMs: Double
        /// Packets lost or thrown away within bursts.
        public var burstLossPercent: Double
        /// Packets lost or thrown away within the gaps between bursts.
        public var gapLossPercent: Double
        /// The mean duration of bursts; 0 without any.
        public var burstMs: Double
        /// The mean duration of gaps.
        public var gapMs: Double
        /// From mouth to ear; measured when the sender is in this process, else estimated from the round trip; nil
        /// before that is known.
        public var oneWayDelayMs: Double?
        /// Reports of the other side that cannot be true, and were not believed.
        package var implausibleReports: Int
        /// How the other side hears this one; nil until it said so by an extended report.
        public var remote: Remote?

        init(rtp: RTPStatistics, playout: PlayoutStatistics, mouthToEar: Duration?, voicePath: VoicePath) {
            let loss = rtp.reception.statistics
            let interruptions = playout.buffer.interruptions
            let delay = mouthToEar ?? voicePath.oneWayDelay(roundTrip: rtp.roundTrip, playoutDelay: playout.meanWait)
            let quality = VoiceQuality(
                loss,
                interruptions: interruptions,
                packet: .nanoseconds(rtp.packetNanoseconds),
                impairment: voicePath.impairment,
                oneWayDelay: delay
            )
            scale = quality.map { $0.isWideband ? .wideband : .narrowband }
            interruptedMs = LegReport.rounded(.nanoseconds(interruptions.nanoseconds))
            rFactor = quality.map { Self.rounded($0.conversationalRating ?? $0.listeningRating) }
            mosListening = quality.map { Self.rounded($0.listeningScore) }
            mosConversational = quality?.conversationalScore.map(Self.rounded)
            lossPercent = Self.rounded(loss.lossFraction * 100)
            discardPercent = Self.rounded(loss.discardFraction * 100)
            burstLossPercent = Self.rounded(loss.burstDensity * 100)
            gapLossPercent = Self.rounded(loss.gapDensity * 100)
            let packet = Double(rtp.packetNanoseconds) / 1_000_000
            burstMs = Self.rounded(loss.meanBurstPacketCount * packet)
            gapMs = Self.rounded(loss.meanGapPacketCount * packet)
            oneWayDelayMs = delay.map(LegReport.rounded)
            implausibleReports = Int(rtp.implausibleReportCount)
            remote = rtp.remoteMetrics.map(Remote.init)
        }

        /// A number to a hundredth.
        static func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }
    }

    /// What the other side said last of how it hears this one; nil is what it did not know.
    public struct Remote: Sendable, Hashable {
        /// The R factor.
        public var rFactor: Int?
        /// The mean opinion score of listening.
        public var mosListening: Double?
        /// The mean opinion score of conversing.
        public var mosConversational: Double?
        /// Packets that never came there.
        public var lossPercent: Double
        /// Packets that came there too late.
        public var discardPercent: Double
        /// Packets lost or late within bursts.
        public var burstLossPercent: Double
        /// Packets lost or late within the gaps between bursts.
        public var gapLossPercent: Double
        /// The mean duration of bursts.
        public var burstMs: Int
        /// The mean duration of gaps.
        public var gapMs: Int
        /// The round trip as measured there.
        public var roundTripMs: Int?
        /// What packetisation, encoding and playout there add to the round trip.
        public var endSystemDelayMs: Int
        /// The delay of the jitter buffer there.
        public var bufferDelayMs: Int
        /// The level of our speech there, in dBm0.
        public var signalLevel: Int?
        /// The level of its pauses there, in dBm0.
        public var noiseLevel: Int?

        init(_ metrics: RTCPVoIPMetrics) {
            func percent(_ share: UInt8) -> Double { Quality.rounded(Double(share) * 100 / 256) }
            rFactor = metrics.knownRFactor
            mosListening = metrics.knownListeningQuality
            mosConversational = metrics.knownConversationalQuality
            lossPercent = percent(metrics.lossRate)
            discardPercent = percent(metrics.discardRate)
            burstLossPercent = percent(metrics.burstDensity)
            gapLossPercent = percent(metrics.gapDensity)
            burstMs = Int(metrics.burstDuration)
            gapMs = Int(metrics.gapDuration)
            roundTripMs = metrics.roundTripDelay > 0 ? Int(metrics.roundTripDelay) : nil
            endSystemDelayMs = Int(metrics.endSystemDelay)
            bufferDelayMs = Int(metrics.nominalBufferDelay)
            signalLevel = metrics.knownSignalLevel
            noiseLevel = metrics.knownNoiseLevel
        }
    }
}
