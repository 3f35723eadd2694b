internal import CallBasics

extension RTPSession {
    /// Takes the blocks of the other side's extended report.
    func receiveExtended(_ report: inout RTCPExtendedReport, in bytes: Span<UInt8>, arrival: MediaTime) {
        while let block = report.next(in: bytes) {
            switch block {
            case .lossRLE(let losses):
                receive(losses, in: bytes)
            case .receiverReferenceTime(let time):
                lastReferenceTime = SenderReportArrival(ssrc: report.ssrc, compactTime: time.compact, arrival: arrival)
            case .receiverReportDelays(let delays):
                guard let delay = delays.delay(about: localSSRC, in: bytes) else { break }
                noteRoundTrip(
                    since: delay.lastReferenceTime,
                    delay: delay.delay,
                    sentTimes: sentReferenceTimes,
                    arrival: arrival
                )
            case .voipMetrics(let metrics):
                guard metrics.ssrc == localSSRC else { break }
                if metrics.isPlausible {
                    counters.remoteMetrics = metrics
                } else {
                    counters.implausibleReportCount &+= 1
                }
            case .other:
                break
            }
        }
        counters.malformedCount &+= UInt64(report.malformedCount)
    }

    /// Writes an extended report at `offset`, and answers its byte count; 0 when there is nothing to say.
    func writeExtended(at now: MediaTime, into bytes: inout MutableSpan<UInt8>, at offset: Int) -> Int {
        guard configuration.sendsExtendedReports else { return 0 }
        // A sender's reports carry its time already.
        let referenceTime = sender.isSender ? nil : ntpTimestamp(at: now)
        let byteCount = RTCPExtendedReport.serialize(
            ssrc: localSSRC,
            referenceTime: referenceTime,
            delay: takeDelay(at: now),
            metrics: makeMetrics(),
            losses: takeLosses(),
            into: &bytes,
            at: offset
        )
        if byteCount > 0, let referenceTime { sentReferenceTimes.append(referenceTime.compact) }
        return byteCount
    }

    /// Takes the other side's account of what it lost, if it is about packets that were sent.
    private func receive(_ losses: RTCPLossRLE, in bytes: Span<UInt8>) {
        // What is thinned out tells no runs.
        guard losses.ssrc == localSSRC, losses.thinning == 0 else { return }
        let age = Int(sender.nextSequenceNumber &- losses.endSequence)
        guard let runs = losses.runs(in: bytes), age &+ runs.packetCount <= Int(sender.packetCount) else {
            counters.implausibleReportCount &+= 1
            return
        }
        counters.remoteLossRuns = runs
    }

    /// Which packets of the source came since the last report; nil when there is none.
    private func takeLosses() -> (ssrc: UInt32, trace: LossTrace)? {
        guard let remote = receiver.heardSource else { return nil }
        defer { receiver.statistics.record.beginInterval() }
        return (remote.ssrc, receiver.statistics.record.unreported)
    }

    /// The answer to the other side's reference time, once for each.
    private func takeDelay(at now: MediaTime) -> RTCPReceiverReportDelay? {
        guard let reference = lastReferenceTime else { return nil }
        lastReferenceTime = nil
        let delay = max((now - reference.arrival).nanoseconds, 0)
        return RTCPReceiverReportDelay(
            ssrc: reference.ssrc,
            lastReferenceTime: reference.compactTime,
            delay: UInt32(clamping: Duration.nanoseconds(delay).clockUnits(at: 65_536))
        )
    }

    /// How the source is heard; nil when there is none.
    private func makeMetrics() -> RTCPVoIPMetrics? {
        guard let remote = receiver.heardSource else { return nil }
        let loss = receiver.statistics.record.recent.statistics
        let wait = playout.meanWait(since: reportedPlayout)
        reportedPlayout = playout
        var metrics = RTCPVoIPMetrics(ssrc: remote.ssrc)
        metrics.lossRate = Self.share(loss.lossFraction)
        metrics.discardRate = Self.share(loss.discardFraction)
        metrics.burstDensity = Self.share(loss.burstDensity)
        metrics.gapDensity = Self.share(loss.gapDensity)
        let packet = Double(receiver.statistics.packetNanoseconds) / 1_000_000
        metrics.burstDuration = Self.milliseconds(loss.meanBurstPacketCount * packet)
        metrics.gapDuration = Self.milliseconds(loss.meanGapPacketCount * packet)
        let roundTrip = counters.roundTripNanoseconds.map { Duration.nanoseconds($0) }
        metrics.roundTripDelay = Self.milliseconds(roundTrip?.milliseconds ?? 0)
        metrics.endSystemDelay = Self.milliseconds((voicePath.sendingDelay + wait).milliseconds)
        metrics.signalLevel = Self.level(playout.speechLevel)
        metrics.noiseLevel = Self.level(playout.noiseLevel)
        metrics.gapThreshold = UInt8(BurstGapStatistics.gapThreshold)
        let delay = voicePath.oneWayDelay(roundTrip: roundTrip, playoutDelay: wait)
        let quality = VoiceQuality(
            loss,
            interruptions: playout.interruptions,
            packet: .nanoseconds(receiver.statistics.packetNanoseconds),
            impairment: voicePath.impairment,
            oneWayDelay: delay
        )
        if let quality {
            metrics.rFactor = UInt8(clamping: Int(quality.reportedRating.rounded()))
            metrics.listeningQuality = Self.tenths(quality.listeningScore)
            if let score = quality.conversationalScore { metrics.conversationalQuality = Self.tenths(score) }
        }
        // Concealment by interpolation, and whether the buffer adapts.
        metrics.receiverConfiguration = 0b1100_0000 | (playout.isAdaptive ? 0b0011_0000 : 0b0010_0000)
        metrics.nominalBufferDelay = Self.milliseconds(wait.milliseconds)
        metrics.maximumBufferDelay = Self.milliseconds(playout.maximumDelay.milliseconds)
        metrics.absoluteMaximumBufferDelay = Self.milliseconds(playout.absoluteMaximumDelay.milliseconds)
        return metrics
    }

    /// A fraction of 0 to 1 in 1/256, rounded down as RFC 3611 asks for, 255 for all.
    private static func share(_ fraction: Double) -> UInt8 { UInt8(min(max(fraction * 256, 0), 255)) }

    /// A level in whole dBm0.
    ///
    /// Source: RFC 3611, section 4.7.4; a full-scale sine is at 3.17 dBm0 (ITU-T G.711, section 4), in every codec.
    private static func level(_ level: Decibels?) -> UInt8 {
        guard let level else { return RTCPVoIPMetrics.unavailable }
        let whole = min(max((level.value - Decibels.zeroDBm0.value).rounded(), -127), 126)
        return UInt8(bitPattern: Int8(whole))
    }

    private static func milliseconds(_ value: Double) -> UInt16 { UInt16(min(max(value.rounded(), 0), 65_535)) }

    private static func tenths(_ score: Double) -> UInt8 { UInt8(min(max((score * 10).rounded(), 10), 50)) }
}
