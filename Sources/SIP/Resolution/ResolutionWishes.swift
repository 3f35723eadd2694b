package import CallBasics

/// What the one who sends wants of the way to a URI.
package struct ResolutionWishes: Hashable, Sendable {
    package enum Family: Hashable, Sendable {
        case ipv4, ipv6
    }

    /// What may be used; where neither URI nor NAPTR records choose, the first is tried first.
    package var transports: [Flow.Transport]
    /// Whether nothing may leave in the clear, as for a sips URI.
    package var isSecure: Bool
    /// Which addresses are asked for: of each server one of the first family comes first, and then they alternate.
    ///
    /// Whoever knows the own addresses gives the order of RFC 6724.
    package var families: [Family]
    /// Whether NAPTR records are asked for; without them there is one answer less to wait for.
    package var usesPointers: Bool

    package init(
        transports: [Flow.Transport] = [.udp, .tcp, .tls],
        isSecure: Bool = false,
        families: [Family] = [.ipv6, .ipv4],
        usesPointers: Bool = true
    ) {
        (self.transports, self.isSecure, self.families) = (transports, isSecure, families)
        self.usesPointers = usesPointers
    }
}

/// Where the targets of a URI are.
package struct Resolution: Hashable, Sendable {
    /// In the order in which they are to be tried, each once; never empty.
    package var targets: [Target]
    /// When the first of the records that led here ends; nil when the URI has an address.
    package var expires: MediaTime?
    /// Whether nobody answered, and old answers served.
    package var isStale = false
}

/// Why a URI leads to no target.
package typealias ResolutionError = Failure<ResolutionFault>

/// What stands between a URI and its targets.
package enum ResolutionFault: Hashable, Sendable {
    /// It is no URI that a request can be sent to by its host.
    case unsuitableURI
    /// It needs a transport that may not be used.
    case noTransport
    /// The names say that there is no such service.
    case noService
    case noSuchName
    /// The name is there, but no server has an address.
    case noAddress
    /// Names could not be asked: it says nothing about the servers.
    case namesFailed
    /// More is looked up at once than is taken.
    case tooManyLookups
}
