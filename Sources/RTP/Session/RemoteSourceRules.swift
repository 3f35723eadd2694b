/// How freely the address is learnt that the other side's RTP comes from, and goes to with symmetric RTP (RFC 4961).
///
/// Packets alone do not tell who sends them. A stream is safe where signalling names the address that sends, and that sends.
/// Elsewhere, as behind a NAT that shows another host than was named, whoever finds the port may be heard, and hear what is said:
/// SRTP alone prevents that.
public struct RemoteSourceRules: Hashable, Sendable, BitwiseCopyable {
    /// How long hosts that signalling did not name are refused while the named one is silent.
    ///
    /// It begins with the call, and again when signalling names another address, or has the other side send again; while the
    /// other side is not to send (`MediaAgreement.direction`), it does not pass. Afterwards the first host that sends two packets
    /// in sequence gets the stream, until the named address itself sends: a stranger, too, where the named side sends nothing
    /// though it was to (mute without keepalives, a firewall on the way). Where no NAT is on the way, give a time longer than any
    /// call.
    ///
    /// Behind a NAT that shows another host than was named, this is the time without sound at the beginning of a call, also for
    /// whom was heard before signalling named anybody (early media). No sign that an application could trust spares it: that
    /// source may be a stranger, too, and neither a port as named proves otherwise, being one of a few usual ones, nor a host
    /// near the named one. Where all others are behind such NATs, and strangers are not, give less.
    public var startPatience = Duration.seconds(5)
    /// How long the locked address must be silent before another may take its place; nil never lets it.
    ///
    /// Give a duration only in a network without hostile hosts: during a pause (mute, hold, DTX) anybody who sends two
    /// packets gets the stream, and with symmetric RTP hears what is said.
    public var relocatesAfter: Duration?

    /// Patience of 5 s, and no relocation.
    public init() {}
}
