package import CallBasics

extension RTPSession {
    /// Whether RTP and RTCP share one port (RFC 5761).
    package var sharesPort: Bool { addresses.isMultiplexed }

    /// Takes one RTCP datagram; what does not come from the source that is heard says nothing.
    func receiveControl(_ bytes: Span<UInt8>, from source: SocketAddress, arrival: MediaTime) -> RTPReception {
        let sharesPort = sharesPort
        // Before it is read: a flood of others is to cost little.
        guard receiver.policy.admitControl(from: source, sharesPort: sharesPort) else { return refused(.otherControl) }
        guard var compound = try? RTCPCompound(parsing: bytes) else { return malformed() }
        var events = RTPReception.ControlEvents()
        var isOfOther = false
        var isGoodbye = false
        while let packet = compound.next(in: bytes) {
            switch packet {
            case .senderReport(let report):
                guard report.ssrc != localSSRC else { return looped() }
                guard isHeard(report.ssrc) else {
                    isOfOther = true
                    break
                }
                lastSenderReport = SenderReportArrival(
                    ssrc: report.ssrc,
                    compactTime: report.ntpTimestamp.compact,
                    arrival: arrival
                )
                note(report.blocks.block(about: localSSRC, in: bytes), arrival: arrival, events: &events)
            case .receiverReport(let report):
                guard report.ssrc != localSSRC else { return looped() }
                guard isHeard(report.ssrc) else {
                    isOfOther = true
                    break
                }
                note(report.blocks.block(about: localSSRC, in: bytes), arrival: arrival, events: &events)
            case .goodbye(let goodbye):
                guard let ssrc = receiver.source?.ssrc, goodbye.contains(ssrc, in: bytes) else { break }
                isGoodbye = true
            case .extendedReport(var report):
                guard report.ssrc != localSSRC else { return looped() }
                guard isHeard(report.ssrc) else {
                    isOfOther = true
                    break
                }
                receiveExtended(&report, in: bytes, arrival: arrival)
            case .sourceDescription, .other:
                break
            }
        }
        counters.malformedCount &+= UInt64(compound.malformedCount)
        guard !isOfOther else { return refused(.otherControl) }
        if isGoodbye {
            receiver.source?.leftAt = arrival
            events.hasGoodbye = true
            updateMembers(at: arrival)
        }
        if !sharesPort, receiver.heardSource != nil { receiver.policy.lockControl(source) }
        counters.receivedControlCount &+= 1
        scheduler.account(byteCount: bytes.count)
        if addresses.isSymmetric, !sharesPort, receiver.policy.answersControl(to: source) {
            learntControlDestination = source
        }
        return .control(events)
    }

    /// Whether reports of `ssrc` count: those of the source, or, before one is valid, of whoever listens and sends none.
    private func isHeard(_ ssrc: UInt32) -> Bool {
        guard let source = receiver.source, receiver.statistics.isValid else { return true }
        return ssrc == source.ssrc
    }

    private func looped() -> RTPReception {
        counters.loopedCount &+= 1
        return .ignored(.looped)
    }

    private func note(_ block: RTCPReportBlock?, arrival: MediaTime, events: inout RTPReception.ControlEvents) {
        guard let block else { return }
        // Who reports more lost than was sent is wrong in the rest, too; duplicates may make the count negative.
        guard Int64(block.cumulativeLost) <= Int64(sender.packetCount) else {
            counters.implausibleReportCount &+= 1
            return
        }
        events.hasRemoteReport = true
        counters.hasRemoteReport = true
        counters.remoteFractionLost = Double(block.fractionLost) / 256
        counters.remoteCumulativeLost = block.cumulativeLost
        counters.remoteJitter = block.jitter
        // Those of an older report do not belong to this one's loss.
        counters.remoteLossRuns = nil
        noteRoundTrip(
            since: block.lastSenderReport,
            delay: block.delaySinceLastSenderReport,
            sentTimes: sentReportTimes,
            arrival: arrival
        )
    }

    /// Measures the round trip by the other side's answer to a time that was sent, unless the answer cannot be true.
    func noteRoundTrip(since time: UInt32, delay: UInt32, sentTimes: SentTimes, arrival: MediaTime) {
        guard time != 0 else { return }
        let elapsed = Int64(ntpTimestamp(at: arrival).compact &- time)
        let roundTrip = elapsed &- Int64(delay)
        // Rounding, and a clock that runs faster on the other side, may make a short round trip negative.
        guard sentTimes.contains(time), roundTrip >= -655 &- elapsed >> 10 else {
            counters.implausibleReportCount &+= 1
            return
        }
        counters.roundTripNanoseconds = (max(roundTrip, 0) &* 1_000_000_000) >> 16
    }

    /// Whether `makeRTCP` has nothing to do at `now`: less than to ask where a report would go.
    package func waitsForReport(at now: MediaTime) -> Bool { scheduler.waits(at: now) }

    /// Writes a compound of report, canonical name and, after a collision, goodbye, when one is due at `now`.
    ///
    /// Call it every tick; the first call starts the timer. Answers the byte count, or 0 when nothing is due or `bytes`
    /// has not `maximumControlByteCount` bytes. Send it to `controlDestination`.
    package func makeRTCP(at now: MediaTime, into bytes: inout MutableSpan<UInt8>) -> Int {
        guard bytes.count >= Self.maximumControlByteCount, scheduler.isDue(at: now, using: &generator) else { return 0 }
        updateMembers(at: now)
        var byteCount = writeReport(at: now, into: &bytes)
        byteCount &+= writeExtended(at: now, into: &bytes, at: byteCount)
        if let leaving = leavingSSRC {
            byteCount &+= RTCPGoodbye.serialize(ssrc: leaving, into: &bytes, at: byteCount)
            leavingSSRC = nil
        }
        sender.didReport()
        counters.sentControlCount &+= 1
        scheduler.didSend(byteCount: byteCount, at: now, using: &generator)
        return byteCount
    }

    /// Writes a compound of report, canonical name and goodbye, to be sent when the leg ends.
    ///
    /// Answers the byte count, or 0 when nothing was ever sent, so that there is nobody to leave (section 6.3.7).
    package func makeGoodbye(at now: MediaTime, into bytes: inout MutableSpan<UInt8>) -> Int {
        guard bytes.count >= Self.maximumControlByteCount,
            counters.sentPacketCount > 0 || counters.sentControlCount > 0
        else { return 0 }
        var byteCount = writeReport(at: now, into: &bytes)
        byteCount &+= writeExtended(at: now, into: &bytes, at: byteCount)
        byteCount &+= RTCPGoodbye.serialize(ssrc: localSSRC, into: &bytes, at: byteCount)
        counters.sentControlCount &+= 1
        return byteCount
    }

    private func writeReport(at now: MediaTime, into bytes: inout MutableSpan<UInt8>) -> Int {
        let block = makeReportBlock(at: now)
        var byteCount = 0
        if let report = sender.report(ntp: ntpTimestamp(at: now), at: now) {
            byteCount = report.serialize(with: block, into: &bytes)
            sentReportTimes.append(report.ntpTimestamp.compact)
        } else {
            byteCount = RTCPReceiverReport(ssrc: localSSRC).serialize(with: block, into: &bytes)
        }
        let name = canonicalName
        byteCount &+= RTCPSourceDescription.serialize(
            ssrc: localSSRC,
            canonicalName: name.span,
            into: &bytes,
            at: byteCount
        )
        return byteCount
    }

    private func makeReportBlock(at now: MediaTime) -> RTCPReportBlock? {
        guard let remote = receiver.heardSource else { return nil }
        var block = RTCPReportBlock(
            ssrc: remote.ssrc,
            fractionLost: receiver.statistics.takeFractionLost(),
            cumulativeLost: receiver.statistics.cumulativeLost,
            extendedHighestSequence: receiver.statistics.reportedHighest,
            jitter: receiver.statistics.jitter
        )
        if let report = lastSenderReport, report.ssrc == remote.ssrc {
            block.lastSenderReport = report.compactTime
            let delay = max((now - report.arrival).nanoseconds, 0)
            block.delaySinceLastSenderReport = UInt32(clamping: Duration.nanoseconds(delay).clockUnits(at: 65_536))
        }
        return block
    }

    /// Tells the scheduler who is there.
    func updateMembers(at now: MediaTime) {
        let remote = receiver.heardSource
        let hears = remote.map { now - $0.lastArrival < configuration.minimumControlInterval * 2 } ?? false
        scheduler.update(
            memberCount: remote == nil ? 1 : 2,
            senderCount: (sender.isSender ? 1 : 0) + (hears ? 1 : 0),
            isSender: sender.isSender,
            at: now
        )
    }

    func ntpTimestamp(at now: MediaTime) -> NTPTimestamp {
        NTPTimestamp(unixNanoseconds: configuration.unixNanosecondsAtZero &+ now.nanoseconds)
    }
}
