import CallBasics

extension CodecDescription {
    /// The name as `a=rtpmap` writes it after the payload type: "PCMU/8000", "opus/48000/2".
    public var rtpmap: String {
        rtpmapChannelCount == 1 ? "\(name)/\(clockRate)" : "\(name)/\(clockRate)/\(rtpmapChannelCount)"
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
                "\(rtpmap) has no packets of \(ptime.milliseconds) ms. Ask for \(low) to \(high) ms in steps of 10 ms."
            )
        }
        return frameCount
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
