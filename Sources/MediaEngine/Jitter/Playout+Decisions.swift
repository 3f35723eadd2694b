import CallBasics

/// How the decisions of the jitter buffer are carried out.
extension Playout {
    /// Carries out one decision; answers false when nothing is due.
    func perform(_ decision: PlayoutDecision, at now: MediaTime) -> Bool {
        makeRoom()
        switch decision {
        case .idle:
            return false
        case .play:
            isSteady = true
            playFirst(at: now)
        case .recover(let duration):
            isSteady = false
            recover(frameCount: frameCount(of: duration), duration: duration)
        case .conceal(let duration):
            isSteady = false
            playsPackets = false
            conceal(frameCount: frameCount(of: duration))
        case .comfort(let duration):
            isSteady = false
            playsPackets = false
            counters.comfortFrameCount &+= conceal(frameCount: frameCount(of: duration))
        }
        hasNews = true
        return true
    }

    private func playFirst(at now: MediaTime) {
        let waiting = format.nanoseconds(ofFrames: waitingCount / format.channelCount)
        var beginsNoise = false
        let (header, expected, decoded) = buffer.withFirst { header, payload in
            if header.isComfortNoise {
                beginsNoise = !noise.isOn
                noise.begin(payload)
                return (header, noiseFrameCount, 0)
            }
            let former = codecs.count == 1 ? nil : change(to: header.payloadType)
            var target = freeSamples
            let decoded = decoder.decode(payload, into: &target)
            if let former, !noise.isOn { join(former, frameCount: decoded) }
            if decoded > 0 { noise.end() }
            return (header, decoded > 0 ? decoded : decoder.frameCount(of: payload), decoded)
        }
        buffer.removeFirst()
        playsPackets = decoded > 0
        let playTime = MediaTime(nanoseconds: now.nanoseconds &+ waiting)
        counters.totalWaitNanoseconds &+= playTime.nanoseconds(since: header.arrival)
        counters.lastPlayTime = playTime
        counters.lastPlayEnd.nanoseconds = playTime.nanoseconds &+ format.nanoseconds(ofFrames: expected)
        counters.lastPlayTimestamp = header.rtpTimestamp
        counters.lastPlaySequenceNumber = header.sequenceNumber
        if header.isMarked { counters.markedCount &+= 1 }
        guard !header.isComfortNoise else {
            isSteady = false
            counters.comfortNoiseCount &+= 1
            playNoise(isFirst: beginsNoise)
            return
        }
        guard decoded > 0 else {
            counters.corruptCount &+= 1
            counters.concealedFrameCount &+= conceal(frameCount: expected)
            return
        }
        hasDecoded = true
        writeIndex &+= decoded &* format.channelCount
    }

    /// Plays what stands for a packet of comfort noise; where it follows sound, that dies away within it.
    private func playNoise(isFirst: Bool) {
        let (start, channelCount) = (writeIndex, format.channelCount)
        let count = conceal(frameCount: noiseFrameCount)
        counters.comfortFrameCount &+= count
        guard isFirst, start >= channelCount else { return }
        for index in start..<writeIndex {
            let rest = count &- (index &- start) / channelCount
            let last = Int(samples[start &- channelCount &+ (index &- start) % channelCount])
            samples[index] = Int16(clamping: Int(samples[index]) &+ last &* rest &* rest / (count &* count))
        }
    }

    /// Takes up the decoder for packets of `payloadType`; answers the one before it, when that is another.
    private func change(to payloadType: UInt8) -> (any AudioDecoder)? {
        let next = codecs[index(of: payloadType)].decoder
        let former = decoder
        guard next !== former else { return nil }
        decoder = next
        next.reset()
        guard hasDecoded else { return nil }
        counters.codecChangeCount &+= 1
        return former
    }

    /// Lets what the `former` decoder would have gone on with give way to the `frameCount` frames just decoded.
    private func join(_ former: any AudioDecoder, frameCount: Int) {
        let start = writeIndex &+ max(frameCount, 0) &* format.channelCount
        let room = (samples.count &- start) / format.channelCount
        guard frameCount >= bridgeFrameCount, room >= bridgeFrameCount else { return }
        var continuation = UnsafeMutableBufferPointer(rebasing: samples[start...]).mutableSpan
        former.conceal(frameCount: bridgeFrameCount, into: &continuation)
        let half = bridgeFrameCount / 2
        for frame in 0..<bridgeFrameCount {
            let weight = max(frame &- half, 0)
            for channel in 0..<format.channelCount {
                let index = frame &* format.channelCount &+ channel
                let old = Int(continuation[index]) &* (half &- weight)
                samples[writeIndex &+ index] = Int16(
                    truncatingIfNeeded: (old &+ Int(samples[writeIndex &+ index]) &* weight) / half
                )
            }
        }
    }

    private func recover(frameCount: Int, duration: Int) {
        let (successor, recovered) = buffer.withFirst { header, payload in
            // What another codec encodes holds no copy of what was lost before it.
            guard codecs[index(of: header.payloadType)].decoder === decoder, !header.isComfortNoise else {
                return (header.sequenceNumber, 0)
            }
            var target = freeSamples
            let recovered = decoder.decodeFEC(in: payload, frameCount: frameCount, into: &target)
            return (header.sequenceNumber, recovered)
        }
        playsPackets = recovered > 0
        guard recovered > 0 else {
            buffer.recoveryFailed(duration: duration)
            conceal(frameCount: frameCount)
            return
        }
        noise.end()
        counters.recoveredCount &+= 1
        recoveredSequenceNumber = successor &- 1
        writeIndex &+= recovered &* format.channelCount
    }

    /// Invents at most as many frames as fit, and answers how many.
    @discardableResult
    private func conceal(frameCount: Int) -> Int {
        let room = (samples.count &- writeIndex) / format.channelCount
        let count = min(max(frameCount, 1), room)
        var target = freeSamples
        if noise.isOn {
            noise.fill(&target, from: 0, to: count &* format.channelCount)
        } else {
            decoder.conceal(frameCount: count, into: &target)
        }
        counters.inventedFrameCount &+= count
        writeIndex &+= count &* format.channelCount
        return count
    }
}
