package import CallBasics
internal import MediaEngine
internal import MediaTransport
internal import SDP

/// How the way between two sides is found (ICE).
///
/// Source: RFC 8445.
package enum PathSearch: Sendable {
    /// This side has an address that the other side reaches, and only answers checks.
    case lite
    /// This side checks ways itself; each of the servers may tell how it is seen from outside.
    case full(servers: [SocketAddress])

    /// This side as a call's descriptions tell it, once servers have answered, or have not within 1 s.
    ///
    /// What they told is kept alive until a call has the port.
    func side(of reservation: MediaReservation) async -> OwnICE {
        var generator = SystemRandomNumberGenerator()
        let credentials = ICECredentials(using: &generator)
        guard case .full(let servers) = self else { return OwnICE(credentials) }
        var side = OwnICE(credentials, isFull: true)
        let query = await reservation.ask(MappingQuery(servers, &generator, at: MonotonicClock.current))
        guard let (mapped, server) = query.answer, mapped != reservation.localAddress else { return side }
        side.mapped = mapped
        let reminder = MappingQuery.reminder(&generator)
        Task { [weak reservation] in
            while reservation?.send(reminder, to: server) == true {
                try? await Task.sleep(for: Self.pause)
            }
        }
        return side
    }

    /// Less than any NAT forgets after (RFC 8445, section 11).
    private static let pause = Duration.seconds(15)
}
