package import CallBasics

/// Name and password of one side of ICE: who knows them may check the path to it.
///
/// Source: RFC 8839, section 5.4.
package struct ICECredentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// 4 to 256 letters, digits, + and /.
    package let userFragment: String
    /// 22 to 256 of the same.
    package let password: String

    package init(userFragment: String, password: String) {
        (self.userFragment, self.password) = (userFragment, password)
    }

    /// New ones: 48 random bits of name and 144 of password.
    ///
    /// Source: RFC 8445, section 5.3.
    package init(using generator: inout some RandomNumberGenerator) {
        self.init(userFragment: Self.text(Self.stemByteCount, &generator), password: Self.text(24, &generator))
    }

    /// What the names of all searches for the way in one session begin with, by which checks are told from other datagrams.
    package var stem: String { String(userFragment.prefix(Self.stemByteCount)) }

    private static let stemByteCount = 8

    /// New ones for a new search for the way (ICE restart), whose name has 24 random bits behind its stem.
    package func renewed(using generator: inout some RandomNumberGenerator) -> ICECredentials {
        ICECredentials(userFragment: stem + Self.text(4, &generator), password: Self.text(24, &generator))
    }

    private static func text(_ count: Int, _ generator: inout some RandomNumberGenerator) -> String {
        String((0..<count).map { _ in letters[Int.random(in: 0..<letters.count, using: &generator)] })
    }

    /// What both are made of: 6 bits each.
    private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

    package var description: String { "credentials of \(userFragment.excerpt)" }
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// Those that a description tells; nil without, or when they are too short to protect anything, or too long.
    init?(_ attributes: [SDPAttribute]) {
        guard let (name, password) = attributes.iceCredentials, 4...256 ~= name.utf8.count,
            22...256 ~= password.utf8.count
        else { return nil }
        self.init(userFragment: name, password: password)
    }
}

/// What descriptions tell of our side of ICE.
///
/// It has one address, the medium's own, which a server may see as another one, and may have one at a relay. RTP and RTCP have to
/// share a port, unless it checks ways.
/// Source: RFC 8445, sections 2.5 and 5.1; RFC 8839, sections 5.1 and 5.3.
package struct OwnICE: Hashable, Sendable {
    /// What the other side's checks prove.
    package var credentials: ICECredentials
    /// Whether it checks the ways to the other side; one that has a public address may only answer checks (ICE-lite).
    package var isFull: Bool
    /// Its address as it was seen from outside, and that of RTCP; nil when nobody was asked, or that is its own.
    package var mapped: SocketAddress?
    package var controlMapped: SocketAddress?
    /// Those that a server passes on what comes to; nil without one.
    package var relayed: SocketAddress?
    package var controlRelayed: SocketAddress?

    package init(_ credentials: ICECredentials, isFull: Bool = false) {
        (self.credentials, self.isFull) = (credentials, isFull)
    }

    /// Tells what servers have told of `other`, as after its own address has changed; without, they have told nothing.
    package mutating func takeServers(of other: OwnICE?) {
        (mapped, controlMapped) = (other?.mapped, other?.controlMapped)
        (relayed, controlRelayed) = (other?.relayed, other?.controlRelayed)
    }

    /// What an offer, or an answer, says of it for a medium that comes to `port` of `host`, and whose RTCP comes to `controlPort`,
    /// where that is another.
    func lines(_ host: String, _ port: UInt16, _ controlPort: UInt16?) -> [SDPAttribute] {
        let host = String(host.prefix { $0 != "%" })
        var lines = [
            SDPAttribute("ice-ufrag", credentials.userFragment), SDPAttribute("ice-pwd", credentials.password),
        ]
        /// What says of a candidate of `kind` where it is, behind which number its foundation has.
        func append(_ foundation: Int, _ kind: ICECandidate.Kind, _ component: ICEComponent, _ place: String) {
            let head = "\(foundation) \(component.rawValue) UDP \(component.priority(kind))"
            lines.append(SDPAttribute("candidate", "\(head) \(place)"))
        }
        func append(_ component: ICEComponent, _ port: UInt16, _ mapped: SocketAddress?, _ relayed: SocketAddress?) {
            append(1, .host, component, "\(host) \(port) typ host")
            guard isFull else { return }
            if let mapped {
                let place = "\(mapped.host) \(mapped.port) typ srflx raddr \(host) rport \(port)"
                append(2, .serverReflexive, component, place)
            }
            guard let relayed else { return }
            let related = mapped.map { "\($0.host) rport \($0.port)" } ?? "\(host) rport \(port)"
            append(3, .relay, component, "\(relayed.host) \(relayed.port) typ relay raddr \(related)")
        }
        append(.media, port, mapped, relayed)
        if isFull, let controlPort { append(.control, controlPort, controlMapped, controlRelayed) }
        return lines + [SDPAttribute("end-of-candidates")]
    }

    /// Whether it finds a way with the side that says so.
    func meets(_ other: MediaDescription, isMultiplexed: Bool) -> Bool {
        let attributes = other.keyingAttributes
        return attributes.hasICE && !other.hasICEMismatch && (isFull || isMultiplexed && !attributes.isICELite)
    }
}

/// One of the ports of a medium, each of which has a way of its own.
///
/// Source: RFC 8839, section 5.1.
package enum ICEComponent: UInt16, Sendable {
    /// RTP, and RTCP where that shares its port.
    case media = 1
    case control = 2

    /// How good the addresses of a side are that has one of each kind; one that others see by its relay is the worse one.
    ///
    /// Source: RFC 8445, section 5.1.2.1.
    package func priority(_ kind: ICECandidate.Kind, isRelayed: Bool = false) -> UInt32 {
        let preference: UInt32 =
            switch kind {
            case .host: 126
            case .peerReflexive: 110
            case .serverReflexive: 100
            case .relay: 0
            }
        return preference << 24 | (isRelayed ? 0 : 65_535) << 8 | UInt32(256 - rawValue)
    }
}

/// An address at which the other side may be reached.
package struct ICECandidate: Hashable, Sendable {
    /// Whose address it is.
    package enum Kind: String, Sendable {
        case host
        /// As a server sees it.
        case serverReflexive = "srflx"
        /// As this side has seen it by a check.
        case peerReflexive = "prflx"
        /// Of a server that passes on what comes.
        case relay
    }

    package let kind: Kind
    package let address: SocketAddress
    package let priority: UInt32

    package init(_ kind: Kind, _ address: SocketAddress, priority: UInt32) {
        (self.kind, self.address, self.priority) = (kind, address, priority)
    }

    /// One of UDP that can be reached from `own`; nil for others, and for names, which cost time to look up.
    init?(_ attribute: CandidateAttribute, from own: SocketAddress) {
        guard let kind = Kind(rawValue: attribute.kind), attribute.transport == "udp",
            let address = SocketAddress(host: attribute.host, port: attribute.port)?.scoped(as: own),
            address.isDestination, address.isIPv4 == own.isIPv4, own.isLoopback || !address.isLoopback
        else { return nil }
        self.init(kind, address, priority: attribute.priority)
    }
}

/// What descriptions have agreed on for the way of a medium.
///
/// Source: RFC 8445, section 6.1.1.
package struct AgreedICE: Hashable, Sendable {
    /// Names and passwords: new ones begin a new search for the way.
    package struct Session: Hashable, Sendable {
        /// What the other side's checks prove.
        package let local: ICECredentials
        /// What our checks prove.
        package let remote: ICECredentials
    }

    package let session: Session
    /// Whether this side checks ways, too.
    package let isFull: Bool
    /// Whether this side says which way is used.
    package let isControlling: Bool
    /// Where the other side may be.
    package let candidates: [ICECandidate]
    /// Which port it is about.
    package let component: ICEComponent
    /// Where RTCP of a port of its own may be; empty where it shares RTP's.
    private let controlCandidates: [ICECandidate]

    /// What an exchange has come to; nil when one side has no ICE, or none checks: both would only answer.
    ///
    /// Who has offered controls, but for a side that only answers; that stays for the life of the session. The other side's
    /// addresses are those that can be reached from `address`.
    init?(
        _ local: [SDPAttribute],
        _ other: MediaDescription,
        from address: SocketAddress?,
        isMultiplexed: Bool,
        isOfferer: Bool,
        after former: AgreedICE?
    ) {
        let remote = other.keyingAttributes
        guard local.hasICE, remote.hasICE, !other.hasICEMismatch,
            !local.isICELite || (isMultiplexed && !remote.isICELite),
            let own = ICECredentials(local),
            let other = ICECredentials(remote)
        else { return nil }
        func candidates(_ component: ICEComponent) -> [ICECandidate] {
            guard let address else { return [] }
            let told = remote.candidates.lazy.filter { $0.component == component.rawValue }
            return Array(told.compactMap { ICECandidate($0, from: address) }.prefix(Self.candidateLimit))
        }
        let controls = local.isICELite != remote.isICELite ? remote.isICELite : former?.isControlling ?? isOfferer
        self.init(
            Session(local: own, remote: other),
            isFull: !local.isICELite,
            isControlling: controls,
            candidates: candidates(.media),
            controlCandidates: isMultiplexed ? [] : candidates(.control)
        )
    }

    /// How the other side is reached at `address`.
    package func kind(of address: SocketAddress) -> ICECandidate.Kind {
        candidates.first { $0.address == address }?.kind ?? .peerReflexive
    }

    init(
        _ session: Session,
        isFull: Bool,
        isControlling: Bool,
        candidates: [ICECandidate],
        component: ICEComponent = .media,
        controlCandidates: [ICECandidate] = []
    ) {
        (self.session, self.isFull, self.isControlling) = (session, isFull, isControlling)
        (self.candidates, self.component, self.controlCandidates) = (candidates, component, controlCandidates)
    }

    /// The same for RTCP on a port of its own.
    package var ofControl: AgreedICE {
        AgreedICE(
            session,
            isFull: isFull,
            isControlling: isControlling,
            candidates: controlCandidates,
            component: .control
        )
    }

    /// Source: RFC 8445, section 6.1.2.5.
    private static let candidateLimit = 100
}

extension MediaDescription {
    /// Whether the address that media goes to is none of those that ICE has: somebody in between has put in his own.
    ///
    /// Source: RFC 8839, section 3.2.5.
    var hasICEMismatch: Bool {
        let candidates = keyingAttributes.candidates.filter { $0.component == ICEComponent.media.rawValue }
        // Port 9 stands for an address that is not known yet, as 0.0.0.0 and ::.
        guard !candidates.isEmpty, port != 9, let host, let address = SocketAddress(host: host, port: port),
            !address.isUnspecified
        else { return false }
        return !candidates.contains { SocketAddress(host: $0.host, port: $0.port) == address }
    }
}

extension [SDPAttribute] {
    /// Whether the side that says so takes part in ICE.
    ///
    /// Source: RFC 8839, sections 5.3 and 5.5.
    fileprivate var hasICE: Bool {
        ICECredentials(self) != nil && !contains { $0.name.isNamed("ice-mismatch") }
    }
}
