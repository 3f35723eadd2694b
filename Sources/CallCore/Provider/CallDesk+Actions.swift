package import CallBasics
internal import SIP

/// What a screen wants, step by step.
extension CallDesk {
    /// Performs actions one after the other: all of them, or none when one does not fit.
    package mutating func perform(_ transaction: [ProviderAction], at now: MediaTime) {
        let faults = transaction.map(fault)
        guard faults.allSatisfy({ $0 == nil }), steps.joined().count + transaction.count <= Self.stepCount else {
            for (action, fault) in zip(transaction, faults) {
                report(.performed(action, .failed(fault ?? .transactionRefused)))
            }
            return
        }
        wishCount += 1
        var run: [Step] = []
        for action in transaction {
            let limit = now + action.limit
            let step = Step(action: action, call: action.call, kind: action.kind, limit: limit, wish: wishCount)
            noteWish(action)
            let holds = holds(around: action, in: transaction, at: now)
            // Who is taken out of the conference is so before the others are held with it.
            if action.kind == .setGroup(with: nil) {
                run += [step] + holds
            } else {
                run += holds + resumes(before: action, at: now) + [step]
            }
        }
        steps.append(run)
        goOn(at: now)
    }

    /// Why an action cannot be performed; nil when it may be.
    private func fault(of action: ProviderAction) -> ActionOutcome.Fault? {
        guard let entry = self[action.call], entry.stage != .declined else {
            if case .start = action.kind { return nil }
            return .unknownCall
        }
        switch action.kind {
        case .start: return .notNow
        case .answer:
            let isOpen = entry.stage == .pushed || entry.stage == .ringing
            return isOpen && !entry.isAwaited ? nil : .notNow
        case .setHeld, .playDTMF: return entry.isToTalk ? nil : .notNow
        case .setGroup(let other): return groupFault(entry, other)
        case .end, .setMuted: return nil
        }
    }

    /// Whoever else talks is held before a call begins to.
    private func holds(around action: ProviderAction, in transaction: [ProviderAction], at now: MediaTime) -> [Step] {
        var (together, groupStays) = ([action.call], false)
        switch action.kind {
        case .start, .answer, .setGroup(with: nil): break
        case .setHeld(false): groupStays = self[action.call]?.update.isGrouped == true
        case .setGroup(with: let other?): (together, groupStays) = ([action.call, other], true)
        case .end, .setHeld(true), .setMuted, .playDTMF: return []
        }
        var others = entries.filter { entry in
            !together.contains(entry.uuid) && entry.stage == .connected && !entry.update.isHeld
                && !transaction.contains { $0.call == entry.uuid } && !(groupStays && entry.update.isGrouped)
        }
        // To hold one of the conference holds all of it.
        if let first = others.first(where: \.update.isGrouped)?.uuid {
            others.removeAll { $0.update.isGrouped && $0.uuid != first }
        }
        return others.map { own(.setHeld(true), of: $0.uuid, at: now) }
    }

    /// An action of the desk's own.
    func own(_ kind: ProviderAction.Kind, of call: CallUUID, at now: MediaTime) -> Step {
        Step(action: nil, call: call, kind: kind, limit: now + .seconds(5), wish: wishCount)
    }

    /// Remembers that this side is to talk in a call; in one that is not there yet it is when that begins.
    private mutating func noteWish(_ action: ProviderAction) {
        var calls = [action.call]
        switch action.kind {
        case .answer, .setHeld(false): break
        case .setGroup(with: let other?): calls.append(other)
        case .start, .end, .setHeld(true), .setGroup(with: nil), .setMuted, .playDTMF: return
        }
        for index in entries.indices where calls.contains(entries[index].uuid) { entries[index].wish = wishCount }
    }

    /// All calls end at once, and nothing is told of them any more.
    package mutating func reset() {
        let handles = entries.compactMap { entry in entry.handle.map { ($0, entry.stage) } }
        resetCount += 1
        for entry in entries { remember(entry, .failed) }
        (entries, steps) = ([], [])
        attend(true)
        outputs.removeAll { if case .report = $0 { true } else { false } }
        for (handle, stage) in handles {
            order(stage == .ringing ? .reject(handle, status: 603) : .hangUp(handle))
        }
    }

    // MARK: Steps

    /// What was ordered is done, or could not be.
    package mutating func done(_ ticket: Ticket, isDone: Bool, at now: MediaTime) {
        for (row, run) in steps.enumerated() {
            guard let column = run.firstIndex(where: { $0.ticket == ticket }) else { continue }
            let step = steps[row].remove(at: column)
            if case .setGroup(let other) = step.kind, isDone { noteGroup(step.call, with: other) }
            finish(step, isDone ? .fulfilled : .failed(.refused))
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

    package mutating func handleTimeout(at now: MediaTime) {
        for entry in entries where entry.deadline.map({ $0 <= now }) ?? false {
            entries.removeAll { $0.uuid == entry.uuid }
            guard entry.stage == .pushed else {
                remember(entry, .declinedElsewhere, wasPush: true)
                continue
            }
            remember(entry, .unanswered, wasPush: true)
            report(.ended(entry.uuid, .unanswered))
            order(.noteMissed(callID: entry.callID, entry.update))
            drop(entry.uuid)
        }
        for row in steps.indices {
            let late = steps[row].filter { $0.limit.map { $0 <= now } ?? false }
            for step in late {
                finish(step, .failed(.timedOut))
                if case .start = step.kind { forgetUnstarted(step.call) }
            }
            steps[row].removeAll { $0.limit.map { $0 <= now } ?? false }
            for column in steps[row].indices where steps[row][column].patience.map({ $0 <= now }) ?? false {
                steps[row][column].patience = nil
            }
        }
        goOn(at: now)
    }

    /// Begins every step that may begin: one at a time of each call but its end, and of each transaction in its order.
    mutating func goOn(at now: MediaTime) {
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
                    // Who hangs up waits for nobody.
                    guard isFree || step.kind == .end, !waits(step) else { break }
                    begin(row, column, at: now)
                    isMoving = true
                    break
                }
                if isMoving { break }
            }
        }
    }

    /// Whether a step waits until the call that is being answered has its sound.
    private func waits(_ step: Step) -> Bool {
        switch step.kind {
        case .setHeld, .playDTMF, .setGroup(with: nil): self[step.call]?.isBeingAnswered == true
        case .setGroup(with: let other?):
            self[step.call]?.isBeingAnswered == true || self[other]?.isBeingAnswered == true
        case .start, .answer, .end, .setMuted: false
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
            guard self[step.call] == nil else {
                finish(step, .failed(.notNow))
                return nil
            }
            var entry = makeEntry(step.call, .calling, CallUpdate(remote: uri))
            entry.wish = step.wish
            entries.append(entry)
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
            // In the conference this side leaves, and comes back, unless a call is held by itself.
            if entry.update.isGrouped, isHeld || !entry.isOnHold { attend(!isHeld) }
            guard self[step.call]?.update.isHeld != isHeld else {
                finish(step, .fulfilled)
                return nil
            }
            let ticket = makeTicket()
            order(.hold(handle, isHeld, ticket))
            return ticket
        case .setGroup(let other): return group(entry, with: other, step)
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
        thinGroup()
        order(entry.stage == .ringing ? .reject(handle, status: 603) : .hangUp(handle))
    }

    mutating func finish(_ step: Step, _ outcome: ActionOutcome) {
        if let action = step.action { report(.performed(action, outcome)) }
    }

    /// What still waits for a call that has ended fails, but its end.
    mutating func drop(_ uuid: CallUUID) {
        for row in steps.indices {
            for step in steps[row] where step.call == uuid {
                finish(step, step.kind == .end ? .fulfilled : .failed(.unknownCall))
            }
            steps[row].removeAll { $0.call == uuid }
        }
    }
}
