internal import CallBasics
internal import MediaEngine
internal import MediaTransport
internal import SDP

/// This side of ICE for one call: what its descriptions tell, and the addresses at a relay that it has.
package struct ICESide: Sendable {
    private(set) var own: OwnICE
    private(set) var relay: TURNAllocation?
    private(set) var controlRelay: TURNAllocation?
    /// Why there is no relay for RTP, or none for RTCP; nil where there is one, or none was wished.
    private(set) var failure: TURNError?
    private(set) var controlFailure: TURNError?

    /// This side with the ports of `reservation`, once servers have answered, or have not within their time.
    ///
    /// What they told is kept alive until a call has the ports.
    /// - Parameters:
    ///   - configuration: Whom to ask.
    ///   - reservation: The ports.
    ///   - hasControl: Whether RTCP may come to a port of its own.
    init(_ configuration: ICEConfiguration, of reservation: MediaReservation, hasControl: Bool = true) async {
        var generator = SystemRandomNumberGenerator()
        own = OwnICE(ICECredentials(using: &generator), isFull: !configuration.isLite)
        let local = reservation.localAddress
        let servers = configuration.servers.filter { $0.isIPv4 == local.isIPv4 }
        let server = configuration.relay.flatMap { $0.address.isIPv4 == local.isIPv4 ? $0 : nil }
        guard own.isFull else { return }
        if server == nil, configuration.relay != nil { failure = .otherFamily }
        guard server != nil || !servers.isEmpty else { return }
        async let asked = Self.gather(servers, server, reservation, isOfControl: false)
        async let controlAsked = Self.gather(
            hasControl ? servers : [],
            hasControl ? server : nil,
            reservation,
            isOfControl: true
        )
        var ((answers, refusal), (controlAnswers, controlRefusal)) = (await asked, await controlAsked)
        func mapped(_ answers: GatheringQuery, _ own: SocketAddress?) -> SocketAddress? {
            let mapped = answers.answers.first?.mapped ?? answers.relay?.mapped
            return mapped.flatMap { $0 != own && $0.isDestination && $0.isIPv4 == local.isIPv4 ? $0 : nil }
        }
        (own.mapped, own.relayed) = (mapped(answers, local), answers.relay?.relayed)
        own.controlMapped = mapped(controlAnswers, reservation.localControlAddress)
        own.controlRelayed = controlAnswers.relay?.relayed
        (relay, controlRelay) = (answers.relay, controlAnswers.relay)
        failure = refusal ?? answers.failure ?? failure
        controlFailure = hasControl ? controlRefusal ?? controlAnswers.failure : nil
        let end = MonotonicClock.current
        _ = reservation.send(answers.withdrawal(at: end), controlAnswers.withdrawal(at: end))
        let reminder = MappingQuery.reminder(&generator)
        let reminders = [answers, controlAnswers].map { asked in asked.askers.map { (reminder, $0) } }
        guard reminders.contains(where: { !$0.isEmpty }) else { return }
        Task { [weak reservation] in
            while reservation?.send(reminders[0], reminders[1]) == true {
                try? await Task.sleep(for: Self.pause)
            }
        }
    }

    /// Says that the relay which `configuration` has gives no address.
    func warn(_ engine: CallEngine, _ configuration: ICEConfiguration) {
        guard let relay = configuration.relay else { return }
        if let failure {
            engine.warn("The relay at \(relay.address) gives no address: \(failure). The call goes on without it.")
        } else if let controlFailure {
            engine.warn("The relay at \(relay.address) gives no address for RTCP: \(controlFailure).")
        }
    }

    /// Asks over one port, which is the reservation's; without a port it is over at once.
    ///
    /// - Returns: What was answered, and why there is no way to the relay.
    private static func gather(
        _ servers: [SocketAddress],
        _ relay: TURNServer?,
        _ reservation: MediaReservation,
        isOfControl: Bool
    ) async -> (query: GatheringQuery, refusal: TURNError?) {
        var (relays, refusal): ([TURNAllocation], TURNError?) = ([], nil)
        if let relay, let port = isOfControl ? reservation.localControlAddress : reservation.localAddress {
            do throws(TURNError) { relays = try await relay.allocations(for: port) } catch { refusal = error }
        }
        var generator = SystemRandomNumberGenerator()
        let now = MonotonicClock.current
        let query = GatheringQuery(MappingQuery(servers, &generator, at: now), relays, at: now)
        return (await reservation.ask(query, isOfControl: isOfControl), refusal)
    }

    /// Gives back what a relay has given; that of RTCP alone where RTP goes on with its own.
    mutating func release(_ reservation: MediaReservation, controlOnly: Bool = false) {
        let now = MonotonicClock.current
        if !controlOnly { relay?.close(at: now) }
        controlRelay?.close(at: now)
        _ = reservation.send(relay?.takeDatagrams() ?? [], controlRelay?.takeDatagrams() ?? [])
    }

    /// Less than any NAT forgets after (RFC 8445, section 11).
    private static let pause = Duration.seconds(15)
}
