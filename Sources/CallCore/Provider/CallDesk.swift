package import CallBasics
package import SIP

/// What a phone with a screen decides: what the screen is told of each call, what becomes of its actions, and what of a call
/// that only a push has told of.
///
///     push, INVITE, what calls come to ──►  ──► report, to the screen
///     actions, verdicts of the screen ───►  ──► order, to the phone ──done──►
///
/// After each call, `poll` until it is nil. It owns no clock, call or random source but a seed: the same calls give the same
/// outputs.
/// Source: `CallProvider` has the words; RFC 8599
package struct CallDesk: Sendable {
    /// What the screen is told.
    package enum Report: Hashable, Sendable {
        case incoming(CallUUID, CallUpdate)
        case outgoing(CallUUID, CallUpdate, OutgoingStage)
        case updated(CallUUID, CallUpdate)
        case ended(CallUUID, ReportedEnd)
        case performed(ProviderAction, ActionOutcome)
    }

    /// What the phone is to do; those with a ticket are answered by `done`.
    package enum Order: Hashable, Sendable {
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
        /// Takes calls into the conference: all of them, or none.
        case group([CallHandle], Ticket)
        /// Takes a call out of it.
        case ungroup(CallHandle, Ticket)
        /// Whether this side is in the conference.
        case attend(Bool)
        /// A call that a push has told of never came.
        case noteMissed(callID: String?, CallUpdate)
        case keys(CallHandle, String, Ticket)
    }

    package enum Output: Hashable, Sendable {
        case report(Report)
        case order(Order)
    }

    /// Names what is under way.
    package typealias Ticket = UInt64

    /// Counts transactions.
    typealias WishNumber = UInt64

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
        /// Whether this side holds it, as the other side knows.
        var isOnHold = false
        /// What the INVITE of a call is answered that was declined before it was here.
        var declineStatus = 603
        /// When what is pushed, or declined, ends.
        var deadline: MediaTime?
        /// Which transaction last wanted this side to talk in it; nil for a call that the application made by itself.
        var wish: WishNumber?

        /// Whether its user has answered it, and there is no sound yet.
        var isBeingAnswered: Bool { stage == .answering || stage == .pushed && isAwaited }
    }

    /// An action under way, or one of the desk's own that makes room for it.
    struct Step: Sendable {
        /// What the screen is told of; nil for an own one.
        let action: ProviderAction?
        let call: CallUUID
        let kind: ProviderAction.Kind
        var ticket: Ticket?
        /// Until when the next step waits for this one; then it goes on without.
        var patience: MediaTime?
        /// When it counts as failed.
        var limit: MediaTime?
        /// The number of its transaction.
        let wish: WishNumber
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
    static let stepCount = 256

    var entries: [Entry] = []
    var steps: [[Step]] = []
    var outputs: [Output] = []
    /// Whether this side is in the conference; the others are without it, too.
    var isAttending = true
    private var ended: [(callID: String, reason: ReportedEnd, wasPush: Bool)] = []
    private var generator: SeededGenerator
    private var ticketCount: Ticket = 0
    var wishCount: WishNumber = 0
    /// How often all calls were ended at once.
    var resetCount = 0

    /// The seed gives the identifiers of calls that come.
    package init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    package mutating func poll() -> Output? { outputs.isEmpty ? nil : outputs.removeFirst() }

    /// When `handleTimeout` is to be called; nil when nothing waits for time.
    package var deadline: MediaTime? {
        let times =
            entries.compactMap(\.deadline) + steps.joined().flatMap { [$0.patience, $0.limit] }.compactMap(\.self)
        return times.min()
    }

    subscript(uuid: CallUUID) -> Entry? { entries.first { $0.uuid == uuid } }

    func entry(of handle: CallHandle) -> Entry? { entries.first { $0.handle == handle } }

    // MARK: Calls that come

    /// A push has come: it is shown at once, whatever is known of the call.
    @discardableResult
    package mutating func receive(_ push: PushPayload, at now: MediaTime) -> CallUUID? {
        defer { order(.register) }
        if let id = push.callID, let known = entries.first(where: { $0.callID == id }) { return known.uuid }
        let update = CallUpdate(remote: push.from ?? "", displayName: push.displayName, isPlaceholder: true)
        if let former = ended.last(where: { $0.callID == push.callID }) {
            let uuid = makeUUID()
            report(.incoming(uuid, update))
            report(.ended(uuid, former.reason))
            return uuid
        }
        guard entries.count(where: { $0.stage == .pushed }) < Self.pushedCount else { return nil }
        var entry = makeEntry(makeUUID(), .pushed, update)
        (entry.callID, entry.deadline) = (push.callID, now + Self.pushPatience)
        entries.append(entry)
        report(.incoming(entry.uuid, update))
        return entry.uuid
    }

    /// An INVITE has come.
    package mutating func receive(_ handle: CallHandle, callID: String, _ update: CallUpdate, at now: MediaTime) {
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
            order(.reject(handle, status: entries[index].declineStatus))
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
    package mutating func note(_ uuid: CallUUID, _ refusal: CallRefusal?) {
        guard let index = entries.firstIndex(where: { $0.uuid == uuid }) else { return }
        if let refusal {
            if let handle = entries[index].handle {
                let entry = entries.remove(at: index)
                remember(entry, .failed)
                thinGroup()
                // One that was answered meanwhile has nobody who would end it.
                order(entry.stage == .ringing ? .reject(handle, status: refusal.status) : .hangUp(handle))
            } else {
                (entries[index].stage, entries[index].declineStatus) = (.declined, refusal.status)
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
    package mutating func noteConnected(_ handle: CallHandle, at now: MediaTime) {
        guard let index = entries.firstIndex(where: { $0.handle == handle }), entries[index].stage != .connected else {
            return
        }
        let isNews = entries[index].stage == .calling
        entries[index].stage = .connected
        if isNews { report(.outgoing(entries[index].uuid, entries[index].update, .connected)) }
        if entries[index].isMuted { order(.mute(handle, true)) }
        if isOutdone(entries[index]) { steps.append([own(.setHeld(true), of: entries[index].uuid, at: now)]) }
        goOn(at: now)
    }

    /// Whether this side was to talk in another call after it was to talk in this one, and does so.
    private func isOutdone(_ entry: Entry) -> Bool {
        guard let wish = entry.wish else { return false }
        return entries.contains { other in
            other.isToTalk && !other.update.isHeld && other.wish.map { $0 > wish } ?? false
        }
    }

    /// Another call was answered in the place of one: to the screen it is that one.
    ///
    /// Its sound goes on, and so its seat in the conference.
    package mutating func noteReplaced(
        _ former: CallHandle,
        by handle: CallHandle,
        callID: String,
        _ update: CallUpdate
    ) {
        // A push that was ahead of it.
        for entry in entries where entry.handle == nil && entry.callID == callID {
            entries.removeAll { $0.uuid == entry.uuid }
            report(.ended(entry.uuid, .remoteEnded))
            drop(entry.uuid)
        }
        guard let index = entries.firstIndex(where: { $0.handle == former }) else {
            // The screen has just ended it.
            return order(.hangUp(handle))
        }
        var shown = update
        (shown.isHeld, shown.isGrouped) = (entries[index].update.isHeld, entries[index].update.isGrouped)
        (entries[index].handle, entries[index].callID) = (handle, callID)
        // Of an own call that rang, the screen has yet to hear that it is answered.
        if entries[index].stage != .calling { entries[index].stage = .answering }
        entries[index].update = shown
        report(.updated(entries[index].uuid, shown))
    }

    /// This side holds a call, or does not any more.
    package mutating func noteHeld(_ handle: CallHandle, _ isHeld: Bool) {
        guard let index = entries.firstIndex(where: { $0.handle == handle }) else { return }
        entries[index].isOnHold = isHeld
        show(index)
    }

    /// A call has ended; `reason` is told unless the screen has ended it.
    package mutating func noteEnd(_ handle: CallHandle, _ reason: ReportedEnd) {
        guard let index = entries.firstIndex(where: { $0.handle == handle }) else { return }
        let entry = entries.remove(at: index)
        remember(entry, reason)
        report(.ended(entry.uuid, reason))
        drop(entry.uuid)
        thinGroup()
    }

    /// The phone is closed: what pushes have told of does not come any more.
    mutating func close() {
        for entry in entries where entry.handle == nil && !entry.isOutgoing {
            entries.removeAll { $0.uuid == entry.uuid }
            guard entry.stage == .pushed else { continue }
            report(.ended(entry.uuid, .failed))
            drop(entry.uuid)
        }
    }

    // MARK: Small things

    mutating func report(_ report: Report) { outputs.append(.report(report)) }

    mutating func order(_ order: Order) { outputs.append(.order(order)) }

    private mutating func makeUUID() -> CallUUID { CallUUID(&generator) }

    mutating func makeTicket() -> Ticket {
        ticketCount += 1
        return ticketCount
    }

    func makeEntry(_ uuid: CallUUID, _ stage: Stage, _ update: CallUpdate) -> Entry {
        Entry(uuid: uuid, stage: stage, update: update, isOutgoing: stage == .calling)
    }

    /// Keeps in mind what became of a call, for pushes and INVITEs that come late.
    mutating func remember(
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
