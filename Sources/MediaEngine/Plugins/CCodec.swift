internal import CMediaPlugin

/// Why a C plugin's codec was refused.
struct CPluginError: Error {
    let message: String
}

/// A codec whose work is done by a C plugin's callbacks.
///
/// What the callbacks answer is checked against the room that they were given.
struct CCodec: AudioCodec, @unchecked Sendable {
    let description: CodecDescription
    private let callbacks: ms_codec
    private let parameters: String

    /// Copies and checks a description.
    init(checking pointer: UnsafePointer<ms_codec>?) throws(CPluginError) {
        guard let pointer else { throw CPluginError(message: "The codec's description is NULL.") }
        // A description of another version may be shorter: nothing behind these two fields is read before they are
        // known.
        let raw = UnsafeRawPointer(pointer)
        let version = raw.loadUnaligned(as: UInt32.self)
        let size = raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
        guard version == UInt32(MS_PLUGIN_ABI_VERSION), size >= MemoryLayout<ms_codec>.size else {
            throw CPluginError(
                message: "It was built for plugin ABI \(version) with \(size) bytes per codec, not "
                    + "\(MS_PLUGIN_ABI_VERSION) with \(MemoryLayout<ms_codec>.size). Build it again."
            )
        }
        let codec = pointer.pointee
        guard let name = CString.token(codec.name) else {
            throw CPluginError(message: "The codec's name is not 1 to 32 letters, digits, '-', '_', '.' or '+'.")
        }
        guard let parameters = codec.fmtp == nil ? "" : CString.line(codec.fmtp) else {
            throw CPluginError(message: "\(name): the format parameters are not one line of at most 500 characters.")
        }
        guard
            codec.new_encoder != nil, codec.encode != nil, codec.free_encoder != nil, codec.new_decoder != nil,
            codec.frame_count != nil, codec.decode != nil, codec.free_decoder != nil
        else { throw CPluginError(message: "\(name): a callback other than conceal and reset is NULL.") }
        description = try Self.description(of: codec, name: name)
        callbacks = codec
        self.parameters = parameters
    }

    private static func description(of codec: ms_codec, name: String) throws(CPluginError) -> CodecDescription {
        try check(Int(codec.sample_rate), in: 8000...192_000, step: 100, "\(name): sample rate in Hz")
        try check(Int(codec.clock_rate), in: 1000...192_000, step: 100, "\(name): clock rate in Hz")
        try check(Int(codec.channels), in: 1...2, step: 1, "\(name): channel count")
        try check(Int(codec.ptime_ms), in: 10...120, step: 10, "\(name): audio per packet in ms")
        try check(Int(codec.static_payload_type), in: -1...127, step: 1, "\(name): payload type")
        return CodecDescription(
            name: name,
            clockRate: Int(codec.clock_rate),
            format: AudioFormat(sampleRate: Int(codec.sample_rate), channelCount: Int(codec.channels)),
            staticPayloadType: UInt8(exactly: codec.static_payload_type),
            defaultPtime: .milliseconds(Int(codec.ptime_ms))
        )
    }

    private static func check(
        _ value: Int,
        in range: ClosedRange<Int>,
        step: Int,
        _ what: String
    ) throws(CPluginError) {
        guard !range.contains(value) || value % step != 0 else { return }
        let steps = step == 1 ? "" : " in steps of \(step)"
        throw CPluginError(message: "\(what) \(value) is not \(range.lowerBound) to \(range.upperBound)\(steps).")
    }

    func receiveParameters(for configuration: EncoderConfiguration) -> String { parameters }

    func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
        try description.checkChannelCount(configuration.channelCount)
        let frameCount = try description.frameCount(in: configuration.ptime)
        let encoder = configuration.remoteParameters.withCString { parameters -> UnsafeMutableRawPointer? in
            var options = ms_encoder_options()
            options.size = UInt32(MemoryLayout<ms_encoder_options>.size)
            options.frame_count = UInt32(clamping: frameCount)
            options.channels = UInt32(clamping: description.format.channelCount)
            options.bitrate = UInt32(clamping: configuration.bitrate ?? 0)
            options.complexity = UInt32(clamping: min(configuration.complexity, 10))
            options.uses_fec = configuration.usesFEC ? 1 : 0
            options.expected_loss_percent = UInt32(clamping: min(configuration.expectedLossPercent, 100))
            options.uses_dtx = configuration.usesDTX ? 1 : 0
            options.remote_fmtp = parameters
            return callbacks.new_encoder(callbacks.user, &options)
        }
        guard let encoder else { throw failure("encoder") }
        return CEncoder(callbacks, encoder, format: description.format, frameCount: frameCount)
    }

    func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
        try description.checkChannelCount(channelCount)
        guard let decoder = callbacks.new_decoder(callbacks.user, UInt32(clamping: channelCount)) else {
            throw failure("decoder")
        }
        let wrapped = CDecoder(callbacks, decoder, format: description.format)
        return callbacks.conceal == nil ? ConcealingDecoder(wrapped) : wrapped
    }

    private func failure(_ what: String) -> CodecError {
        CodecError(
            .libraryFailure,
            "The plugin made no \(what) for \(description.rtpmap). Choose another codec, or mend the plugin."
        )
    }
}

private final class CEncoder: AudioEncoder {
    let format: AudioFormat
    let frameCount: Int
    private let callbacks: ms_codec
    private let encoder: UnsafeMutableRawPointer

    init(_ callbacks: ms_codec, _ encoder: UnsafeMutableRawPointer, format: AudioFormat, frameCount: Int) {
        self.callbacks = callbacks
        self.encoder = encoder
        self.format = format
        self.frameCount = frameCount
    }

    deinit {
        callbacks.free_encoder(encoder)
    }

    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
        guard samples.count == frameCount &* format.channelCount else { return 0 }
        let room = min(payload.count, PacketBatch.maximumPayloadByteCount)
        let frames = UInt32(truncatingIfNeeded: frameCount)
        let answer = samples.withUnsafeBufferPointer { input in
            payload.withUnsafeMutableBufferPointer { output in
                callbacks.encode(
                    encoder,
                    input.baseAddress,
                    frames,
                    output.baseAddress,
                    UInt32(truncatingIfNeeded: room)
                )
            }
        }
        return answer >= 0 && Int(answer) <= room ? Int(answer) : 0
    }
}

private final class CDecoder: AudioDecoder, PayloadDecoder {
    let format: AudioFormat
    private let callbacks: ms_codec
    private let decoder: UnsafeMutableRawPointer

    init(_ callbacks: ms_codec, _ decoder: UnsafeMutableRawPointer, format: AudioFormat) {
        self.callbacks = callbacks
        self.decoder = decoder
        self.format = format
    }

    deinit {
        callbacks.free_decoder(decoder)
    }

    func frameCount(of payload: Span<UInt8>) -> Int {
        guard payload.count > 0, payload.count <= PacketBatch.maximumPayloadByteCount else { return 0 }
        let answer = payload.withUnsafeBufferPointer { bytes in
            callbacks.frame_count(decoder, bytes.baseAddress, UInt32(truncatingIfNeeded: bytes.count))
        }
        // More than a second of audio in one packet is not believed.
        return answer >= 0 && Int(answer) <= format.sampleRate ? Int(answer) : 0
    }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        let room = samples.count / format.channelCount
        let expected = frameCount(of: payload)
        guard expected > 0, expected <= room else { return 0 }
        let answer = payload.withUnsafeBufferPointer { bytes in
            samples.withUnsafeMutableBufferPointer { output in
                callbacks.decode(
                    decoder,
                    bytes.baseAddress,
                    UInt32(truncatingIfNeeded: bytes.count),
                    output.baseAddress,
                    UInt32(truncatingIfNeeded: room)
                )
            }
        }
        return answer >= 0 && Int(answer) <= room ? Int(answer) : 0
    }

    func conceal(frameCount: Int, into samples: inout MutableSpan<Int16>) {
        let wanted = min(frameCount, samples.count / format.channelCount)
        guard wanted > 0 else { return }
        samples.withUnsafeMutableBufferPointer { output in
            guard let base = output.baseAddress else { return }
            let answer = callbacks.conceal?(decoder, base, UInt32(truncatingIfNeeded: wanted)) ?? 0
            let written = answer >= 0 && Int(answer) <= wanted ? Int(answer) : 0
            let rest = (wanted &- written) &* format.channelCount
            (base + written &* format.channelCount).update(repeating: 0, count: rest)
        }
    }

    func reset() {
        callbacks.reset?(decoder)
    }
}
