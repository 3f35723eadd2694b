/// What both sides agreed on: the result of a completed exchange of offer and answer.
public struct AgreedSession: Hashable, Sendable {
    /// The media that both take, in the order of their m= lines; refused ones are not here.
    public let media: [AgreedMedia]
    /// Our description in the exchange.
    package let local: SessionDescription
    /// The other side's.
    package let remote: SessionDescription

    /// The first audio; nil when none was agreed.
    public var audio: AgreedMedia? { media.first { $0.kind == "audio" } }

    /// What is not as it was in `earlier`, by the place of the m= line; empty when nothing that matters changed.
    ///
    /// A new medium has `started` alone; one that is gone has `ended` alone.
    public func changes(since earlier: AgreedSession?) -> [Int: Set<MediaChange>] {
        var changes: [Int: Set<MediaChange>] = [:]
        for medium in earlier?.media ?? [] { changes[medium.lineIndex] = [.ended] }
        for medium in media {
            let before = earlier?.media.first { $0.lineIndex == medium.lineIndex && $0.kind == medium.kind }
            let found = before.map(medium.changes(since:)) ?? [.started]
            changes[medium.lineIndex] = found.isEmpty ? nil : found
        }
        return changes
    }
}

/// What changed in a medium from one agreement to the next.
public enum MediaChange: Sendable {
    /// The medium is new, or back after it was refused.
    case started
    /// The medium was refused, or turned off.
    case ended
    /// Where we take media or RTCP.
    case localAddress
    /// Where media or RTCP goes to.
    case remoteAddress
    /// How media travels, or whether RTP and RTCP share a port.
    case transport
    /// The format that we send with.
    case sendCodec
    /// What else we may send: other codecs, telephone events, comfort noise, redundancy.
    case sendFormats
    /// What we take.
    case receiveFormats
    /// Audio for each packet that we send.
    case packetTime
    /// Which way media flows.
    case direction
    /// Who holds the session.
    case hold
    /// What media may take on the wire.
    case bitRate
    /// Attributes of keys and of the path, on either side.
    case security
}

/// One medium that both sides take, as an engine needs it.
public struct AgreedMedia: Hashable, Sendable {
    /// An address, or a name, and a port.
    public struct Address: Hashable, Sendable {
        /// The address, or the name.
        public let host: String
        /// The port.
        public let port: UInt16
    }

    /// Payload formats of one direction, each list in order of preference.
    public struct Formats: Hashable, Sendable {
        /// Codecs; the first is the one to send.
        public internal(set) var codecs: [PayloadFormat] = []
        /// Telephone events, one for each clock rate; their parameters are events that both sides know.
        public internal(set) var telephoneEvents: [PayloadFormat] = []
        /// Comfort noise, one for each clock rate.
        package internal(set) var comfortNoise: [PayloadFormat] = []
        /// Redundant audio, by the types that it repeats.
        package internal(set) var redundancy: [PayloadFormat] = []
    }

    /// The place of its m= line, from 0.
    public internal(set) var lineIndex: Int
    /// The place in `SessionConfiguration.media` of what we asked for.
    package internal(set) var configurationIndex: Int
    /// What it is, in lower case: "audio".
    public internal(set) var kind: String
    /// How it travels.
    package internal(set) var transport: MediaProtocol
    /// Where we take media.
    public internal(set) var local: Address
    /// Where we take RTCP.
    public internal(set) var localControl: Address
    /// Where media goes to; nil while the other side has told no address that can be sent to.
    ///
    /// A side that holds by the address 0.0.0.0 keeps the one that it had.
    public internal(set) var remote: Address?
    /// Where RTCP goes to; nil with `remote`.
    package internal(set) var remoteControl: Address?
    /// Whether RTP and RTCP share one port.
    package internal(set) var isMultiplexed: Bool
    /// What we may send, with the other side's numbers and parameters.
    public internal(set) var sending: Formats
    /// What we take, with our numbers and parameters.
    public internal(set) var receiving: Formats
    /// Audio for each packet that the other side wants to get, or else that we want, in ms; nil leaves it to the codec.
    package internal(set) var packetTime: Int?
    /// The most audio for each packet that the other side takes, in ms; nil leaves it to the codec.
    package internal(set) var maximumPacketTime: Int?
    /// What media may take on the wire towards the other side, in bit/s; nil when it says nothing.
    public internal(set) var maximumBitRate: Int?
    /// Which way media flows, seen from us.
    public internal(set) var direction: MediaDirection
    /// Whether we hold the session.
    public internal(set) var isHeldLocally: Bool
    /// Whether the other side wants no media from us, as one that holds the session; it may also be unable to play it.
    public internal(set) var isHeldRemotely: Bool
    /// What our description says of keys and of the path: crypto, fingerprint, setup, ice-ufrag, candidate, mid and the like.
    public internal(set) var localSecurity: [SDPAttribute]
    /// What the other side's says of them; attributes of the session are among them.
    public internal(set) var remoteSecurity: [SDPAttribute]
    /// The keys of both sides; nil unless the descriptions have them.
    package internal(set) var keys: AgreedKeys?
    /// How keys are made by DTLS; nil unless the descriptions have fingerprints.
    package internal(set) var association: AgreedAssociation?
    /// How the other side finds the way; nil when it goes to the address of our description.
    package internal(set) var ice: AgreedICE?

    func changes(since earlier: AgreedMedia) -> Set<MediaChange> {
        var changes: Set<MediaChange> = []
        func note(_ change: MediaChange, _ isSame: Bool) {
            if !isSame { changes.insert(change) }
        }
        note(.localAddress, local == earlier.local && localControl == earlier.localControl)
        note(.remoteAddress, remote == earlier.remote && remoteControl == earlier.remoteControl)
        note(.transport, transport == earlier.transport && isMultiplexed == earlier.isMultiplexed)
        note(.sendCodec, sending.codecs.first == earlier.sending.codecs.first)
        note(.sendFormats, sending.otherThanFirst == earlier.sending.otherThanFirst)
        note(.receiveFormats, receiving == earlier.receiving)
        note(.packetTime, packetTime == earlier.packetTime && maximumPacketTime == earlier.maximumPacketTime)
        note(.direction, direction == earlier.direction)
        note(.hold, isHeldLocally == earlier.isHeldLocally && isHeldRemotely == earlier.isHeldRemotely)
        note(.bitRate, maximumBitRate == earlier.maximumBitRate)
        note(.security, localSecurity == earlier.localSecurity && remoteSecurity == earlier.remoteSecurity)
        return changes
    }
}

extension AgreedMedia.Formats {
    init(_ formats: [PayloadFormat]) {
        for format in formats {
            switch format.role {
            case .codec: codecs.append(format)
            case .telephoneEvent: telephoneEvents.append(format)
            case .comfortNoise: comfortNoise.append(format)
            case .redundancy: redundancy.append(format)
            }
        }
    }

    var otherThanFirst: [[PayloadFormat]] { [Array(codecs.dropFirst()), telephoneEvents, comfortNoise, redundancy] }
}
