internal import CallBasics

/// Names a request that is passed on; after its end the name stays unused.
struct ForwardID: SlotName {
    let slot: Int
    let serial: UInt64
}

/// Names one of the ways of such a request.
struct BranchID: SlotName {
    let slot: Int
    let serial: UInt64
}

/// Where a request is passed on to.
struct ForwardTarget: Sendable {
    /// The Request-URI.
    var uri: SIPURI
    /// The flow to it, where one is known.
    var flow: Flow?
    /// Proxies before it.
    var path: [NameAddress] = []
    /// The phone that has to wake first; nil for one that is awake.
    var sleeper: Binding?

    init(uri: SIPURI, flow: Flow? = nil, path: [NameAddress] = []) {
        (self.uri, self.flow, self.path) = (uri, flow, path)
    }

    init(_ binding: Binding) { self.init(uri: binding.contact.uri, flow: binding.flow, path: binding.path) }
}

/// A request that goes on by one way or several, until one answer can go back: a response context.
///
/// Source: RFC 3261, section 16.7
struct Forward: Sendable {
    /// As it came, without the server's own Routes.
    let request: SIPMessage
    let transaction: TransactionID
    /// The flow that it came by.
    let flow: Flow
    let mark: Bytes
    /// Whether a rule has it sent twice.
    let isDoubled: Bool
    /// Its ways that are not at their end.
    var branches: [BranchID] = []
    /// The best final response yet.
    private(set) var best: SIPMessage?
    /// The challenges of all responses that asked for credentials.
    private var challenges: [(name: HeaderName, value: Bytes)] = []
    /// Whether a final response has gone back.
    var isAnswered = false
    /// Whether its sender took it back.
    var isTakenBack = false

    init(_ request: SIPMessage, _ transaction: TransactionID, on flow: Flow, _ mark: Bytes, isDoubled: Bool) {
        (self.request, self.transaction, self.flow) = (request, transaction, flow)
        (self.mark, self.isDoubled) = (mark, isDoubled)
    }

    /// Whether nobody else is to be asked.
    var isOver: Bool { isAnswered || isTakenBack || best?.statusCode ?? 0 >= 600 }

    /// Takes the final response of a way.
    mutating func note(_ response: SIPMessage) {
        for name in [HeaderName.wwwAuthenticate, .proxyAuthenticate] {
            challenges += response.values(of: name).map { (name, $0.detached) }
        }
        if best.map({ Self.rank(response) < Self.rank($0) }) ?? true { best = response }
    }

    /// The answer that goes back once all ways are at their end; nil when there is none to give.
    ///
    /// Throws: `invalidCharacter` when a challenge would end its line
    func answer() throws(SIPError) -> SIPMessage? {
        guard var answer = best, let status = answer.statusCode else { return nil }
        guard status == 401 || status == 407 else { return answer }
        for name in [HeaderName.wwwAuthenticate, .proxyAuthenticate] { answer.remove(name) }
        for challenge in challenges { try answer.append(challenge.name, challenge.value) }
        return answer
    }

    /// 6xx before all; of the others the lowest class, in which those come first that tell how to go on.
    ///
    /// Source: RFC 3261, section 16.7, item 6
    private static func rank(_ response: SIPMessage) -> Int {
        let status = response.statusCode ?? 699
        if status >= 600 { return 0 }
        let isHelpful = [401, 407, 415, 420, 484].contains(status)
        // What a way without an answer leaves says least, and a phone that has the same request by another way.
        return status / 100 * 10 + (isHelpful ? 0 : [408, 482, 503].contains(status) ? 2 : 1)
    }
}

/// One way of a request: past names, targets and flows, to its final response.
struct Branch: Sendable {
    /// What it is a way of.
    enum Purpose: Sendable {
        /// A request whose sender waits for the answer.
        case forward(ForwardID)
        /// An ACK, which ends once it is sent.
        case acknowledgement
        /// A text that was kept, for which nobody waits any more, and how often it has left with this.
        case text(TextID, attempt: Int)
    }

    /// Without the own Via.
    var request: SIPMessage
    let purpose: Purpose
    /// The phone that it waits for; nil once that is awake.
    var sleeper: Binding?
    /// The flow that it is to leave by while that is usable; then that by which it has left.
    var flow: Flow?
    var targets: TargetList?
    var transaction: TransactionID?
    /// Whether it is for `sips:`: it leaves by TLS, or not at all.
    let isSecure: Bool
    /// Whether a provisional response has come.
    var isHeard = false
    /// Whether a 2xx to the INVITE has come: others, and its repeats, may follow.
    var isAccepted = false

    init(_ request: SIPMessage, _ purpose: Purpose, flow: Flow?, isSecure: Bool, sleeper: Binding? = nil) {
        (self.request, self.purpose, self.flow) = (request, purpose, flow)
        (self.isSecure, self.sleeper) = (isSecure, sleeper)
    }

    /// The request that waits for it; nil when none does.
    var forward: ForwardID? { if case .forward(let id) = purpose { id } else { nil } }
}
