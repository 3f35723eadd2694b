import CallBasics
import SDP
import SIPTesting
import Testing

@testable import CallCore
@testable import SIP

/// Alice (0) and Carol (2) call Bob (1), who has a desk with a screen, behind a server that wakes his phone by pushes.
///
/// What the desk orders his agent does at once, or not, and the screen shows what is reported, unless told otherwise.
struct DeskWorld {
    var network: VirtualNetwork
    var desk: CallDesk
    private(set) var accounts: [AccountHandle] = []
    /// What the screen was told, and when.
    private(set) var reports: [(time: MediaTime, report: CallDesk.Report)] = []
    private(set) var orders: [CallDesk.Order] = []
    /// Pushes of the server that were not delivered.
    var pushes: [ServerPush] = []
    /// What the screen says to calls that come.
    var refusal: CallRefusal?
    /// Who is in the conference, and whether Bob is.
    private(set) var grouped: [CallHandle] = []
    private(set) var isPresentInGroup = true
    var canGroup = true
    private var holding: [CallHandle: (isHeld: Bool, ticket: CallDesk.Ticket)] = [:]
    private var actionCount: UInt64 = 0

    init(seed: UInt64 = 1, isAsleep: Bool = true, _ conditions: VirtualNetwork.Conditions = .init()) throws {
        network = VirtualNetwork(seed: seed, conditions)
        desk = CallDesk(seed: seed)
        var configuration = ServerConfiguration(domain: "example.test")
        if isAsleep { configuration.push = PushSettings() }
        _ = network.add(configuration)
        for name in ["alice", "bob", "carol"] {
            let index = try network.add(name)
            var account = AccountConfiguration(identity: NameAddress(try SIPURI("sip:\(name)@example.test")))
            if name == "bob" {
                account.push = try PushParameters(team: "T", bundle: "org.example", tokens: [.voip: Secret("00FC")])
            }
            let made = account
            let handle = network.with(index) { agent, _ in agent.addAccount(made) }
            try network.with(index) { agent, now in try agent.register(handle, at: now) }
            accounts.append(handle)
        }
        run(for: .seconds(1))
    }

    /// Somebody calls Bob, or Bob calls somebody.
    mutating func call(_ uri: String = "sip:bob@example.test", from index: Int = 0) throws -> CallHandle {
        let account = accounts[index]
        return try network.with(index) { agent, now in
            var wishes = UserAgent.CallWishes(session: Self.session(index))
            wishes.account = account
            return try agent.call(SIPURI(uri), wishes, at: now)
        }
    }

    static func session(_ index: Int) -> SessionConfiguration {
        let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        return SessionConfiguration(
            address: "192.0.2.\(index + 1)",
            media: [MediaConfiguration(port: 4000, formats: [format])]
        )
    }

    /// The push that the server sent first reaches Bob.
    mutating func deliverPush(_ change: (inout PushPayload) -> Void = { _ in }) throws {
        try #require(!pushes.isEmpty)
        let push = pushes.removeFirst()
        var payload = PushPayload(callID: push.callID, from: push.from)
        change(&payload)
        desk.receive(payload, at: network.now)
        settle()
    }

    /// The screen wants something with the call that was reported last, or another one.
    @discardableResult
    mutating func act(_ kinds: ProviderAction.Kind..., on call: CallUUID? = nil) -> [UInt64] {
        var actions: [ProviderAction] = []
        for kind in kinds {
            actionCount += 1
            actions.append(ProviderAction(id: actionCount, call ?? last, kind))
        }
        desk.perform(actions, at: network.now)
        settle()
        return actions.map(\.id)
    }

    /// The call that was reported last.
    var last: CallUUID {
        for entry in reports.reversed() {
            switch entry.report {
            case .incoming(let uuid, _), .outgoing(let uuid, _, _): return uuid
            default: continue
            }
        }
        return CallUUID()
    }

    /// What the screen was told since the last time, as short words.
    mutating func words() -> [String] {
        defer { reports = [] }
        return reports.map(\.report.word)
    }

    mutating func takeOrders() -> [CallDesk.Order] {
        defer { orders = [] }
        return orders
    }

    /// Lets time go on, for network, agents and desk.
    mutating func run(for duration: Duration) {
        let end = network.now + duration
        while true {
            // From one thing that happens to the next, so that what one says the other hears in its time.
            let next = min(network.nextTime ?? end, desk.deadline ?? end, end)
            network.run(for: max(next - network.now, .zero))
            carry()
            if next == end { return }
        }
    }

    private mutating func carry() {
        for event in network.takeEvents(ofServer: 0) {
            if case .push(let push) = event { pushes.append(push) }
        }
        for event in network.takeEvents(1) { note(event) }
        if let deadline = desk.deadline, deadline <= network.now { desk.handleTimeout(at: network.now) }
        settle()
    }

    private mutating func note(_ event: AgentEvent) {
        switch event {
        case .incoming(let handle, let invite):
            let from = (try? invite.from()).map { $0.uri.bytes.text } ?? ""
            let update = CallUpdate(invite, from: (from, nil))
            desk.receive(handle, callID: invite.callID?.text ?? "", update, at: network.now)
        case .established(let handle): desk.noteConnected(handle, at: network.now)
        case .agreed(let handle, let session):
            let isHeld = session.audio?.isHeldLocally ?? false
            desk.noteHeld(handle, isHeld)
            guard let wish = holding[handle], wish.isHeld == isHeld else { return }
            holding[handle] = nil
            desk.done(wish.ticket, isDone: true, at: network.now)
        case .changeRefused(let handle, _):
            if let wish = holding.removeValue(forKey: handle) { desk.done(wish.ticket, isDone: false, at: network.now) }
        case .ended(let handle, let end): desk.noteEnd(handle, ReportedEnd(end))
        default: break
        }
    }

    mutating func settle() {
        while let output = desk.poll() {
            switch output {
            case .report(let report):
                reports.append((network.now, report))
                if case .incoming(let uuid, _) = report { desk.note(uuid, refusal) }
            case .order(let order):
                orders.append(order)
                obey(order)
            }
        }
    }

    private mutating func obey(_ order: CallDesk.Order) {
        switch order {
        case .register:
            let account = accounts[1]
            network.with(1) { agent, now in agent.refresh(account, at: now) }
        case .ring(let handle): network.with(1) { agent, now in try? agent.ring(handle, at: now) }
        case .answer(let handle, let ticket):
            let isDone: Void? = network.with(1) { agent, now in
                try? agent.answer(handle, Self.session(1), at: now)
            }
            desk.done(ticket, isDone: isDone != nil, at: network.now)
        case .reject(let handle, let status):
            network.with(1) { agent, now in agent.reject(handle, status: status, at: now) }
        case .hangUp(let handle): network.with(1) { agent, now in agent.hangUp(handle, at: now) }
        case .start(let uuid, let uri, _, let ticket):
            guard let handle = try? call(uri, from: 1), let id = network.nodes[1].agent.callID(of: handle) else {
                return desk.done(ticket, isDone: false, at: network.now)
            }
            desk.started(uuid, handle, callID: id, ticket, at: network.now)
        case .hold(let handle, let isHeld, let ticket):
            holding[handle] = (isHeld, ticket)
            network.with(1) { agent, now in
                guard var session = agent.session(of: handle) else { return }
                session.hold = isHeld ? .withMusic : nil
                agent.change(handle, to: session, at: now)
            }
        case .group(let handles, let ticket):
            if canGroup { grouped += handles }
            desk.done(ticket, isDone: canGroup, at: network.now)
        case .ungroup(let handle, let ticket):
            grouped.removeAll { $0 == handle }
            desk.done(ticket, isDone: true, at: network.now)
        case .attend(let isPresent): isPresentInGroup = isPresent
        case .keys(_, _, let ticket): desk.done(ticket, isDone: true, at: network.now)
        case .mute, .noteMissed: break
        }
    }
}

extension CallDesk.Report {
    var word: String {
        switch self {
        case .incoming(_, let update): "incoming \(update.remote)" + (update.isPlaceholder ? " by push" : "")
        case .outgoing(_, let update, let stage): "outgoing \(update.remote) \(stage)"
        case .updated(_, let update):
            "updated \(update.remote)" + (update.isGrouped ? " grouped" : "") + (update.isHeld ? " held" : "")
        case .ended(_, let reason): "ended \(reason)"
        case .performed(let action, let outcome):
            switch outcome {
            case .fulfilled: "\(action.id) fulfilled"
            case .failed(let fault): "\(action.id) failed \(fault)"
            }
        }
    }
}
