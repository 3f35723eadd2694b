import MediaEngine

/// What `receive` is to listen for, from a session description or from options, which win.
struct ReceivedStream {
    /// Where to listen.
    let local: SocketAddress
    /// Whether RTCP shares the port.
    let isMultiplexed: Bool
    /// The codec.
    let codec: CodecDescription
    /// Codec and payload types.
    let stream: AudioStreamConfiguration

    /// - Throws: `SessionDescriptionError`, `CodecError` or `ToolFailure` when the description or the codec is no good.
    init(
        sdpPath: String?,
        port: UInt16,
        codec: String?,
        payloadType: UInt8?,
        redPayloadType: UInt8?,
        registry: PluginRegistry
    )
        throws
    {
        var stream = AudioStreamConfiguration()
        stream.payloadType = payloadType
        stream.redPayloadType = redPayloadType
        guard let sdpPath else {
            local = Self.anyAddress(isIPv6: false, port: port)
            isMultiplexed = false
            let found = try registry.codec(named: codec ?? "opus").description
            stream.codec = codec ?? "opus"
            stream.encoder.channelCount = found.format.channelCount
            stream.telephoneEventPayloadType = [101, 102, 103].first { $0 != payloadType && $0 != redPayloadType }
            self.codec = found
            self.stream = stream
            return
        }
        let bytes = try TextFile.read(sdpPath, limit: SessionDescription.maximumByteCount)
        let description = try SessionDescription(parsing: bytes)
        guard description.port > 0 else {
            throw ToolFailure("\(sdpPath) names port 0: the stream was refused. Name the port that audio goes to.")
        }
        local = Self.anyAddress(isIPv6: description.host.contains(":"), port: description.port)
        isMultiplexed = description.isMultiplexed
        let format = try Self.choose(description, sdpPath, codec, payloadType, registry)
        let events = description.formats.first { other in
            other.isNamed("telephone-event") && other.clockRate == format.clockRate
        }
        stream.codec = Self.name(format)
        stream.payloadType = payloadType ?? format.payloadType
        stream.telephoneEventPayloadType = events?.payloadType
        stream.redPayloadType = redPayloadType ?? description.redundancy(of: format)?.payloadType
        let found = try registry.codec(named: stream.codec).description
        let isStereo = format.isNamed("opus") && (format.parameters ?? "").contains("sprop-stereo=1")
        stream.encoder.channelCount = isStereo ? 2 : found.format.channelCount
        self.codec = found
        self.stream = stream
    }

    /// The format that was asked for, or the first whose codec is there.
    private static func choose(
        _ description: SessionDescription,
        _ path: String,
        _ codec: String?,
        _ payloadType: UInt8?,
        _ registry: PluginRegistry
    ) throws -> PayloadFormat {
        let audio = description.formats.filter { !$0.isNamed("telephone-event") && !$0.isNamed("red") }
        let offered = audio.map { "\(name($0)) as \($0.payloadType)" }.joined(separator: ", ")
        if let codec {
            let bare = codec.split(separator: "/").first.map(String.init) ?? codec
            guard let format = audio.first(where: { $0.isNamed(bare) }) else {
                throw ToolFailure("\(path) has no codec \(codec). It has: \(offered).")
            }
            return format
        }
        if let payloadType {
            guard let format = audio.first(where: { $0.payloadType == payloadType }) else {
                throw ToolFailure("\(path) has no payload type \(payloadType). It has: \(offered).")
            }
            return format
        }
        let known = registry.codecs.filter(\.isEnabled).map { $0.description.rtpmap.lowercased() }
        if let format = audio.first(where: { known.contains(name($0).lowercased()) }) { return format }
        guard let first = audio.first else {
            throw ToolFailure("\(path) describes no codec, only telephone events. Add a line `a=rtpmap` with one.")
        }
        return first
    }

    /// As `a=rtpmap` writes it, so that the registry finds the very one.
    private static func name(_ format: PayloadFormat) -> String {
        "\(format.encodingName)/\(format.clockRate)" + (format.channelCount > 1 ? "/\(format.channelCount)" : "")
    }

    private static func anyAddress(isIPv6: Bool, port: UInt16) -> SocketAddress {
        isIPv6 ? SocketAddress(ipv6High: 0, low: 0, port: port) : SocketAddress(ipv4: 0, port: port)
    }
}
