extension CallReport {
    /// The report as OpenMetrics text, for a collector that reads files or pages: a sample for each leg, and for each
    /// direction of a card.
    ///
    /// Units: seconds, bytes and ratios of 0 to 1, whatever the table shows, and what a name ends with. What is not
    /// known has no sample.
    /// Source: OpenMetrics 1.0 (draft-richih-opsawg-openmetrics-00)
    public var openMetrics: String { metrics(.openMetrics) }

    /// The same in Prometheus' own text format, which `promtool check metrics` and node_exporter's textfile collector read.
    ///
    /// Source: Prometheus, "Exposition formats", "Text-based format" 0.0.4
    public var prometheusText: String { metrics(.prometheus) }

    private func metrics(_ form: OpenMetricsText.Form) -> String {
        var text = OpenMetricsText(form)
        let about = "What kind of call it was, and between whom: addresses of RTP, SSRC in hexadecimal."
        text.add("media_call", .info, help: about, legs.map { (infoLabels($0), 1) })
        text.add("media_call_duration", .gauge, unit: "seconds", help: "How long the call lasted.", [([], seconds)])
        text.add("media_ticks", .counter, help: "Ticks that ran.", [([], Double(ticks.count))])
        text.add("media_late_ticks", .counter, help: "Ticks that started late.", [([], Double(ticks.late))])
        text.add(
            "media_lost_events",
            .counter,
            help: "Events of the media thread that found no room on their way.",
            [([], Double(ticks.lostEvents))]
        )
        text.add(
            "media_tick_lateness_p99",
            .gauge,
            unit: "seconds",
            help: "The lateness that 99 % of the ticks did not exceed.",
            [([], ticks.p99LatenessMs / 1000)]
        )
        addCounters(to: &text)
        addTimes(to: &text)
        addQuality(to: &text)
        addRemote(to: &text)
        addEcho(to: &text)
        addCards(to: &text)
        return text.ended
    }

    private func addCounters(to text: inout OpenMetricsText) {
        func add(_ name: String, unit: String? = nil, _ help: String, _ value: (LegReport) -> Double) {
            text.add(name, .counter, unit: unit, help: help, samples(value))
        }
        add("media_sent_packets", "RTP packets sent.") { Double($0.sent.packets) }
        add("media_sent", unit: "bytes", "Payload sent.") { Double($0.sent.bytes) }
        add("media_unreachable_packets", "Packets that did not arrive, as the network, or this machine, says.") {
            Double($0.sent.unreachable)
        }
        add("media_received_packets", "RTP packets received.") { Double($0.received.packets) }
        add("media_lost_packets", "Packets that never came.") { Double($0.received.lost) }
        add("media_late_packets", "Packets that came after their time.") { Double($0.received.late) }
        add("media_duplicate_packets", "Packets that came twice.") { Double($0.received.duplicate) }
        add("media_reordered_packets", "Packets that came after one sent later.") { Double($0.received.reordered) }
        add("media_discarded_packets", "Packets thrown away as too many.") { Double($0.received.discarded) }
        add("media_rejected_packets", "Packets that were none of this leg, or held nothing.") {
            Double($0.received.rejected)
        }
        text.add(
            "media_refused_packets",
            .counter,
            help: "Datagrams that were not of the source that is heard or not of RTP, by reason.",
            legs.flatMap { leg in
                let refused = leg.received.refused
                let reasons = [
                    ("other_address", refused.otherAddress), ("unnamed_host", refused.unnamedHost),
                    ("former_source", refused.formerSource), ("other_control", refused.otherControl),
                    ("other_protocol", refused.otherProtocol),
                ]
                return reasons.map { ([("leg", leg.name), ("codec", codec), ("reason", $0.0)], Double($0.1)) }
            }
        )
        add("media_socket_dropped_datagrams", "Datagrams that the socket dropped before they were read.") {
            Double($0.received.socketDrops)
        }
        add("media_recovered_packets", "Packets rebuilt from their successor.") { Double($0.received.fecRecovered) }
        add("media_redundant_packets", "Packets that a copy replaced before they came.") {
            Double($0.received.redundant)
        }
        add("media_stretched", unit: "seconds", "Sound left out and added to follow the network.") {
            $0.stretchedMs / 1000
        }
        add("media_codec_changes", "Times that the other side changed its codec.") {
            Double($0.received.codecChanges)
        }
        add("media_comfort_noise_packets", "Packets of comfort noise, sent in place of sound.") {
            Double($0.received.comfortNoise)
        }
        add("media_concealed", unit: "seconds", "Sound invented in place of packets.") {
            $0.received.concealedMs / 1000
        }
        add("media_implausible_reports", "RTCP reports that cannot be true.") {
            Double($0.quality.implausibleReports)
        }
    }

    private func addTimes(to text: inout OpenMetricsText) {
        func add(_ name: String, _ help: String, _ milliseconds: (LegReport) -> Double?) {
            text.add(name, .gauge, unit: "seconds", help: help, samples { milliseconds($0).map { $0 / 1000 } })
        }
        add("media_jitter", "Interarrival jitter.") { $0.jitterMs }
        add("media_playout_delay", "The mean wait of packets from arrival to sound.") { $0.playoutDelayMs }
        add("media_playout_delay_target", "How long the fastest packet is meant to wait.") { $0.targetDelayMs }
        add("media_mouth_to_ear", "From speaking to hearing, measured.") { $0.mouthToEarMs }
        add("media_one_way_delay", "From speaking to hearing, measured or estimated.") { $0.quality.oneWayDelayMs }
        add("media_round_trip", "The time to the other side and back.") { $0.rtcp.roundTripMs }
        add("media_burst", "The mean duration of bursts of loss.") { $0.quality.burstMs }
        add("media_gap", "The mean duration of gaps between bursts of loss.") { $0.quality.gapMs }
    }

    private func addQuality(to text: inout OpenMetricsText) {
        func addRatio(_ name: String, _ help: String, _ percent: (LegReport) -> Double?) {
            text.add(name, .gauge, unit: "ratio", help: help, samples { percent($0).map { $0 / 100 } })
        }
        func add(_ name: String, _ help: String, _ value: (LegReport) -> Double?) {
            text.add(name, .gauge, help: help, samples(value))
        }
        addRatio("media_loss", "Packets that never came and were not rebuilt.") { $0.quality.lossPercent }
        addRatio("media_discard", "Packets that came and were thrown away.") { $0.quality.discardPercent }
        addRatio("media_burst_loss", "Packets lost or thrown away within bursts.") { $0.quality.burstLossPercent }
        addRatio("media_gap_loss", "Packets lost or thrown away between bursts.") { $0.quality.gapLossPercent }
        add("media_r_factor", "The rating of ITU-T G.107, of wideband codecs of G.107.1 (129 at best), estimated.") {
            $0.quality.rFactor
        }
        add("media_mos_listening", "The mean opinion score of listening, estimated.") { $0.quality.mosListening }
        add("media_mos_conversational", "The mean opinion score of conversing, estimated.") {
            $0.quality.mosConversational
        }
        add("media_sent_level_dbov", "The level of the speech that was sent, of its last 5 s.") { $0.sentLevel }
        add("media_heard_level_dbov", "The level of the speech that was heard, of its last 5 s.") { $0.heardLevel }
    }

    private func addRemote(to text: inout OpenMetricsText) {
        func add(_ name: String, unit: String? = nil, _ help: String, _ value: (LegReport) -> Double?) {
            text.add(name, .gauge, unit: unit, help: help, samples(value))
        }
        add("media_remote_interval_loss", unit: "ratio", "Loss that the peer saw between its last reports.") {
            $0.rtcp.fractionLost
        }
        add("media_remote_loss_runs", "Runs of losses that the peer saw between its last reports.") {
            $0.rtcp.lossRuns.map { Double($0.count) }
        }
        add("media_remote_loss_run_mean", "Mean length of the loss runs that the peer saw, in packets.") {
            $0.rtcp.lossRuns.map(\.mean)
        }
        add("media_remote_loss_run_longest", "Longest loss run that the peer saw, in packets.") {
            $0.rtcp.lossRuns.map { Double($0.longest) }
        }
        add("media_remote_loss", unit: "ratio", "Loss that the peer saw in all.") {
            $0.quality.remote.map { $0.lossPercent / 100 }
        }
        add("media_remote_discard", unit: "ratio", "Packets that came too late at the peer.") {
            $0.quality.remote.map { $0.discardPercent / 100 }
        }
        add("media_remote_r_factor", "The rating that the peer estimates.") {
            $0.quality.remote?.rFactor.map(Double.init)
        }
        add("media_remote_mos_listening", "The score of listening that the peer estimates.") {
            $0.quality.remote?.mosListening
        }
        add("media_remote_mos_conversational", "The score of conversing that the peer estimates.") {
            $0.quality.remote?.mosConversational
        }
        add("media_remote_speech_level_dbm0", "The level of speech as the peer hears it.") {
            $0.quality.remote?.signalLevel.map(Double.init)
        }
        add("media_remote_noise_level_dbm0", "The level of its pauses as the peer hears them.") {
            $0.quality.remote?.noiseLevel.map(Double.init)
        }
        add("media_remote_end_system_delay", unit: "seconds", "What the peer's own system adds to the round trip.") {
            $0.quality.remote.map { Double($0.endSystemDelayMs) / 1000 }
        }
    }

    private func addEcho(to text: inout OpenMetricsText) {
        text.add(
            "media_echo_return_loss_enhancement_db",
            .gauge,
            help: "By how much echo cancelling makes softer what is captured while the far end speaks.",
            samples { $0.echo?.erleDb }
        )
        text.add(
            "media_echo_delay",
            .gauge,
            unit: "seconds",
            help: "From what is played to its echo.",
            samples { $0.echo?.delayMs.map { $0 / 1000 } }
        )
        text.add(
            "media_echo_realignments",
            .counter,
            help: "Times that the reference was moved because a card had lost samples.",
            samples { $0.echo.map { Double($0.realignments) } }
        )
    }

    private func addCards(to text: inout OpenMetricsText) {
        let labels = cardLabels
        func add(
            _ name: String,
            _ kind: OpenMetricsText.Kind,
            unit: String? = nil,
            _ help: String,
            _ value: (CardReport) -> Double?
        ) {
            text.add(name, kind, unit: unit, help: help, zip(labels, cards).map { ($0, value($1)) })
        }
        add("media_card_latency", .gauge, unit: "seconds", "Sound in the card.") { $0.latencyMs / 1000 }
        add("media_card_clock_ppm", .gauge, "By how much the card's clock is faster than the ticks'.") { $0.ppm }
        add("media_card_correction_ppm", .gauge, "By how much the ratio between card and graph is corrected.") {
            $0.correctionPPM
        }
        add("media_card_xruns", .counter, "Times that the card ran empty or over.") { Double($0.xruns) }
        add("media_card_lost", .counter, unit: "seconds", "Sound not heard or not recorded.") { $0.lostMs / 1000 }
        add("media_card_inserted", .counter, unit: "seconds", "Silence put in place of what was lost.") {
            $0.insertedMs / 1000
        }
        add("media_card_stalls", .counter, "Times that the card stood without an error.") { Double($0.stalls) }
        add("media_card_suspends", .counter, "Times that the machine slept.") { Double($0.suspends) }
        add("media_card_shortages", .counter, "Times that the card gave or took too little.") { Double($0.shortages) }
        add("media_card_disappearances", .counter, "Times that the card went away.") { Double($0.disappearances) }
        add("media_card_reopenings", .counter, "Times that there was a card again.") { Double($0.reopenings) }
        add("media_card_absent", .counter, unit: "seconds", "Time without a card.") { $0.withoutCardMs / 1000 }
    }

    /// The labels of each card; calls may have cards of their own whose names are the same.
    private var cardLabels: [[OpenMetricsText.Label]] {
        cards.indices.map { index in
            let card = cards[index]
            let before = cards[..<index].count { $0.direction == card.direction && $0.name == card.name }
            let name = before == 0 ? card.name : "\(card.name) (\(before + 1))"
            return [("direction", "\(card.direction)"), ("card", name)]
        }
    }

    /// What `media_call_info` says of a leg; what is not known is left out.
    private func infoLabels(_ leg: LegReport) -> [OpenMetricsText.Label] {
        let known: [(name: String, value: String?)] = [
            ("leg", leg.name), ("codec", codec), ("mode", mode.rawValue),
            ("local_address", leg.endpoints.localAddress), ("remote_address", leg.endpoints.remoteAddress),
            ("local_ssrc", leg.endpoints.localSSRC.map(Self.hexadecimal)),
            ("remote_ssrc", leg.endpoints.remoteSSRC.map(Self.hexadecimal)),
        ]
        return known.compactMap { label in label.value.map { (label.name, $0) } }
    }

    private static func hexadecimal(_ ssrc: UInt32) -> String {
        let digits = String(ssrc, radix: 16)
        return "0x" + String(repeating: "0", count: 8 - digits.count) + digits
    }

    private func samples(_ value: (LegReport) -> Double?) -> [(labels: [OpenMetricsText.Label], value: Double?)] {
        legs.map { leg in ([("leg", leg.name), ("codec", codec)], value(leg)) }
    }
}
