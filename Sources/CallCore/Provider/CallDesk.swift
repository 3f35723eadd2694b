internal import CallBasics
internal import SIP

/// What a phone with a screen decides: what the screen is told of each call, what becomes of its actions, and what of a call
/// that only a push has told of.
///
///     push, INVITE, what calls come to ──►  ──► report, to the screen
///     actions, verdicts of the screen ───►  ──► order, to the phone ──done──►
///
/// After each call, `poll` until it is nil. It owns no clock, call or random source but a seed: the same calls give the same
/// outputs.
/// Source: `CallProvider` has the words; RFC 8599
struct CallDesk: Sendable {
    /// What the screen is told.
    enum Report: Hashable, Sendable {
        case incoming(CallUUID, CallUpdate)
        case outgoing(CallUUID, CallUpdate, OutgoingStage)
        case updated(CallUUID, CallUpdate)
        case ended(CallUUID, ReportedEnd)
        case performed(ProviderAction, ActionOutcome)
    }

    /// What the phone is to do; those with a ticket are answered by `done`.
    enum Order: Hashable, Sendable {
        /// Registers all accounts that a push may be for.
        case register
        case ring(CallHandle)
        case answer(CallHandle, Ticket)
        case reject(CallHandle, status: Int)
        case hangUp(CallHandle)
        /// Done with the call by `started`.
        case start(CallUUID, to: String, account: String?, Ticket)
        /// Done when the other side has agreed, or refused.
        case hold(CallHandle, Bool, Ticket)
        case mute(CallHandle, Bool)
        case keys(CallHandle, String, Ticket)
    }

    enum Output: Hashable, Sendable {
        case report(Report)
        case order(Order)
    }

    /// Names what is under way.
    typealias Ticket = UInt64

    /// How far a call is.
    enum Stage: Hashable, Sendable {
        /// A push has told of it.
        case pushed
        /// Its INVITE is here.
        case ringing
        case answering
        /// This side calls.
        case calling
        case connected
        /// It was declined before its INVITE was here, and is refused when that comes.
        case declined
    }

    struct Entry: Sendable {
        let uuid: CallUUID
        var handle: CallHandle?
        var callID: String?
        var stage: Stage
        var update: CallUpdate
        let isOutgoing: Bool
        /// Whether the screen has taken it in; before, nothing rings.
        var isShown = false
        /// Whether it is to be answered as soon as its INVITE is here.
        var isAwaited = false
        var isMuted = false
        /// When what is pushed, or declined, ends.
        var deadline: MediaTime?
        /// Counts up.
        let order: UInt64
    }

    /// An action under way, or one of the desk's own that makes room for it.
    private struct Step: Sendable {
        /// What the screen is told of; nil for an own one.
        let action: ProviderAction?
        let call: CallUUID
        let kind: ProviderAction.Kind
        var ticket: Ticket?
        /// Until when the next step waits for this one; then it goes on without.
        var patience: MediaTime?
        /// When it counts as failed.
        var limit: MediaTime?
    }

    /// How long a push may be ahead of its INVITE.
    static let pushPatience = Duration.seconds(15)
    /// How long a call that was declined by its push is remembered.
    static let declinePatience = Duration.seconds(20)
    /// How long an action waits for that before it in its transaction.
    static let stepPatience = Duration.seconds(2)
    /// Calls that have ended, or were given up, whose pushes and INVITEs may still come.
    private static let endedCount = 64
    /// Calls that pushes have told of and whose INVITEs are not here.
    static let pushedCount = 16
    /// Actions that wait.
    private static let stepCount = 256

    private(set) var entries: [Entry] = []
    private var steps: [[Step]] = []
    private var outputs: [Output] = []
    private var ended: [(callID: String, reason: ReportedEnd, wasPush: Bool)] = []
    private var generator: SeededGenerator
    private var ticketCount: Ticket = 0
    private var entryCount: UInt64 = 0

    /// The seed gives the identifiers of calls that come.
    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    mutating func poll() -> Output? { outputs.isEmpty ? nil : outputs.removeFirst() }

    /// When `handleTimeout` is to be called; nil when nothing waits for time.
    var deadline: MediaTime? {
        let times =
            entries.compactMap(\.deadline) + steps.joined().flatMap { [$0.patience, $0.limit] }.compactMap(\.self)
        return times.min()
    }

    subscript(uuid: CallUUID) -> Entry? { entries.first { $0.uuid == uuid } }

    func entry(of handle: CallHandle) -> Entry? { entries.first { $0.handle == handle } }

    // MARK: Calls that come

    /// A push has come: it is shown at once, whatever is known of the call.
    mutating func receive(_ push: PushPayload, at now: MediaTime) {
        defer { order(.register) }
        if let id = push.callID, entries.contains(where: { $0.callID == id }) { return }
        let update = CallUpdate(remote: push.from ?? "", displayName: push.displayName, isPlaceholder: true)
        if let former = ended.last(where: { $0.callID == push.callID }) {
            let uuid = makeUUID()
            report(.incoming(uuid, update))
            return report(.ended(uuid, former.reason))
        }
        guard entries.count(where: { $0.stage == .pushed }) < Self.pushedCount else { return }
        var entry = makeEntry(makeUUID(), .pushed, update)
        (entry.callID, entry.deadline) = (push.callID, now + Self.pushPatience)
        entries.append(entry)
        report(.incoming(entry.uuid, update))
    }

    /// An INVITE has come.
    mutating func receive(_ handle: CallHandle, callID: String, _ update: CallUpdate, at now: MediaTime) {
        if ended.contains(where: { $0.callID == callID && $0.wasPush }) {
            return order(.reject(handle, status: 410))
        }
        guard let index = indexOfPushed(callID, update.remote) else {
            var entry = makeEntry(makeUUID(), .ringing, update)
            (entry.handle, entry.callID) = (handle, callID)
            entries.append(entry)
            return report(.incoming(entry.uuid, update))
        }
        guard entries[index].stage == .pushed else {
            order(.reject(handle, status: 603))
            remember(entries[index], .declinedElsewhere, as: callID)
            entries.remove(at: index)
            return
        }
        entries[index].handle = handle
        (entries[index].callID, entries[index].stage, entries[index].deadline) = (callID, .ringing, nil)
        entries[index].update = update
        report(.updated(entries[index].uuid, update))
        if entries[index].isAwaited {
            entries[index].stage = .answering
            order(.answer(handle, makeTicket()))
        } else if entries[index].isShown {
            order(.ring(handle))
        }
    }

    /// What a push has told of: by the Call-ID, else by the caller, else the oldest push that says nothing of both.
    private func indexOfPushed(_ callID: String, _ remote: String) -> Int? {
        let waiting = entries.indices.filter { entries[$0].handle == nil && !entries[$0].isOutgoing }
        if let same = waiting.first(where: { entries[$0].callID == callID }) { return same }
        let caller = Self.place(of: remote)
        if let caller, let same = waiting.first(where: { Self.place(of: entries[$0].update.remote) == caller }) {
            return same
        }
        return waiting.first { entries[$0].callID == nil && entries[$0].update.remote.isEmpty }
    }

    /// The user and host of an address.
    private static func place(of remote: String) -> String? {
        guard let uri = try? SIPURI(remote), let user = uri.user else { return nil }
        return "\(user)@\(uri.host.lowercased())"
    }

    /// The screen shows a call, or not.
    mutating func note(_ uuid: CallUUID, _ refusal: CallRefusal?) {
        guard let index = entries.firstIndex(where: { $0.uuid == uuid }) else { return }
        if let refusal {
            if let handle = entries[index].handle {
                order(.reject(handle, status: refusal.status))
                entries.remove(at: index)
            } else {
                entries[index].stage = .declined
            }
            return drop(uuid)
        }
        entries[index].isShown = true
        if entries[index].stage == .ringing, let handle = entries[index].handle { order(.ring(handle)) }
    }

    // MARK: What calls come to

    /// An own call that no action has begun is under way.
    mutating func noteOutgoing(_ handle: CallHandle, callID: String, _ update: CallUpdate) {
        guard entry(of: handle) == nil else { return }
        var entry = makeEntry(makeUUID(), .calling, update)
        (entry.handle, entry.callID) = (handle, callID)
        entries.append(entry)
        report(.outgoing(entry.uuid, update, .connecting))
    }

    /// A call was answered, by either side.
    mutating func noteConnected(_ handle: CallHandle) {
        guard let index = entries.firstIndex(where: { $0.handle == handle }), entries[index].stage != .connected else {
            return
        }
        entries[index].stage = .connected
        if entries[index].isOutgoing { report(.outgoing(entries[index].uuid, entries[index].update, .connected)) }
        if entries[index].isMuted { order(.mute(handle, true)) }
    }

    /// This side holds a call, or does not any more.
    mutating func noteHeld(_ handle: CallHandle, _ isHeld: Bool) {
        guard let index = entries.firstIndex(where: { $0.handle == handle }), entries[index].update.isHeld != isHeld
        else { return }
        entries[index].update.isHeld = isHeld
        report(.updated(entries[index].uuid, entries[index].update))
    }

    /// A call has ended; `reason` is told unless the screen has ended it.
    mutating func noteEnd(_ handle: CallHandle, _ reason: ReportedEnd) {
        guard let index = entries.firstIndex(where: { $0.handle == handle }) else { return }
        let entry = entries.remove(at: index)
        remember(entry, reason)
        report(.ended(entry.uuid, reason))
        drop(entry.uuid)
    }

    // MARK: What the screen wants

    /// Performs actions one after the other: all of them, or none when one does not fit.
    mutating func perform(_ transaction: [ProviderAction], at now: MediaTime) {
        let faults = transaction.map { action in fault(of: action, in: transaction) }
        guard faults.allSatisfy({ $0 == nil }), steps.joined().count + transaction.count <= Self.stepCount else {
            for (action, fault) in zip(transaction, faults) {
                report(.performed(action, .failed(fault ?? .transactionRefused)))
            }
            return
        }
        var run: [Step] = []
        for action in transaction {
            run += holds(before: action, in: transaction, at: now)
            run.append(Step(action: action, call: action.call, kind: action.kind, limit: now + action.limit))
        }
        steps.append(run)
        goOn(at: now)
    }

    /// Why an action cannot be performed; nil when it may be.
    private func fault(of action: ProviderAction, in transaction: [ProviderAction]) -> ActionOutcome.Fault? {
        guard let entry = self[action.call], entry.stage != .declined else {
            if case .start = action.kind { return nil }
            return .unknownCall
        }
        switch action.kind {
        case .start: return .notNow
        case .answer:
            let isOpen = entry.stage == .pushed || entry.stage == .ringing
            return isOpen && !entry.isAwaited ? nil : .notNow
        case .setHeld, .playDTMF: return entry.stage == .connected ? nil : .notNow
        case .end, .setMuted: return nil
        }
    }

    /// Whoever else talks is held before a call begins to.
    private func holds(before action: ProviderAction, in transaction: [ProviderAction], at now: MediaTime) -> [Step] {
        switch action.kind {
        case .start, .answer, .setHeld(false): break
        case .end, .setHeld(true), .setMuted, .playDTMF: return []
        }
        let others = entries.filter { entry in
            entry.uuid != action.call && entry.stage == .connected && !entry.update.isHeld
                && !transaction.contains { $0.call == entry.uuid }
        }
        return others.map { Step(action: nil, call: $0.uuid, kind: .setHeld(true), limit: now + .seconds(5)) }
    }

    /// All calls end at once, and nothing is told of them any more.
    mutating func reset() {
        let handles = entries.compactMap { entry in entry.handle.map { ($0, entry.stage) } }
        for entry in entries { remember(entry, .failed) }
        (entries, steps) = ([], [])
        outputs.removeAll { if case .report = $0 { true } else { false } }
        for (handle, stage) in handles {
            order(stage == .ringing ? .reject(handle, status: 603) : .hangUp(handle))
        }
    }

    // MARK: Steps

    /// What was ordered is done, or could not be.
    mutating func done(_ ticket: Ticket, isDone: Bool, at now: MediaTime) {
        for (row, run) in steps.enumerated() {
            guard let column = run.firstIndex(where: { $0.ticket == ticket }) else { continue }
            let step = steps[row].remove(at: column)
            if let action = step.action { report(.performed(action, isDone ? .fulfilled : .failed(.refused))) }
            if case .start = step.kind, !isDone { forgetUnstarted(step.call) }
            break
        }
        goOn(at: now)
    }

    /// A call whose INVITE has not left is none; should it leave after all, it is taken back.
    private mutating func forgetUnstarted(_ uuid: CallUUID) {
        entries.removeAll { $0.uuid == uuid && $0.handle == nil }
    }

    /// The INVITE of a call that the screen has started has left.
    mutating func started(_ uuid: CallUUID, _ handle: CallHandle, callID: String, _ ticket: Ticket, at now: MediaTime) {
        guard let index = entries.firstIndex(where: { $0.uuid == uuid }) else { return order(.hangUp(handle)) }
        (entries[index].handle, entries[index].callID) = (handle, callID)
        report(.outgoing(uuid, entries[index].update, .connecting))
        done(ticket, isDone: true, at: now)
    }

    mutating func handleTimeout(at now: MediaTime) {
        for entry in entries where entry.deadline.map({ $0 <= now }) ?? false {
            entries.removeAll { $0.uuid == entry.uuid }
            guard entry.stage == .pushed else { continue }
            remember(entry, .unanswered, wasPush: true)
            report(.ended(entry.uuid, .unanswered))
            drop(entry.uuid)
        }
        for row in steps.indices {
            let late = steps[row].filter { $0.limit.map { $0 <= now } ?? false }
            for step in late {
                if let action = step.action { report(.performed(action, .failed(.timedOut))) }
                if case .start = step.kind { forgetUnstarted(step.call) }
            }
            steps[row].removeAll { $0.limit.map { $0 <= now } ?? false }
            for column in steps[row].indices where steps[row][column].patience.map({ $0 <= now }) ?? false {
                steps[row][column].patience = nil
            }
        }
        goOn(at: now)
    }

    /// Begins every step that may begin: one at a time of each call, and of each transaction in its order.
    private mutating func goOn(at now: MediaTime) {
        var isMoving = true
        while isMoving {
            isMoving = false
            steps.removeAll(where: \.isEmpty)
            var busy: Set<CallUUID> = []
            for row in steps.indices {
                for column in steps[row].indices {
                    let step = steps[row][column]
                    let isFree = busy.insert(step.call).inserted
                    if step.ticket != nil {
                        // The next waits for this one, for a while.
                        if step.patience != nil { break }
                        continue
                    }
                    guard isFree else { break }
                    begin(row, column, at: now)
                    isMoving = true
                    break
                }
                if isMoving { break }
            }
        }
    }

    /// Begins a step, which is over then unless it takes time.
    private mutating func begin(_ row: Int, _ column: Int, at now: MediaTime) {
        var step = steps[row].remove(at: column)
        if let ticket = order(step, at: now) {
            (step.ticket, step.patience) = (ticket, now + Self.stepPatience)
            steps[row].insert(step, at: min(column, steps[row].count))
        }
    }

    /// Does what a step wants; a ticket when that takes time.
    private mutating func order(_ step: Step, at now: MediaTime) -> Ticket? {
        if case .start(let uri, let account) = step.kind {
            entries.append(makeEntry(step.call, .calling, CallUpdate(remote: uri)))
            let ticket = makeTicket()
            order(.start(step.call, to: uri, account: account, ticket))
            return ticket
        }
        guard let index = entries.firstIndex(where: { $0.uuid == step.call }) else {
            finish(step, .failed(.unknownCall))
            return nil
        }
        let entry = entries[index]
        switch step.kind {
        case .start: return nil
        case .answer: return answer(index, step)
        case .end:
            end(index, at: now)
            finish(step, .fulfilled)
            drop(entry.uuid)
        case .setHeld(let isHeld):
            guard let handle = entry.handle, entry.stage == .connected else {
                finish(step, .failed(.notNow))
                return nil
            }
            guard entry.update.isHeld != isHeld else {
                finish(step, .fulfilled)
                return nil
            }
            let ticket = makeTicket()
            order(.hold(handle, isHeld, ticket))
            return ticket
        case .setMuted(let isMuted):
            entries[index].isMuted = isMuted
            if let handle = entry.handle, entry.stage == .connected { order(.mute(handle, isMuted)) }
            finish(step, .fulfilled)
        case .playDTMF(let keys):
            guard let handle = entry.handle, entry.stage == .connected else {
                finish(step, .failed(.notNow))
                return nil
            }
            let ticket = makeTicket()
            order(.keys(handle, keys, ticket))
            return ticket
        }
        return nil
    }

    private mutating func answer(_ index: Int, _ step: Step) -> Ticket? {
        guard entries[index].stage == .ringing, let handle = entries[index].handle else {
            let isPushed = entries[index].stage == .pushed
            if isPushed { entries[index].isAwaited = true }
            finish(step, isPushed ? .fulfilled : .failed(.notNow))
            return nil
        }
        entries[index].stage = .answering
        let ticket = makeTicket()
        order(.answer(handle, ticket))
        return ticket
    }

    /// Ends a call, whatever it is at.
    private mutating func end(_ index: Int, at now: MediaTime) {
        guard let handle = entries[index].handle else {
            guard entries[index].stage == .pushed else {
                // Its INVITE has not left; it is taken back as soon as it has.
                entries.remove(at: index)
                return
            }
            entries[index].stage = .declined
            entries[index].deadline = now + Self.declinePatience
            return
        }
        let entry = entries.remove(at: index)
        remember(entry, .remoteEnded)
        order(entry.stage == .ringing ? .reject(handle, status: 603) : .hangUp(handle))
    }

    private mutating func finish(_ step: Step, _ outcome: ActionOutcome) {
        if let action = step.action { report(.performed(action, outcome)) }
    }

    /// What still waits for a call that has ended fails.
    private mutating func drop(_ uuid: CallUUID) {
        for row in steps.indices {
            for step in steps[row] where step.call == uuid {
                if let action = step.action, action.kind != .end { report(.performed(action, .failed(.unknownCall))) }
                if let action = step.action, action.kind == .end { report(.performed(action, .fulfilled)) }
            }
            steps[row].removeAll { $0.call == uuid }
        }
    }

    // MARK: Small things

    private mutating func report(_ report: Report) { outputs.append(.report(report)) }

    private mutating func order(_ order: Order) { outputs.append(.order(order)) }

    private mutating func makeUUID() -> CallUUID { CallUUID(&generator) }

    private mutating func makeTicket() -> Ticket {
        ticketCount += 1
        return ticketCount
    }

    private mutating func makeEntry(_ uuid: CallUUID, _ stage: Stage, _ update: CallUpdate) -> Entry {
        entryCount += 1
        return Entry(uuid: uuid, stage: stage, update: update, isOutgoing: stage == .calling, order: entryCount)
    }

    /// Keeps in mind what became of a call, for pushes and INVITEs that come late.
    private mutating func remember(
        _ entry: Entry,
        _ reason: ReportedEnd,
        as callID: String? = nil,
        wasPush: Bool = false
    ) {
        guard let id = callID ?? entry.callID else { return }
        ended.append((id, reason, wasPush))
        if ended.count > Self.endedCount { ended.removeFirst() }
    }
}
