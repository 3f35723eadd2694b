internal import CallBasics
import MediaEngine
import MediaTransport
import SDP

/// What `receive` is to listen for, from a session description or from options, which win.
struct ReceivedStream {
    /// Where to listen.
    let local: SocketAddress
    /// The codec.
    let codec: CodecDescription
    /// Codec and payload types.
    let agreement: MediaAgreement
    /// What secures the links, and by which suite; nil for a stream in the clear.
    let security: (path: SecurePath, suite: SRTPSuite)?
    /// Channels of the sound.
    let channelCount: Int

    /// The stream of a description, or of options alone.
    ///
    /// - Throws: `SDPError`, `CodecError`, `EngineError` or `ToolFailure` when the description or the codec is no good.
    init(
        sdpPath: String?,
        port: UInt16,
        codec: String?,
        payloadType: UInt8?,
        redPayloadType: UInt8?,
        registry: PluginRegistry
    ) throws {
        var agreement: MediaAgreement
        var security: (path: SecurePath, suite: SRTPSuite)?
        if let sdpPath {
            let offer = try DescribedStream.read(sdpPath)
            let described = try DescribedStream(offer, of: sdpPath, codec: codec, payloadType: payloadType, registry)
            (agreement, security) = (described.agreement, described.security)
            local = described.local
            if let payloadType {
                agreement.codec?.payloadType = payloadType
                agreement.codec?.receivedPayloadType = payloadType
            }
        } else {
            agreement = MediaAgreement()
            agreement.codec = AgreedCodec(codec ?? "opus", payloadType: payloadType)
            agreement.telephoneEvents = [101, 102, 103].first { $0 != payloadType && $0 != redPayloadType }
                .map { AgreedEvents(payloadType: $0) }
            agreement.multiplexesControl = false
            local = SocketAddress(ipv4: 0, port: port)
        }
        if let redPayloadType {
            agreement.redPayloadType = redPayloadType
            agreement.receivedREDPayloadType = redPayloadType
        }
        agreement.direction = .receiveOnly
        let found = try registry.codec(named: agreement.codec?.name ?? "opus").description
        channelCount = agreement.codec?.receivedChannelCount ?? found.format.channelCount
        self.codec = found
        (self.agreement, self.security) = (agreement, security)
    }
}
