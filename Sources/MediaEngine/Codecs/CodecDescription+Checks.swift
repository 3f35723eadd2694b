import CallBasics

extension CodecDescription {
    /// The name as `a=rtpmap` writes it after the payload type: "PCMU/8000", "opus/48000/2".
    package var rtpmap: String {
        rtpmapChannelCount == 1 ? "\(name)/\(clockRate)" : "\(name)/\(clockRate)/\(rtpmapChannelCount)"
    }

    /// Why no call can be made with a codec of this description; nil when one can.
    ///
    /// What comes from the network is divided by rates and durations on the media thread, so they are checked before.
    var defect: String? {
        if name.isEmpty || !name.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x2F }) {
            return "its name is not made of visible ASCII characters other than '/'"
        }
        if !(1000...384_000).contains(clockRate) { return "its clock rate is \(clockRate) Hz, not 1000 to 384000" }
        if !(1000...384_000).contains(format.sampleRate) {
            return "its sample rate is \(format.sampleRate) Hz, not 1000 to 384000"
        }
        if !(1...8).contains(format.channelCount) || !(1...8).contains(rtpmapChannelCount) {
            return "it has \(format.channelCount) channels, not 1 to 8"
        }
        if let type = staticPayloadType, type > 127 { return "its payload type is \(type), not 0 to 127" }
        if ptimes.lowerBound <= .zero || ptimes.upperBound > .milliseconds(200) || !ptimes.contains(defaultPtime) {
            return "its packets do not last more than 0 and at most 200 ms"
        }
        if ptimeStep < .milliseconds(1) { return "the lengths of its packets are less than 1 ms apart" }
        return nil
    }

    /// Frames in a packet of `ptime`, or of the default.
    ///
    /// - Throws: `CodecError` when `ptime` is outside `ptimes` or holds no whole number of frames.
    func frameCount(in ptime: Duration?) throws(CodecError) -> Int {
        let ptime = ptime ?? defaultPtime
        let frameCount = format.frameCount(in: ptime)
        guard ptimes.contains(ptime), format.duration(ofFrames: frameCount) == ptime else {
            let low = Int(ptimes.lowerBound.milliseconds)
            let high = Int(ptimes.upperBound.milliseconds)
            throw CodecError(
                .unsupportedConfiguration,
                "\(rtpmap) has no packets of \(ptime.milliseconds) ms. Ask for \(low) to \(high) ms in steps of "
                    + "\(Int(ptimeStep.milliseconds)) ms."
            )
        }
        return frameCount
    }

    /// The ptime that is nearest to `wish`, of those that encoders take; the shorter of two that are as near.
    ///
    /// One above `limit` is chosen only where there is no other.
    /// Units: `wish` and `limit` are in ms.
    func ptime(nearest wish: Int, limit: Int?) -> Duration {
        let (least, most, step) = (ptimes.lowerBound.nanoseconds, ptimes.upperBound.nanoseconds, ptimeStep.nanoseconds)
        let limit = min(limit.map { Duration.milliseconds($0).nanoseconds } ?? most, most)
        let wish = min(Duration.milliseconds(wish).nanoseconds, limit)
        let shorter = min(max(wish / step * step, least), most)
        let longer = (shorter / step + 1) * step
        let isLonger = longer - wish < wish - shorter && longer <= limit
        return .nanoseconds(isLonger ? longer : shorter)
    }

    /// Refuses a channel count that the payload cannot carry.
    ///
    /// - Throws: `CodecError` unless `channelCount` is that of `format`.
    func checkChannelCount(_ channelCount: Int) throws(CodecError) {
        guard channelCount == format.channelCount else {
            throw CodecError(
                .unsupportedConfiguration,
                "\(rtpmap) carries \(format.channelCount) channels, not \(channelCount). "
                    + "Ask for \(format.channelCount), and convert before the encoder or after the decoder."
            )
        }
    }
}
