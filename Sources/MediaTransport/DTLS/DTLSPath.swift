package import CallBasics
package import MediaEngine
package import SDP

/// What secures the links of one leg by keys that DTLS makes: an association for RTP, and one for RTCP on a port of its own.
///
/// Handshakes go over the leg's own sockets: they begin once the media thread reads these. Nothing is sent and nothing is heard
/// before the other side has proved the certificate whose fingerprint its description tells, and after it has ended DTLS.
/// DTLS reads the machine's clock: it works in real time alone.
/// Thread: any but that of media.
/// Source: RFC 5763, RFC 5764.
package final class DTLSPath: LinkSecurity {
    private let media: DTLSLeg
    private let control: DTLSLeg
    /// What ICE tells; for one reader, ended by `close`.
    package let news: AsyncStream<News>
    private let continuation: AsyncStream<News>.Continuation

    /// What ICE tells of a way.
    package enum News: Sendable {
        /// Where a port of the other side is, each time that another way leads there.
        case found(ICEComponent, Route)
        /// No sound gets through any more, since the relay is gone, or nobody has agreed to the way, or been heard, for 12 s and
        /// more; told again each 5 s while that is so.
        case lost
    }

    /// A path that proves `identity`, and whose other side may find the way by checks for `credentials`, where there are any.
    ///
    /// - Parameters:
    ///   - identity: Our certificate.
    ///   - credentials: What our descriptions tell.
    ///   - relay: An address for RTP at a server, which our descriptions tell; it is given back when the way does not need it, and by
    ///     `close`.
    ///   - controlRelay: The same for RTCP.
    package init(
        _ identity: DTLSIdentity,
        _ credentials: ICECredentials? = nil,
        relay: TURNAllocation? = nil,
        controlRelay: TURNAllocation? = nil
    ) {
        let (news, continuation) = AsyncStream.makeStream(of: News.self, bufferingPolicy: .bufferingNewest(16))
        (self.news, self.continuation) = (news, continuation)
        let name = credentials?.stem
        media = DTLSLeg(identity, name, relay) { news in
            switch news {
            case .found(let route): continuation.yield(.found(.media, route))
            case .lost: continuation.yield(.lost)
            }
        }
        control = DTLSLeg(identity, name, controlRelay) { news in
            // Without its reports, sound goes on.
            if case .found(let route) = news { continuation.yield(.found(.control, route)) }
        }
    }

    deinit {
        continuation.finish()
        for leg in [media, control] { DTLSThread.shared.remove(leg) }
    }

    /// Whether a component has an address at a relay that may be told.
    package func hasRelay(_ component: ICEComponent) -> Bool { leg(of: component).hasRelay }

    /// Takes an address at a relay for gone, as when it was given back before the leg was wanted.
    package func forgetRelay(_ component: ICEComponent) { leg(of: component).forgetRelay() }

    /// Has the next search for the way go by these addresses at a relay: the ports are others, and what was given to them has gone.
    package func renew(relay: TURNAllocation?, controlRelay: TURNAllocation?) {
        media.renew(relay)
        control.renew(controlRelay)
    }

    private func leg(of component: ICEComponent) -> DTLSLeg {
        switch component {
        case .media: media
        case .control: control
        }
    }

    /// A link over `base` with the keys of its own association.
    package func secured(_ base: any DatagramLink, isOfControl: Bool) -> any DatagramLink {
        let leg = isOfControl ? control : media
        return SecureLink(leg.path, leg.queue, over: base)
    }

    /// Begins the association that descriptions have agreed on, or goes on with it.
    ///
    /// - Parameters:
    ///   - association: One that is equal to that of before goes on.
    ///   - ice: How the other side finds the way, whatever its addresses; nil for those that follow.
    ///   - isMultiplexed: Whether RTCP shares RTP's port.
    ///   - remote: Where the other side takes RTP; nil while it has told no address.
    ///   - remoteControl: Where it takes RTCP on a port of its own.
    package func connect(
        _ association: AgreedAssociation,
        _ ice: AgreedICE? = nil,
        isMultiplexed: Bool,
        to remote: SocketAddress?,
        control remoteControl: SocketAddress?
    ) {
        media.connect(association, ice, to: remote)
        guard isMultiplexed else { return control.connect(association, ice?.ofControl, to: remoteControl) }
        control.disconnect()
    }

    /// Waits until RTP has its keys; the other side has 20 s from now.
    ///
    /// RTCP of a port of its own is kept back when its association fails, and nobody is told.
    /// - Returns: What was proved; nil when it was closed before.
    /// - Throws: `DTLSError` when the other side did not prove itself, or not in time.
    package func connected() async throws(DTLSError) -> DTLSProof? {
        switch await media.outcome() {
        case .connected(let proof): return proof
        case .failed(let error): throw error
        case .connecting, .closed: return nil
        }
    }

    /// Waits until it is over: either side has ended it, or the other side proved nothing, or is gone (ICE).
    package func ended() async { await media.ended() }

    /// Why RTP has no keys; nil when it has, or it may come to have some.
    package var failure: DTLSError? { media.failure }

    /// What was refused and kept back up to now.
    package var statistics: SecurityStatistics {
        var sum = media.path.statistics + control.path.statistics
        sum.unprovenChecks = media.refusedCheckCount + control.refusedCheckCount
        return sum
    }

    /// Tells the other side that it is over, and waits for the tick that sends it.
    package func close() async {
        continuation.finish()
        for leg in [media, control] { await leg.close() }
    }
}
