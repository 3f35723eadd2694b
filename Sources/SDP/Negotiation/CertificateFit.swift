/// What descriptions tell of our side of DTLS-SRTP.
///
/// Source: RFC 8122, section 5; RFC 8842, section 4.
package struct OwnCertificate: Hashable, Sendable {
    /// The hash of our certificate.
    package var fingerprint: Fingerprint
    /// Tells the association from others of the same certificate: at least 20 letters, digits and signs.
    package var associationID: String

    /// A certificate with `fingerprint`, for the association `associationID`.
    package init(_ fingerprint: Fingerprint, associationID: String) {
        (self.fingerprint, self.associationID) = (fingerprint, associationID)
    }

    /// What an offer says of it, or an answer; who is asked without a name of the association answers without one.
    ///
    /// Source: RFC 8842, section 5.
    func lines(_ role: SetupRole, isNamed: Bool = true) -> [SDPAttribute] {
        let lines = [SDPAttribute("fingerprint", fingerprint.value), SDPAttribute("setup", role.rawValue)]
        return isNamed ? lines + [SDPAttribute("tls-id", associationID)] : lines
    }
}

/// What descriptions have agreed on for an association of DTLS.
///
///     offer     a=setup:actpass   a=fingerprint:sha-256 <of the offerer's certificate>     a=tls-id:<x>
///     answer    a=setup:active    a=fingerprint:sha-256 <of the answerer's certificate>    a=tls-id:<y>
///               who answers is the client of DTLS, who offers its server; each proves the certificate that it told
///
/// Two that are equal are the same association: it goes on, as over a hold.
/// Source: RFC 5763, section 5; RFC 8842, section 5.
package struct AgreedAssociation: Hashable, Sendable {
    /// Our role, active or passive: who is active is the client.
    package let role: SetupRole
    /// One of these the other side's certificate has; in whatever order they were told.
    package let fingerprints: Set<Fingerprint>
    /// How both sides call it; nil when the other side gives it no name.
    private let localID: String?
    private let remoteID: String?

    /// What an exchange has come to; nil without a fingerprint that can be used, or when an answer leaves the roles open.
    init?(_ local: [SDPAttribute], _ remote: [SDPAttribute], isOfferer: Bool) {
        let fingerprints = remote.fingerprints.filter(\.isUsable)
        let role = isOfferer ? SetupRole.afterAnswer(remote.setupRole) : local.setupRole
        guard !fingerprints.isEmpty, let role else { return nil }
        (self.role, self.fingerprints) = (role, Set(fingerprints))
        remoteID = remote.nameOfAssociation
        localID = remoteID == nil ? nil : local.nameOfAssociation
    }
}

extension [SDPAttribute] {
    /// How the side that says so calls the association of DTLS (RFC 8842, section 4).
    var nameOfAssociation: String? { values("tls-id").first }
}

extension Fingerprint {
    /// Whether the hash is long enough to prove something; SHA-1 and MD5 are not.
    package var isUsable: Bool {
        switch hash {
        case "sha-256": bytes.count == 32
        case "sha-384": bytes.count == 48
        case "sha-512": bytes.count == 64
        default: false
        }
    }

    /// The fingerprint as descriptions write it: "sha-256 AA:BB:...".
    package var value: String {
        let digits = bytes.map { byte in
            let text = String(byte, radix: 16, uppercase: true)
            return byte < 16 ? "0" + text : text
        }
        return hash + " " + digits.joined(separator: ":")
    }
}

extension SetupRole {
    /// The role that answers what was offered: the one of before while there is a choice, else active; nil for none.
    ///
    /// An offer without a role is active (RFC 4145, section 4).
    static func answer(to offered: SetupRole?, after former: SetupRole?) -> SetupRole? {
        switch offered {
        case .active, nil: .passive
        case .passive: .active
        case .activeOrPassive: former ?? .active
        case .holdConnection: nil
        }
    }

    /// Our role when the other side has answered so; nil when that is no answer.
    ///
    /// An answer without a role is passive (RFC 4145, section 4).
    static func afterAnswer(_ answered: SetupRole?) -> SetupRole? {
        switch answered {
        case .active: .passive
        case .passive, nil: .active
        case .activeOrPassive, .holdConnection: nil
        }
    }
}
