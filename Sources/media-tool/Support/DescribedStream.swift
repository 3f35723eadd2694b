import CallBasics
import MediaEngine
import MediaTransport
import SDP

/// The stream that a session description announces, answered as an offer.
struct DescribedStream {
    /// Where it goes to, on any of this machine's addresses.
    let local: SocketAddress
    /// What whoever takes it agrees on, which names no address.
    let agreement: MediaAgreement
    /// What secures the links of whoever takes it, and by which suite; nil for a stream in the clear.
    let security: (path: SecurePath, suite: SRTPSuite)?

    /// What `offer` agrees on by its first codec that is here, or by the one asked for; errors name it by `path`.
    ///
    /// - Throws: `SDPError`, `CodecError`, `EngineError` or `ToolFailure` when it is no good, or has no such codec.
    init(
        _ offer: SessionDescription,
        of path: String,
        codec: String?,
        payloadType: UInt8? = nil,
        _ registry: PluginRegistry
    ) throws {
        guard let audio = offer.media.first(where: { $0.kind == "audio" }) else {
            throw ToolFailure("\(path) describes no audio. Name a description with a line `m=audio`.")
        }
        guard audio.port > 0 else {
            throw ToolFailure("\(path) names port 0: the stream was refused. Name the port that audio goes to.")
        }
        local =
            (audio.host ?? "").contains(":")
            ? SocketAddress(ipv6High: 0, low: 0, port: audio.port) : SocketAddress(ipv4: 0, port: audio.port)
        let names = try Self.names(in: audio, path, codec, payloadType, registry)
        var medium = MediaConfiguration(
            port: audio.port,
            formats: try registry.payloadFormats(for: names, hasRedundancy: true)
        )
        medium.direction = .receiveOnly
        if audio.transport.hasKeysInDescription {
            var generator = SystemRandomNumberGenerator()
            medium.secure(by: SDESKeys(using: &generator))
        }
        var session = OfferAnswer(
            configuration: SessionConfiguration(address: local.host, media: [medium]),
            sessionID: 1
        )
        do throws(SDPError) {
            try session.receiveOffer(offer)
            _ = try session.makeAnswer()
        } catch {
            guard error.code == .notAcceptable else { throw error }
            throw audio.transport.hasKeysInDescription ? Self.unusable(audio, path) : Self.unknown(audio, path)
        }
        guard let media = session.agreed?.audio else { throw Self.unknown(audio, path) }
        let keys = media.keys.flatMap { SDESAgreement($0) }
        var agreement = try MediaAgreement(media, in: registry, isSecured: keys != nil)
        // One codec is heard; whoever sends is heard, for the description tells where to, and not from where.
        agreement.acceptedCodecs = []
        (agreement.remote, agreement.remoteControl) = (nil, nil)
        self.agreement = agreement
        security = keys.map { keys in
            let path = SecurePath()
            // Who announces a stream takes no key of ours: reports stay here.
            path.offer(sending: nil, receiving: keys.receiving)
            return (path, keys.suite)
        }
    }

    /// The description at `path`; where sound goes to by name is of no interest here.
    static func read(_ path: String) throws -> SessionDescription {
        let bytes = try TextFile.read(path, limit: SessionDescription.Limits.byteCount)
        let description = try SessionDescription(parsing: bytes.span)
        guard let host = description.media.first(where: { $0.kind == "audio" })?.host,
            SocketAddress(host: host, port: 1) == nil
        else { return description }
        return try SessionDescription(parsing: description.description.replacing(" \(host)", with: " 0.0.0.0"))
    }

    /// The codecs to answer with: the one that was asked for, or all that are here.
    private static func names(
        in audio: MediaDescription,
        _ path: String,
        _ codec: String?,
        _ payloadType: UInt8?,
        _ registry: PluginRegistry
    ) throws -> [String] {
        let formats = codecs(audio)
        if let codec {
            let bare = codec.split(separator: "/").first.map(String.init) ?? codec
            guard formats.contains(where: { $0.isNamed(bare) }) else {
                throw ToolFailure("\(path) has no codec \(codec). It has: \(offered(audio)).")
            }
            return [codec]
        }
        if let payloadType {
            guard let format = formats.first(where: { $0.payloadType == payloadType }) else {
                throw ToolFailure("\(path) has no payload type \(payloadType). It has: \(offered(audio)).")
            }
            return [name(format)]
        }
        guard !formats.isEmpty else {
            throw ToolFailure("\(path) describes no codec, only telephone events. Add a line `a=rtpmap` with one.")
        }
        return registry.codecs.filter(\.isEnabled).map(\.description.rtpmap)
    }

    private static func codecs(_ audio: MediaDescription) -> [PayloadFormat] {
        audio.formats.filter { format in !["telephone-event", "red", "CN"].contains { format.isNamed($0) } }
    }

    private static func offered(_ audio: MediaDescription) -> String {
        codecs(audio).map { "\(name($0)) as \($0.payloadType)" }.joined(separator: ", ")
    }

    /// A secured stream has to have a key, too.
    private static func unusable(_ audio: MediaDescription, _ path: String) -> ToolFailure {
        let suites = audio.keyingAttributes.cryptoLines.map(\.suite)
        guard !suites.isEmpty else {
            return ToolFailure("\(path) is of \(audio.transport.name), and has no key. Add its line `a=crypto`.")
        }
        return ToolFailure(
            "\(path) has no codec that is here, or no key that can be used. It has: \(offered(audio)); "
                + "\(suites.joined(separator: ", "))."
        )
    }

    private static func unknown(_ audio: MediaDescription, _ path: String) -> ToolFailure {
        ToolFailure("\(path) has no codec that is here; `media-tool codecs` lists them. It has: \(offered(audio)).")
    }

    /// As `a=rtpmap` writes it, so that the registry finds the very one.
    private static func name(_ format: PayloadFormat) -> String {
        "\(format.encodingName)/\(format.clockRate)" + (format.channelCount > 1 ? "/\(format.channelCount)" : "")
    }
}
