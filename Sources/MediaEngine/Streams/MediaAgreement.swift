public import CallBasics
public import RTP
public import SDP

/// Which way a call's sound flows, as both sides agreed (RFC 3264, section 5.1), seen from here.
///
/// It is apart from hold and mute, which are this side's own wishes.
public typealias MediaDirection = SDP.MediaDirection

/// A codec that both sides agreed on.
public struct AgreedCodec: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The codec's name, as in `a=rtpmap`: "opus", "PCMU", "G722".
    public var name: String
    /// The payload type that it is sent with; nil takes the static one, or 96.
    public var payloadType: UInt8?
    /// The payload type that it comes with, where the other side's number is another.
    package var receivedPayloadType: UInt8?
    /// What the other side takes, as in its `a=fmtp` after the payload type; "" when it said nothing.
    public var parameters = ""
    /// Channels of the sound that the other side is likely to send; nil where it has not told.
    ///
    /// Opus alone tells (`sprop-stereo`; RFC 7587, section 6.1). A call hears as many as `EncoderConfiguration.channelCount` of
    /// its stream says: who wants both sets that, and accepts no other codec of one channel.
    package var receivedChannelCount: Int?

    /// The codec called `name`, as `payloadType`.
    public init(_ name: String, payloadType: UInt8? = nil) {
        self.name = name
        self.payloadType = payloadType
    }

    /// The codec of that name, with its usual payload type.
    public init(stringLiteral name: String) {
        self.init(name)
    }
}

/// Telephone events (RFC 4733) that both sides agreed on.
public struct AgreedEvents: Sendable, Hashable {
    /// The payload type that they are sent with, 0 to 127.
    public var payloadType: UInt8
    /// The payload type that they come with, where the other side's number is another.
    package var receivedPayloadType: UInt8?
    /// The clock rate of their time stamps, in Hz; nil is the codec's.
    public var clockRate: Int?
    /// Further payload types that they come with, each with its clock rate in Hz.
    ///
    /// Browsers send keys by those of 8000 Hz beside any codec, where both were agreed on.
    package var furtherReceived: [UInt8: Int] = [:]

    /// Events as `payloadType`.
    public init(payloadType: UInt8, clockRate: Int? = nil) {
        self.payloadType = payloadType
        self.clockRate = clockRate
    }
}

/// What both sides agreed on for a call's sound: what signalling decides, and may change while the call runs.
///
/// See `Call.update(_:)`; for what a session description agrees on `MediaAgreement.init(_:in:)`.
public struct MediaAgreement: Sendable, Hashable {
    /// The codec that is sent, and taken; nil while nothing is agreed: then no sound is sent, and none is taken.
    public var codec: AgreedCodec? = "opus"
    /// Further codecs that are taken, so that the other side may change to them in the middle.
    ///
    /// What they give is brought to the rate of `codec`.
    public var acceptedCodecs: [AgreedCodec] = []
    /// Telephone events; nil sends and takes none.
    public var telephoneEvents: AgreedEvents? = AgreedEvents(payloadType: 101)
    /// The payload type of comfort noise (RFC 3389), which is taken and not sent; nil takes none.
    ///
    /// The static 13 counts at 8000 Hz, and is left alone where neither `codec` nor an accepted one does. Other numbers
    /// count as `codec` does.
    public var comfortNoisePayloadType: UInt8? = 13
    /// The payload type of redundant audio (RED, RFC 2198); nil sends and takes none.
    public var redPayloadType: UInt8?
    /// The payload type that redundant audio comes with, where the other side's number is another.
    package var receivedREDPayloadType: UInt8?
    /// Audio in each packet that is sent; nil takes the codec's default.
    public var packetTime: Duration?
    /// Which way sound flows.
    public var direction = MediaDirection.sendReceive
    /// Where the other side takes RTP; nil waits for packets and answers to where they come from.
    ///
    /// A link-local IPv6 address without an interface, as of a session description, is taken to be on that of the call's
    /// own address.
    public var remote: SocketAddress?
    /// Where the other side takes RTCP, when it has a port of its own; nil is the port after RTP's.
    public var remoteControl: SocketAddress?
    /// Whether RTP and RTCP share one port (RFC 5761); if not, the call's own ports must be two (`noControlPort`).
    public var multiplexesControl = true
    /// Whether RTP and RTCP go back to where the source that is heard sends from (RFC 4961), whatever `remote` says.
    ///
    /// Not where a program in the middle passes packets on one way only.
    public var isSymmetric = true
    /// How freely the other side's address is learnt.
    public var sourceRules = RemoteSourceRules()
    /// Whether SRTP was agreed on: then the call's links must be secured (`CallConfiguration.security`), and otherwise not.
    package var isSecured = false
    /// Another one than before sends as another source (SSRC): who takes the other side's place by SRTP knows nothing of this one.
    package var sourceNumber = 0

    /// Opus both ways, with telephone events and comfort noise, to an address that is to be learnt.
    public init() {}

    /// Nothing agreed yet: the ports are open, and no sound flows.
    public static var nothing: MediaAgreement {
        var agreement = MediaAgreement()
        agreement.codec = nil
        return agreement
    }
}
