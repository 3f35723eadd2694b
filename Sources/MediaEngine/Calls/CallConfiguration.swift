public import CallBasics

/// Where what a call sends comes from.
public enum CallSource: Sendable {
    /// Nothing but silence.
    case silence
    /// The engine's call card.
    case callCard
    /// A card of its own.
    case card(any SoundCard)
    /// A WAV file, played once, or again and again.
    case file(String, repetition: FileRepetition = .once)
    /// Samples in memory, of any rate, played once.
    case samples([Int16], AudioFormat)
    /// The application, which writes samples while the call runs; the end of the call ends the stream.
    case stream(StreamSource)
    /// A filter with one audio output, as a synthesiser; it is this call's alone.
    case filter(Filter)
}

/// What the other side hears while the call is held.
public enum HeldSound: Sendable {
    /// A soft tone every few seconds.
    case tone
    /// A WAV file, again and again, at its own level.
    case file(String)
    /// A filter with one audio output, as a synthesiser; it is this call's alone.
    case filter(Filter)

    /// What gives the sound; a tone in `format`.
    func source(_ format: AudioFormat) -> CallSource {
        switch self {
        case .tone: .filter(HoldToneFilter(format: format))
        case .file(let path): .file(path, repetition: .forever(pause: .zero))
        case .filter(let filter): .filter(filter)
        }
    }
}

/// Where what a call receives goes.
public enum CallSink: Sendable {
    /// Nowhere; it is still decoded and measured.
    case none
    /// The engine's call card.
    case callCard
    /// A card of its own.
    case card(any SoundCard)
    /// A WAV file at the codec's rate, from the call's first tick on.
    case file(String)
    /// A WAV file at the codec's rate, from the first packet's playout to the last packet's end.
    case playout(String)
    /// The application, which takes samples while the call runs; the end of the call ends the stream.
    case stream(StreamSink)
    /// A filter with one audio input.
    case filter(Filter)
}

/// The network of a call.
public enum CallNetwork: Sendable {
    /// Sockets of our own on `local`: RTP on its port and, unless RTCP shares that, RTCP on the next one.
    case udp(local: SocketAddress)
    /// Ports that were reserved before.
    case reserved(MediaReservation)
    /// A link that exists, for RTP and RTCP together: an end of a `MemoryLink`, or one of your own.
    case link(any DatagramLink, local: SocketAddress)
}

/// What a call is made of.
public struct CallConfiguration: Sendable {
    /// The call's name in reports.
    public var name = "call"
    /// What both sides agreed on; `MediaAgreement.nothing` begins without, until `Call.update`.
    public var agreement = MediaAgreement()
    /// What this side wants of the sound: encoder, protection against loss, playout delay, voice processing.
    public var stream = AudioStreamConfiguration()
    /// Sockets or a simulated network.
    public var network: CallNetwork
    /// What the call sends.
    public var source = CallSource.callCard
    /// Where the call is heard.
    public var sink = CallSink.callCard
    /// Whether the call begins muted.
    public var isMuted = false
    /// Whether the call begins on hold.
    public var isOnHold = false
    /// What the other side hears while the call is held (`Call.isOnHold`); nil, as at first, sends it nothing.
    ///
    /// It runs from the call's beginning, so that each hold comes in where it is by then.
    public var heldSound: HeldSound?
    /// Whether extended reports (RFC 3611) tell the other side how it is heard.
    public var sendsExtendedReports = true
    /// How long nothing may come before `CallEvent.mediaStalled`; nil never tells it.
    public var stallTimeout: Duration? = .seconds(30)
    /// What secures the links of the call, whose agreements are secured ones then; nil sends and takes RTP in the clear.
    ///
    /// Captures are of what is inside.
    package var security: (any LinkSecurity)?
    /// Makes what arrives worse, also over real sockets.
    public var impairment = Impairment()
    /// What draws the fate of each packet; nil takes the engine's own next number.
    public var impairmentSeed: UInt64?
    /// A capture file (pcap) of every packet of the call.
    public var capturePath: String?

    /// A call over `network` with the engine's cards.
    public init(network: CallNetwork) {
        self.network = network
    }
}
