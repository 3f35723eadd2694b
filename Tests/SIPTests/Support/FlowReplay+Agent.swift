import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// What a user does, so that our agent sends the next message of a flow.
enum FlowVerb: Hashable, Sendable {
    case register
    /// Registers anew.
    case refresh
    case unregister
    case call(String, by: String? = nil, isOfferDelayed: Bool = false, headers: [String: String] = [:])
    case ring(Int = 0)
    case answer(Int = 0)
    case reject(Int)
    case redirect(String)
    case hangUp(Int = 0)
    /// Has another address, and tells the other side so.
    case move(String)
    case transfer(String)
    /// Has the other side of the first call go on with that of the second.
    case transferToSecond
    case acceptTransfer
    case send(String, to: String)
    /// Lets time go by.
    case wait(Duration)
}

/// What our agent was made with, and what came of it.
struct FlowUser: Sendable {
    var identity: String
    var credentials: Credentials
    /// By the way that its calls go.
    var accounts: [String: AccountHandle] = [:]
    /// Calls in the order of their beginnings.
    var calls: [CallHandle] = []
}

extension FlowReplay where Element == UserAgent {
    /// An agent at the address of its party.
    init(
        agent party: String,
        in flow: RecordedFlow,
        _ transports: [Flow.Transport],
        _ user: FlowUser
    ) throws {
        var configuration = AgentConfiguration(identity: NameAddress(try SIPURI(user.identity)))
        (configuration.transports, configuration.families) = (transports, [.ipv4])
        configuration.takesTransfers = true
        self.init(UserAgent(configuration, seed: 7), as: party, in: flow, transports, user.credentials)
    }

    /// Sends and takes all messages of the flow, each after what the user does for it.
    mutating func run(
        _ user: inout FlowUser,
        _ verbs: [String: [FlowVerb]],
        but differences: [String: Differences]
    ) throws {
        for step in ownSteps {
            if step.to == party { try give(step) }
            for verb in verbs[step.name] ?? [] { try perform(verb, &user) }
            if step.from == party { try expect(step, but: differences[step.name] ?? [:]) }
            for event in events { if case .incoming(let call, _) = event { user.note(call) } }
            expectDialog(step)
        }
        expectNothingElse()
    }

    /// A response that makes a dialog has made it on our side; that of a BYE has ended it.
    private func expectDialog(_ step: RecordedFlow.Step) {
        guard let status = step.message.statusCode, status > 100, let cSeq = try? step.message.cSeq() else { return }
        let callID = Bytes(words.callID(of: step.message.callID?.text ?? ""))
        let call = element.calls.names.compactMap { element.calls[$0] }.first { $0.callID == callID }
        switch (cSeq.method, status) {
        case (.invite, 101..<200):
            let isEarly = call?.dialog.map { $0.state == .early } ?? (call?.earlyDialogs.count == 1)
            #expect(isEarly, "\(step.name) makes no early dialog.")
        case (.invite, 200..<300): #expect(call?.dialog?.state == .confirmed, "\(step.name) makes no dialog.")
        case (.invite, 408...), (.bye, 200): #expect(call == nil, "\(step.name) ends no call.")
        default: break
        }
    }

    /// All is over; nothing is left in any table.
    mutating func expectEmpty(_ user: FlowUser) {
        with { agent, now in
            for call in user.calls { agent.hangUp(call, at: now) }
            for account in user.accounts.values { agent.removeAccount(account, at: now) }
        }
        run(for: .seconds(300))
        var counts = element.counts
        (counts.flows, counts.lookups.kept) = (FlowCounts(), 0)
        #expect(counts == AgentCounts())
    }

    // MARK: Verbs

    private mutating func perform(_ verb: FlowVerb, _ user: inout FlowUser) throws {
        let session = SessionConfiguration.plain(host)
        switch verb {
        case .register:
            let account = try account(by: nil, &user)
            try with { agent, now in try agent.register(account, at: now) }
        case .refresh:
            let account = try account(by: nil, &user)
            with { agent, now in agent.refresh(account, at: now) }
        case .unregister:
            let account = try account(by: nil, &user)
            with { agent, now in agent.unregister(account, at: now) }
        case .call(let uri, let way, let isOfferDelayed, let headers):
            var wishes = UserAgent.CallWishes(session: session, account: try account(by: way, &user))
            wishes.isOfferDelayed = isOfferDelayed
            wishes.headers = headers.map { ($0.key, $0.value) }
            let (target, made) = (try SIPURI(uri), wishes)
            user.note(try with { agent, now in try agent.call(target, made, at: now) })
        case .ring(let index):
            let call = try user.call(index)
            try with { agent, now in try agent.ring(call, at: now) }
        case .answer(let index):
            let call = try user.call(index)
            try with { agent, now in try agent.answer(call, session, at: now) }
        case .reject(let status):
            let call = try user.call(0)
            with { agent, now in agent.reject(call, status: status, at: now) }
        case .redirect(let uri):
            let (call, target) = (try user.call(0), try SIPURI(uri))
            with { agent, now in agent.redirect(call, to: target, at: now) }
        case .hangUp(let index):
            let call = try user.call(index)
            with { agent, now in agent.hangUp(call, at: now) }
        case .move(let host):
            let call = try user.call(0)
            move(to: host)
            with { agent, now in agent.change(call, to: .plain(host), at: now) }
        case .transfer(let uri):
            let (call, target) = (try user.call(0), try SIPURI(uri))
            try with { agent, now in try agent.transfer(call, to: target, at: now) }
        case .transferToSecond:
            let (first, second) = (try user.call(0), try user.call(1))
            try with { agent, now in try agent.transfer(first, to: second, at: now) }
        case .acceptTransfer:
            let call = try user.call(0)
            user.note(try with { agent, now in try agent.acceptTransfer(call, session, at: now) })
        case .send(let text, let uri):
            let (target, body) = (try SIPURI(uri), Array(text.utf8))
            _ = try with { agent, now in
                try agent.send(.message, to: target, type: "text/plain", body: body, at: now)
            }
        case .wait(let duration): run(for: duration)
        }
    }

    private mutating func account(by way: String?, _ user: inout FlowUser) throws -> AccountHandle {
        if let known = user.accounts[way ?? ""] { return known }
        var configuration = AccountConfiguration(identity: NameAddress(try SIPURI(user.identity)))
        configuration.credentials = [user.credentials]
        if let way { configuration.routes = [NameAddress(try SIPURI(way))] }
        if way == nil, transports == [.tls] { configuration.registrar = try SIPURI("sips:ss2.biloxi.example.com") }
        let made = configuration
        let account = with { agent, _ in agent.addAccount(made) }
        user.accounts[way ?? ""] = account
        return account
    }
}

extension FlowUser {
    mutating func note(_ call: CallHandle) {
        if !calls.contains(call) { calls.append(call) }
    }

    func call(_ index: Int) throws -> CallHandle {
        try #require(calls.indices.contains(index) ? calls[index] : nil, "There is no call \(index).")
    }
}
