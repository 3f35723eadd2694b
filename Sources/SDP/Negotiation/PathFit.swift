internal import CallBasics

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

/// What descriptions tell of our side of ICE: one that has a public address, and only answers checks (ICE-lite).
///
/// It has one candidate, the medium's own address: RTP and RTCP have to share a port.
/// Source: RFC 8445, section 2.5; RFC 8839, sections 5.1 and 5.3.
package struct OwnICE: Hashable, Sendable {
    /// What the other side's checks prove.
    package var credentials: ICECredentials

    package init(_ credentials: ICECredentials) { self.credentials = credentials }

    /// What an offer, or an answer, says of it for a medium that comes to `port` of `host`.
    func lines(_ host: String, _ port: UInt16) -> [SDPAttribute] {
        let host = String(host.prefix { $0 != "%" })
        // 126 for an own address, and the only one of it (RFC 8445, section 5.1.2.1).
        let priority = 126 << 24 | 65_535 << 8 | 255
        return [
            SDPAttribute("ice-ufrag", credentials.userFragment), SDPAttribute("ice-pwd", credentials.password),
            SDPAttribute("candidate", "1 1 UDP \(priority) \(host) \(port) typ host"),
            SDPAttribute("end-of-candidates"),
        ]
    }
}

/// What descriptions have agreed on for the way of a medium: the other side checks which one works, and says which is used.
///
/// Source: RFC 8445, section 6.1.1.
package struct AgreedICE: Hashable, Sendable {
    /// What the other side's checks prove.
    package let local: ICECredentials
    /// The other side's own.
    package let remote: ICECredentials

    /// What an exchange has come to; nil when one side has no ICE, or none that checks: both would only answer.
    init?(_ local: [SDPAttribute], _ remote: [SDPAttribute]) {
        guard remote.canCheck, let own = ICECredentials(local), let other = ICECredentials(remote) else { return nil }
        self.init(local: own, remote: other)
    }

    init(local: ICECredentials, remote: ICECredentials) { (self.local, self.remote) = (local, remote) }
}

extension [SDPAttribute] {
    /// Whether the side that says so may check the ways to us.
    ///
    /// Source: RFC 8839, sections 5.3 and 5.5.
    var canCheck: Bool {
        ICECredentials(self) != nil && !isICELite && !contains { $0.name.isNamed("ice-mismatch") }
    }
}
