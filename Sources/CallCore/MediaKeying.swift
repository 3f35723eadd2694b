internal import CallBasics
internal import MediaEngine
internal import MediaTransport
internal import SDP

/// How the keys of one call's sound come about.
enum MediaKeying: Sendable {
    /// In the clear.
    case none
    /// Keys are in the descriptions.
    case sdes(SecurePath)
    /// The descriptions tell certificates, and DTLS makes the keys.
    case dtls(DTLSPath, DTLSIdentity, OwnICE?)

    /// What one call may have, the preferred one first; by DTLS the way is found by `ice`, where there is one.
    ///
    /// - Throws: `PhoneError` when no certificate can be made
    static func all(_ encryption: MediaEncryption, _ ice: ICESide?) throws(PhoneError) -> [MediaKeying] {
        switch encryption {
        case .none: [.none]
        case .sdes: [.sdes(SecurePath())]
        case .dtls: [try byDTLS(ice)]
        case .preferred: [try byDTLS(ice), .sdes(SecurePath()), .none]
        }
    }

    private static func byDTLS(_ ice: ICESide?) throws(PhoneError) -> MediaKeying {
        do throws(DTLSError) {
            let identity = try DTLSIdentity.ofToday()
            let path = DTLSPath(
                identity,
                ice?.own.credentials,
                relay: ice?.relay,
                controlRelay: ice?.controlRelay
            )
            return .dtls(path, identity, ice?.own)
        } catch {
            throw PhoneError(.security, "\(error)")
        }
    }

    var encryption: MediaEncryption {
        switch self {
        case .none: .none
        case .sdes: .sdes
        case .dtls: .dtls
        }
    }

    /// What secures the links; nil for sound in the clear.
    var security: (any LinkSecurity)? {
        switch self {
        case .none: nil
        case .sdes(let path): path
        case .dtls(let path, _, _): path
        }
    }

    var statistics: SecurityStatistics {
        switch self {
        case .none: SecurityStatistics()
        case .sdes(let path): path.statistics
        case .dtls(let path, _, _): path.statistics
        }
    }

    /// Has `medium` offered and taken with new keys, or for a new association, and not in the clear.
    func secure(_ medium: inout MediaConfiguration) {
        var generator = SystemRandomNumberGenerator()
        switch self {
        case .none: break
        case .sdes: medium.secure(by: SDESKeys(using: &generator))
        case .dtls(_, let identity, let ice):
            medium.secure(by: identity, using: &generator)
            // What it says already it says since the own address has changed.
            medium.ice = medium.ice ?? ice
            forgetLostRelays(&medium)
        }
    }

    /// Has `medium` tell no address at a relay that has been given back since.
    func forgetLostRelays(_ medium: inout MediaConfiguration) {
        guard case .dtls(let path, _, _) = self else { return }
        if !path.hasRelay(.media) { medium.ice?.relayed = nil }
        if !path.hasRelay(.control) { medium.ice?.controlRelayed = nil }
    }

    /// Has the next search for the way go by the addresses at a relay that `side` has, since ports have become others.
    func renewRelay(_ side: ICESide?) {
        guard case .dtls(let path, _, .some) = self else { return }
        path.renew(relay: side?.relay, controlRelay: side?.controlRelay)
    }

    /// Takes addresses at a relay for gone: they have been given back.
    func forgetRelay(controlOnly: Bool) {
        guard case .dtls(let path, _, _) = self else { return }
        if !controlOnly { path.forgetRelay(.media) }
        path.forgetRelay(.control)
    }

    /// How a medium may travel that has it.
    fileprivate var protocols: [MediaProtocol] {
        switch self {
        case .none: [.rtpAVP, .rtpAVPF]
        case .sdes: [.rtpSAVP, .rtpSAVPF]
        case .dtls(_, _, nil): [.dtlsSAVP, .dtlsSAVPF]
        case .dtls: [.dtlsSAVPF, .dtlsSAVP]
        }
    }

    /// Goes on with what was agreed: by keys of the descriptions at once, else as soon as DTLS has made some.
    ///
    /// - Returns: The suite of new keys; nil when those of before go on, or there are none yet.
    /// - Throws: `PhoneError` when nothing was agreed that can be used
    func take(
        _ media: AgreedMedia,
        _ agreement: MediaAgreement,
        after former: AgreedMedia?
    ) throws(PhoneError) -> SRTPSuite? {
        switch self {
        case .none: return nil
        case .sdes(let path):
            if media.keys != nil, media.keys == former?.keys { return nil }
            guard let lines = media.keys, let keys = SDESAgreement(lines) else {
                throw PhoneError(
                    .noSound,
                    "No key was agreed on that can be used. Offer another suite, or calls in the clear."
                )
            }
            path.offer(sending: keys.sending, receiving: keys.receiving)
            return keys.suite
        case .dtls(let path, _, _):
            guard let association = media.association else {
                throw PhoneError(.noSound, "No certificate was told. Offer DTLS, or calls in the clear.")
            }
            path.connect(
                association,
                media.ice,
                isMultiplexed: media.isMultiplexed,
                to: agreement.remote,
                control: agreement.remoteControl
            )
            return nil
        }
    }

    /// Waits for what DTLS comes to.
    ///
    /// - Returns: What was proved; nil where DTLS makes no keys, or the call is over.
    /// - Throws: `PhoneError` when the other side did not prove itself
    func connected() async throws(PhoneError) -> DTLSProof? {
        guard case .dtls(let path, _, _) = self else { return nil }
        do throws(DTLSError) { return try await path.connected() } catch { throw PhoneError(.security, "\(error)") }
    }

    /// What ICE tells of the way; nil without.
    var news: AsyncStream<DTLSPath.News>? {
        guard case .dtls(let path, _, .some) = self else { return nil }
        return path.news
    }

    /// Waits until the other side has ended DTLS, or is gone; at once where there is none.
    func ended() async {
        if case .dtls(let path, _, _) = self { await path.ended() }
    }

    /// Why there are no keys; nil when there are, or may be.
    var failure: PhoneError? {
        guard case .dtls(let path, _, _) = self, let error = path.failure else { return nil }
        return PhoneError(.security, "\(error)")
    }

    /// Tells the other side that it is over, where that is told.
    func close() async {
        if case .dtls(let path, _, _) = self { await path.close() }
    }
}

extension [MediaKeying] {
    /// Has `medium` offered with the one at `first`, taken with whichever the other side has, in their order, and what it
    /// began with kept.
    func secure(_ medium: inout MediaConfiguration, offering first: Int = 0) {
        for keying in self { keying.secure(&medium) }
        medium.protocols = self[first].protocols + flatMap(\.protocols).filter { !self[first].protocols.contains($0) }
        medium.keepsKeying = true
    }

    /// The one that `transport` belongs to.
    func keying(of transport: MediaProtocol) -> MediaKeying? { first { $0.protocols.contains(transport) } }
}
