/// The headers that the package knows, with their names as they are written.
///
/// Source: RFC 3261, section 20, and the IANA registry "Header Fields" of SIP
package enum HeaderName: UInt8, CaseIterable, Sendable, BitwiseCopyable {
    /// One that the package does not know; its name is in the message.
    case other
    case via, maxForwards, route, recordRoute, from, to, callID, cSeq, contact, path, serviceRoute
    case expires, minExpires, allow, supported, require, proxyRequire, unsupported
    case wwwAuthenticate, authorization, proxyAuthenticate, proxyAuthorization, authenticationInfo
    case rSeq, rAck, sessionExpires, minSE, referTo, referredBy, referSub, replaces, targetDialog
    case event, allowEvents, subscriptionState, reason, retryAfter, warning
    case accept, acceptEncoding, acceptLanguage, acceptContact, rejectContact, requestDisposition, identity
    case subject, date, userAgent, server, privacy, pAssertedIdentity, flowTimer, featureCaps
    case mimeVersion, contentDisposition, contentEncoding, contentType, contentLength

    /// The long name as it is written; empty for `other`.
    package var canonical: StaticString { Self.spellings[Int(rawValue)].long }

    /// Whether a header with several values is written as a line for each.
    var isSplit: Bool {
        switch self {
        case .via, .route, .recordRoute, .contact, .path, .serviceRoute: true
        default: false
        }
    }

    /// Whether a message has at most one of it.
    var isSingle: Bool {
        switch self {
        case .from, .to, .callID, .cSeq, .maxForwards, .contentLength, .contentType, .expires, .rSeq, .rAck,
            .sessionExpires, .minSE, .minExpires, .event, .subscriptionState:
            true
        default: false
        }
    }

    /// The header of a name, long or compact, in whatever case.
    package init(_ name: Bytes) { self.init(name.span, 0..<name.count) }

    /// The header whose name, long or compact, stands at `range`, in whatever case.
    init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        self = .other
        guard let first = range.first, let last = range.last else { return }
        if range.count == 1 {
            if bytes[first] < 0x80 { self = Self.compact[Int(bytes[first].lowercase)] }
            return
        }
        var slot = Self.slot(count: range.count, bytes[first], bytes[range.lowerBound + range.count / 2], bytes[last])
        while true {
            let candidate = Self.bySlot[slot]
            guard candidate != .other else { return }
            if candidate.isSpelled(bytes, range) {
                self = candidate
                return
            }
            slot = (slot + 1) & Self.slotMask
        }
    }

    private func isSpelled(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        let long = canonical
        guard long.utf8CodeUnitCount == range.count else { return false }
        return long.withUTF8Buffer { letters in
            for offset in 0..<letters.count {
                guard bytes[range.lowerBound + offset].lowercase == letters[offset].lowercase else { return false }
            }
            return true
        }
    }

    // MARK: Names to headers

    private static let slotMask = 255

    /// Where a name is looked for first, by its length and three of its letters.
    private static func slot(count: Int, _ first: UInt8, _ middle: UInt8, _ last: UInt8) -> Int {
        let letters = Int(first | 0x20) &* 31 &+ Int(middle | 0x20) &* 7 &+ Int(last | 0x20)
        return (letters &* 5 &+ count &* 17) & slotMask
    }

    /// The long names, each at its slot or behind it; most slots are empty.
    private static let bySlot: [HeaderName] = {
        var table = Array(repeating: HeaderName.other, count: slotMask + 1)
        for name in allCases where name != .other {
            let letters = Bytes(name.canonical.description)
            var slot = slot(count: letters.count, letters[0], letters[letters.count / 2], letters[letters.count - 1])
            while table[slot] != .other { slot = (slot + 1) & slotMask }
            table[slot] = name
        }
        return table
    }()

    private static let compact: [HeaderName] = {
        var table = Array(repeating: HeaderName.other, count: 128)
        for name in allCases {
            if let letter = spellings[Int(name.rawValue)].compact { table[Int(letter.value)] = name }
        }
        return table
    }()

    private static let spellings: [(long: StaticString, compact: Unicode.Scalar?)] = allCases.map(\.spelling)

    private var spelling: (long: StaticString, compact: Unicode.Scalar?) {
        switch self {
        case .other: ("", nil)
        case .via: ("Via", "v")
        case .maxForwards: ("Max-Forwards", nil)
        case .route: ("Route", nil)
        case .recordRoute: ("Record-Route", nil)
        case .from: ("From", "f")
        case .to: ("To", "t")
        case .callID: ("Call-ID", "i")
        case .cSeq: ("CSeq", nil)
        case .contact: ("Contact", "m")
        case .path: ("Path", nil)
        case .serviceRoute: ("Service-Route", nil)
        case .expires: ("Expires", nil)
        case .minExpires: ("Min-Expires", nil)
        case .allow: ("Allow", nil)
        case .supported: ("Supported", "k")
        case .require: ("Require", nil)
        case .proxyRequire: ("Proxy-Require", nil)
        case .unsupported: ("Unsupported", nil)
        case .wwwAuthenticate: ("WWW-Authenticate", nil)
        case .authorization: ("Authorization", nil)
        case .proxyAuthenticate: ("Proxy-Authenticate", nil)
        case .proxyAuthorization: ("Proxy-Authorization", nil)
        case .authenticationInfo: ("Authentication-Info", nil)
        case .rSeq: ("RSeq", nil)
        case .rAck: ("RAck", nil)
        case .sessionExpires: ("Session-Expires", "x")
        case .minSE: ("Min-SE", nil)
        case .referTo: ("Refer-To", "r")
        case .referredBy: ("Referred-By", "b")
        case .referSub: ("Refer-Sub", nil)
        case .replaces: ("Replaces", nil)
        case .targetDialog: ("Target-Dialog", nil)
        case .event: ("Event", "o")
        case .allowEvents: ("Allow-Events", "u")
        case .subscriptionState: ("Subscription-State", nil)
        case .reason: ("Reason", nil)
        case .retryAfter: ("Retry-After", nil)
        case .warning: ("Warning", nil)
        case .accept: ("Accept", nil)
        case .acceptEncoding: ("Accept-Encoding", nil)
        case .acceptLanguage: ("Accept-Language", nil)
        case .acceptContact: ("Accept-Contact", "a")
        case .rejectContact: ("Reject-Contact", "j")
        case .requestDisposition: ("Request-Disposition", "d")
        case .identity: ("Identity", "y")
        case .subject: ("Subject", "s")
        case .date: ("Date", nil)
        case .userAgent: ("User-Agent", nil)
        case .server: ("Server", nil)
        case .privacy: ("Privacy", nil)
        case .pAssertedIdentity: ("P-Asserted-Identity", nil)
        case .flowTimer: ("Flow-Timer", nil)
        case .featureCaps: ("Feature-Caps", nil)
        case .mimeVersion: ("MIME-Version", nil)
        case .contentDisposition: ("Content-Disposition", nil)
        case .contentEncoding: ("Content-Encoding", "e")
        case .contentType: ("Content-Type", "c")
        case .contentLength: ("Content-Length", "l")
        }
    }
}
