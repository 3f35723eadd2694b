public import CallBasics
internal import MediaEngine
internal import MediaTransport
internal import SDP

/// How the way between two sides is found, through NATs, too (ICE), for sound that is secured by DTLS.
///
/// Each side tells the other where it may be reached, both check these ways, and the best one is used for as long as the other
/// side agrees to it. Where the other side has no ICE, sound goes to where its description says.
/// Source: RFC 8445.
public struct ICEConfiguration: Hashable, Sendable {
    /// Whether this side only answers checks (ICE-lite): it has to be reached at its own address, and checked all the time, as
    /// browsers do.
    package var isLite = false
    /// Servers that tell how this side is seen from outside (STUN); the first 4 are asked before a call is made or answered,
    /// which waits for them for 1 s at most.
    public var servers: [SocketAddress] = []

    /// A side that looks for the way itself, and asks `servers`.
    public init(servers: [SocketAddress] = []) { self.servers = servers }

    /// A side that only answers.
    package static let lite = {
        var configuration = ICEConfiguration()
        configuration.isLite = true
        return configuration
    }()

    /// This side as a call's descriptions tell it, once servers have answered, or have not within their time.
    ///
    /// What they told is kept alive until a call has the port.
    func side(of reservation: MediaReservation) async -> OwnICE {
        var generator = SystemRandomNumberGenerator()
        var side = OwnICE(ICECredentials(using: &generator), isFull: !isLite)
        let local = reservation.localAddress
        let servers = servers.filter { $0.isIPv4 == local.isIPv4 }
        guard !isLite, !servers.isEmpty else { return side }
        let now = MonotonicClock.current
        let (media, control) = (MappingQuery(servers, &generator, at: now), MappingQuery(servers, &generator, at: now))
        async let asked = reservation.ask(media, isOfControl: false)
        async let controlAsked = reservation.ask(control, isOfControl: true)
        let (answer, controlAnswer) = (await asked.answers.first, await controlAsked.answers.first)
        func other(_ mapped: SocketAddress?, than own: SocketAddress?) -> SocketAddress? {
            mapped.flatMap { $0 != own && $0.isDestination && $0.isIPv4 == local.isIPv4 ? $0 : nil }
        }
        side.mapped = other(answer?.mapped, than: local)
        side.controlMapped = other(controlAnswer?.mapped, than: reservation.localControlAddress)
        guard side.mapped != nil, let server = answer?.server else { return side }
        let reminder = MappingQuery.reminder(&generator)
        Task { [weak reservation] in
            while reservation?.send(reminder, to: server) == true { try? await Task.sleep(for: Self.pause) }
        }
        return side
    }

    /// Less than any NAT forgets after (RFC 8445, section 11).
    private static let pause = Duration.seconds(15)
}
