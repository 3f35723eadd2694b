/// The names, clocks and rules of an RTP session.
public struct RTPSessionConfiguration: Sendable {
    /// The canonical name that RTCP gives, of the form user@host; at most 255 bytes of UTF-8 are sent.
    public var canonicalName: String
    /// Nanoseconds since 1970 at `MediaTime.zero`, from which RTCP's wall-clock times are made.
    public var unixNanosecondsAtZero: Int64
    /// Where RTP goes at first.
    public var destination: SocketAddress?
    /// Where RTCP goes at first when it has a port of its own.
    public var controlDestination: SocketAddress?
    /// Whether packets go back to where valid ones come from (RFC 4961), whatever was agreed.
    public var isSymmetric = true
    /// Whether RTP and RTCP share one port (RFC 5761).
    public var isMultiplexed = false
    /// How long the source must be silent before another may take its place.
    public var sourceTimeout: Duration = .milliseconds(500)
    /// The least interval between RTCP datagrams, before it is randomised (RFC 3550, section 6.2).
    public var minimumControlInterval: Duration = .seconds(5)
    /// RTCP's share of the bandwidth, for all members, in bytes per second.
    public var controlBandwidth: Double = 400
    /// Whether extended reports (RFC 3611) go with every report; those that come are read in any case.
    public var sendsExtendedReports = true

    /// A configuration with the rules above.
    ///
    /// - Parameters:
    ///   - canonicalName: the name that RTCP gives.
    ///   - unixNanosecondsAtZero: nanoseconds since 1970 at `MediaTime.zero`.
    ///   - destination: where RTP goes at first.
    public init(canonicalName: String, unixNanosecondsAtZero: Int64 = 0, destination: SocketAddress? = nil) {
        self.canonicalName = canonicalName
        self.unixNanosecondsAtZero = unixNanosecondsAtZero
        self.destination = destination
        controlDestination = destination.map { $0.with(port: $0.port &+ 1) }
    }
}
