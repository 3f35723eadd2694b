/// What we want of a session: from it offers and answers are built.
///
/// Wishes only: what was agreed is `AgreedSession`. Line breaks and other control characters in its texts are refused when
/// a description is built.
public struct SessionConfiguration: Hashable, Sendable {
    /// How our own side holds a call.
    public enum Hold: Sendable {
        /// The other side still hears us, music for example: sendonly.
        case withMusic
        /// Nothing flows: inactive.
        case silent
    }

    /// Whose order decides which format an answer prefers.
    public enum FormatOrder: Sendable {
        /// The offerer's, as RFC 3264, section 6.1, recommends.
        case offerer
        /// That of our configuration.
        case ours
    }

    /// The address, or the name, that media comes to.
    public var address: String
    /// Our name in the o= line, or "-" for none; that of the first description stays.
    public var userName = "-"
    /// The session's name in the s= line; "-" for none.
    public var sessionName = "-"
    /// The media, in the order of an offer; a medium keeps its place in this list for the life of the session.
    public var media: [MediaConfiguration]
    /// Whether, and how, our side holds the session.
    public var hold: Hold?
    /// Which format our answers prefer.
    public var formatOrder = FormatOrder.offerer
    /// Further attributes of the session.
    package var attributes: [SDPAttribute] = []

    /// A session at `address` of `media`.
    public init(address: String, media: [MediaConfiguration]) {
        self.address = address
        self.media = media
    }
}

/// What we want of one medium.
public struct MediaConfiguration: Hashable, Sendable {
    /// What it is, such as "audio"; only media of this kind are taken for it.
    public var kind = "audio"
    /// The port that media comes to; 0 turns the medium off.
    public var port: UInt16
    /// The port that RTCP comes to when it does not share RTP's; nil for the next one.
    public var controlPort: UInt16?
    /// What we send and take, the preferred one first: codecs, telephone events, comfort noise, redundancy.
    ///
    /// Numbers of dynamic types are wishes: an answer has those of the offer, and a number that means something else
    /// in this session already is replaced by a free one.
    public var formats: [PayloadFormat]
    /// Audio for each packet that we want to get, in ms; nil leaves it to the codec.
    public var packetTime: Int?
    /// The most audio for each packet that we take, in ms; nil leaves it to the codec.
    public var maximumPacketTime: Int?
    /// Which way media may flow; a hold narrows it.
    public var direction = MediaDirection.sendReceive
    /// Whether RTP and RTCP may share one port; they do when the other side wants it, too.
    public var isMultiplexed = true
    /// How media may travel: the first is offered, the others are taken, too, and earlier ones rather than later ones.
    ///
    /// What was agreed by a secured one is not taken in the clear later.
    package var protocols: [MediaProtocol] = [.rtpAVP, .rtpAVPF]
    /// Own keys that RTP/SAVP and RTP/SAVPF are offered and answered with (SDES), the preferred line first.
    ///
    /// Without any, `attributes` have them.
    package var keys: [CryptoAttribute] = []
    /// Further own keys, which answer and are not offered.
    package var answeringKeys: [CryptoAttribute] = []
    /// The own certificate, by which UDP/TLS/RTP/SAVP and UDP/TLS/RTP/SAVPF are offered and answered (DTLS-SRTP).
    ///
    /// Without one, `attributes` have it.
    package var certificate: OwnCertificate?
    /// Whether a medium that was agreed on goes on with keys from where they came, or in the clear, and is not taken otherwise.
    package var keepsKeying = false
    /// Our side of ICE, with which the medium is offered, and taken from those who have it, too; nil for none.
    package var ice: OwnICE?
    /// What the medium may take on the wire, in bit/s; nil says nothing.
    public var maximumBitRate: Int?
    /// Further attributes.
    public var attributes: [SDPAttribute] = []

    /// Audio to `port` in one of `formats`.
    public init(port: UInt16, formats: [PayloadFormat]) {
        self.port = port
        self.formats = formats
    }

    func isOfKind(_ kind: String) -> Bool { self.kind.isNamed(kind) }

    /// Our side of ICE for media that travels by `transport`: where there is a certificate, that alone has a way by ICE.
    func ice(by transport: MediaProtocol) -> OwnICE? { certificate == nil || transport.usesDTLS ? ice : nil }

    /// Whether it may be in a group of one transport: with ICE alone, and not where attributes name it otherwise.
    func mayBeBundled(by transport: MediaProtocol) -> Bool {
        ice(by: transport) != nil && isMultiplexed && !attributes.contains { $0.name.isNamed("mid") }
    }

    /// The port of RTCP, where it is not the one that all expect.
    var toldControlPort: UInt16? { controlPort.flatMap { $0 == port &+ 1 ? nil : $0 } }

    /// The direction that we wish, with the hold.
    func direction(hold: SessionConfiguration.Hold?) -> MediaDirection {
        switch hold {
        case nil: direction
        case .withMusic: MediaDirection(sends: direction.sends, receives: false)
        case .silent: .inactive
        }
    }
}
