internal import CallBasics
internal import SIP

/// The conference of a phone: which calls are in it, and whether this side is.
///
/// It has two calls or more; the last one that is left in it talks on alone, as soon as this side is there.
extension CallDesk {
    /// Why calls cannot be taken into the conference, or one out of it; nil when they may.
    func groupFault(_ entry: Entry, _ other: CallUUID?) -> ActionOutcome.Fault? {
        guard let other else { return entry.isToTalk ? nil : .notNow }
        guard let partner = self[other], partner.stage != .declined else { return .unknownCall }
        return other != entry.uuid && entry.isToTalk && partner.isToTalk ? nil : .notNow
    }

    /// Those of the two that are held talk again before they are in the conference.
    func resumes(before action: ProviderAction, at now: MediaTime) -> [Step] {
        guard case .setGroup(with: let other?) = action.kind else { return [] }
        let held = [action.call, other].compactMap { self[$0] }.filter(\.isOnHold)
        return held.map { own(.setHeld(false), of: $0.uuid, at: now) }
    }

    /// Takes a call and another one into the conference, or the one out of it; a ticket when that takes time.
    mutating func group(_ entry: Entry, with other: CallUUID?, _ step: Step) -> Ticket? {
        guard let handle = entry.handle, entry.stage == .connected else {
            finish(step, .failed(.notNow))
            return nil
        }
        guard let other else {
            guard entry.update.isGrouped else {
                finish(step, .fulfilled)
                return nil
            }
            let ticket = makeTicket()
            order(.ungroup(handle, ticket))
            return ticket
        }
        guard let partner = self[other], let second = partner.handle else {
            finish(step, .failed(.unknownCall))
            return nil
        }
        let both = [(entry, handle), (partner, second)]
        let added = both.filter { !$0.0.update.isGrouped }.map(\.1)
        // There is one conference, and who is to talk in it is not held.
        let hasOthers = entries.contains(where: \.update.isGrouped) && added.count == 2
        guard partner.stage == .connected, !hasOthers else {
            finish(step, .failed(.notNow))
            return nil
        }
        guard !both.contains(where: \.0.isOnHold) else {
            finish(step, .failed(.refused))
            return nil
        }
        guard !added.isEmpty else {
            attend(true)
            finish(step, .fulfilled)
            return nil
        }
        let ticket = makeTicket()
        order(.group(added, ticket))
        return ticket
    }

    /// Calls have been taken into the conference, or one out of it.
    mutating func noteGroup(_ call: CallUUID, with other: CallUUID?) {
        let changed = entries.indices.filter { entries[$0].uuid == call || entries[$0].uuid == other }
        for index in changed { entries[index].update.isGrouped = other != nil }
        if other != nil, !isAttending {
            isAttending = true
            order(.attend(true))
        }
        for index in entries.indices { show(index, always: changed.contains(index)) }
        thinGroup()
    }

    /// This side is in the conference from now on, or not.
    mutating func attend(_ isAttending: Bool) {
        guard isAttending != self.isAttending else { return }
        self.isAttending = isAttending
        order(.attend(isAttending))
        for index in entries.indices { show(index) }
        thinGroup()
    }

    /// The last one that is left in the conference talks on alone; without any, this side is in the next one.
    mutating func thinGroup() {
        let members = entries.indices.filter { entries[$0].update.isGrouped }
        if members.isEmpty { return attend(true) }
        guard members.count == 1, isAttending, let index = members.first, let handle = entries[index].handle else {
            return
        }
        entries[index].update.isGrouped = false
        order(.ungroup(handle, makeTicket()))
        show(index, always: true)
    }

    /// Reports what a call is at, when that is news.
    mutating func show(_ index: Int, always: Bool = false) {
        let isHeld = entries[index].isOnHold || entries[index].update.isGrouped && !isAttending
        guard always || entries[index].update.isHeld != isHeld else { return }
        entries[index].update.isHeld = isHeld
        report(.updated(entries[index].uuid, entries[index].update))
    }
}

extension CallDesk.Entry {
    /// Whether it talks, or is about to.
    var isToTalk: Bool { stage == .connected || isBeingAnswered }
}
