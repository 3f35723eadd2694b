/// Where what a call sends comes from.
public enum CallSource: Sendable {
    /// Nothing but silence.
    case silence
    /// The engine's call card.
    case callCard
    /// A card of its own.
    case card(any SoundCard)
    /// A WAV file, played once, or again and again.
    case file(String, repetition: WAVFeed.Repetition = .once)
    /// Samples in memory, played once.
    case samples([Int16], AudioFormat)
    /// A filter with one audio output: a synthesiser, a voice agent, another call.
    case filter(Filter)
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
    /// A filter with one audio input.
    case filter(Filter)
}

/// The network of a call.
public enum CallNetwork: Sendable {
    /// Sockets of our own on `local`: RTP on its port and, unless RTCP shares that, RTCP on the next one.
    case udp(local: SocketAddress)
    /// A link that exists, for RTP and RTCP together: a `MemoryLink`, an `ImpairedLink`.
    case link(any DatagramLink, local: SocketAddress)
}

/// What a call is made of.
public struct CallConfiguration: Sendable {
    /// The call's name in reports.
    public var name = "call"
    /// Codec, payload types, playout delay.
    public var stream = AudioStreamConfiguration()
    /// Sockets or a simulated network.
    public var network: CallNetwork
    /// Where RTP goes; nil waits for packets and answers to where they come from (symmetric RTP, RFC 4961).
    public var remote: SocketAddress?
    /// Whether RTP and RTCP share one port (RFC 5761).
    ///
    /// A `link` always does.
    public var multiplexesControl = true
    /// Whether RTP and RTCP go back to where valid packets come from (RFC 4961), whatever `remote` says.
    ///
    /// Not where a program in the middle passes packets on one way only.
    public var isSymmetric = true
    /// Whether extended reports (RFC 3611) tell the other side how it is heard.
    public var sendsExtendedReports = true
    /// Whether audio is sent; without it the call listens, and sends RTCP and keys only.
    public var sendsAudio = true
    /// Makes what arrives worse, also over real sockets.
    public var impairment = Impairment()
    /// What draws the fate of each packet; nil takes the engine's own next number.
    public var impairmentSeed: UInt64?
    /// What the call sends.
    public var source = CallSource.callCard
    /// Where the call is heard.
    public var sink = CallSink.callCard
    /// Whether DTMF tones in the audio that arrives are told as keys, for senders that know no telephone events.
    ///
    /// Once the other side has sent a telephone event, its tones are not listened to: no key counts twice.
    public var detectsInBandDTMF = false
    /// A capture file (pcap) of every packet of the call.
    public var capturePath: String?

    /// A call over `network` with the engine's cards.
    public init(network: CallNetwork) {
        self.network = network
    }
}
