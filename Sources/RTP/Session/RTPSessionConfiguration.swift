package import CallBasics

/// The names, clocks and rules of an RTP session.
package struct RTPSessionConfiguration: Sendable {
    /// The canonical name that RTCP gives, of the form user@host; at most 255 bytes of UTF-8 are sent.
    package var canonicalName: String
    /// Nanoseconds since 1970 at `MediaTime.zero`, from which RTCP's wall-clock times are made.
    package var unixNanosecondsAtZero: Int64
    /// Where packets go and come from, at first.
    package var addresses = RTPAddresses()
    /// The least interval between RTCP datagrams, before it is randomised (RFC 3550, section 6.2).
    package var minimumControlInterval: Duration = .seconds(5)
    /// RTCP's share of the bandwidth, for all members, in bytes per second.
    package var controlBandwidth: Double = 400
    /// Whether extended reports (RFC 3611) go with every report; those that come are read in any case.
    package var sendsExtendedReports = true

    /// A configuration with the rules above.
    ///
    /// - Parameters:
    ///   - canonicalName: The name that RTCP gives.
    ///   - unixNanosecondsAtZero: Nanoseconds since 1970 at `MediaTime.zero`.
    package init(canonicalName: String, unixNanosecondsAtZero: Int64 = 0) {
        self.canonicalName = canonicalName
        self.unixNanosecondsAtZero = unixNanosecondsAtZero
    }
}

/// Where a session's packets go and come from: what signalling may change while it runs.
package struct RTPAddresses: Hashable, Sendable, BitwiseCopyable {
    /// Where the other side takes RTP; nil when signalling has not named it.
    package var destination: SocketAddress?
    /// Where the other side takes RTCP, when it has a port of its own.
    package var controlDestination: SocketAddress?
    /// Whether packets go back to where those of the source that is heard come from (RFC 4961), whatever was named.
    package var isSymmetric = true
    /// Whether RTP and RTCP share one port (RFC 5761).
    package var isMultiplexed = false
    /// How freely the other side's address is learnt.
    package var sourceRules = RemoteSourceRules()
    /// Whether the other side is to send, by the direction that was agreed: if not, its silence lets nobody else in.
    package var expectsPackets = true
    /// Another one than before sends as another source: who takes the other side's place by SRTP has not counted its cycles.
    package var sourceNumber = 0

    /// Addresses that are not known yet.
    package init() {}
}
