package import CallBasics

/// Where redirections lead a request: the addresses of Contacts, the best first, each once.
///
/// Source: RFC 3261, section 8.1.3.4
struct Redirection: Sendable {
    /// Requests that are redirected more often go round in circles.
    static let limit = 5

    private var waiting: ArraySlice<SIPURI> = []
    /// Those that were asked, or wait.
    private var known: [SIPURI] = []

    /// Whether a request was redirected.
    var hasLed: Bool { !known.isEmpty }

    /// Takes the Contacts of a 3xx; what was asked over TLS alone is not asked in the clear.
    mutating func take(_ response: SIPMessage, asked uri: SIPURI) {
        if known.isEmpty { known = [uri] }
        guard let contacts = try? response.list(.contact, as: NameAddress.self) else { return }
        let ordered = contacts.enumerated()
            .sorted { ($1.element.preference, $0.offset) < ($0.element.preference, $1.offset) }.map(\.element)
        var found: [SIPURI] = []
        for contact in ordered where known.count <= Self.limit {
            let next = contact.uri.withoutHeaders
            guard next.scheme == .sips || next.scheme == .sip && uri.scheme == .sip,
                !known.contains(where: { $0.isEquivalent(to: next) })
            else { continue }
            known.append(next)
            found.append(next)
        }
        waiting = (found + waiting)[...]
    }

    /// The next address to ask; nil when there is none.
    mutating func next() -> SIPURI? { waiting.popFirst() }
}

extension UserAgent {
    /// Sends a request on to where it was redirected, or to the next address after one that refused; false when there is none.
    mutating func redirect(_ id: ErrandID, after response: SIPMessage?, at now: MediaTime) -> Bool {
        guard configuration.followsRedirections, var errand = errands[id], !errand.isTakenBack else { return false }
        switch errand.owner {
        case .invite, .user: break
        default: return false
        }
        let status = response?.statusCode ?? 0
        // 305 and 380 name no other address of whom was called.
        let leads = [300, 301, 302].contains(status)
        if let response, leads, let asked = try? errand.request.requestURI() {
            errand.redirection.take(response, asked: asked)
        }
        guard status < 600, let next = errand.redirection.next() else { return false }
        errand.request.setRequestURI(next)
        // What proved something at the one says nothing to the other.
        errand.request.remove(.authorization)
        errand.request.remove(.proxyAuthorization)
        if let former = errand.transaction { errandOfTransaction[former] = nil }
        (errand.targets, errand.transaction) = (nil, nil)
        // Whoever comes next may have what the one before had not.
        if case .invite(let handle) = errand.owner, calls[handle]?.offerIndex ?? 0 > 0 {
            _ = offer(0, in: &errand, of: handle)
        }
        errands[id] = errand
        errands.setDeadline(of: id, to: nil)
        if case .invite(let handle) = errand.owner {
            calls[handle]?.early = []
            if let response, leads { tell(.progress(handle, response)) }
        }
        resolve(id, at: now)
        return true
    }

    /// Tells a caller to call somebody else instead (302).
    ///
    /// `uri` is told to the caller, who may know better.
    package mutating func redirect(_ handle: CallHandle, to uri: SIPURI, at now: MediaTime) {
        var written: [UInt8] = []
        NameAddress(uri).serialize(into: &written)
        reject(handle, status: 302, [.init(name: .contact, value: String(decoding: written, as: UTF8.self))], at: now)
    }
}
