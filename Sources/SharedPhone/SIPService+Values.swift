internal import CallCore
internal import Foundation
internal import SharedCore

extension PhoneError {
    /// Whether it will be the same the next time.
    var isFinal: Bool {
        switch code {
        case .refused(let status): ![401, 407, 408, 480, 486].contains(status) && !(500..<600).contains(status)
        case .invalid: true
        default: false
        }
    }
}

extension PhoneError {
    var isOfPassword: Bool { code == .refused(status: 401) || code == .refused(status: 407) }
}

extension IncomingMessage {
    init(_ text: PhoneText) {
        self.init(callID: text.callID, messageID: text.id, room: text.room, sender: text.sender, text: text.text)
        (distinction, account) = (text.distinction, text.account)
        if text.wantedReceipts.contains(.delivered) { wantedReceipts.insert(.delivered) }
        if text.wantedReceipts.contains(.displayed) { wantedReceipts.insert(.displayed) }
    }
}

extension RoomInvitation {
    init(_ invitation: PhoneInvitation) {
        self.init(address: invitation.room, subject: invitation.subject, invitedBy: invitation.inviter)
    }
}

/// A room that an account of the group is in, for the next process.
struct KeptRoom: Codable, Hashable {
    private static let name = "sip.rooms"

    let address: String
    let account: String?
    let subject: String?

    /// What the process before this one has kept, by address.
    ///
    /// - Throws: `StoreError`
    static func all(in store: SharedStore) async throws -> [String: KeptRoom] {
        let kept = try await store.kept(name)
        let rooms = kept.flatMap { try? JSONDecoder().decode([KeptRoom].self, from: Data($0)) } ?? []
        return rooms.reduce(into: [:]) { $0[$1.address] = $1 }
    }

    /// Keeps all rooms in the place of those before.
    ///
    /// - Throws: `StoreError`
    static func keep(_ rooms: [String: KeptRoom], in store: SharedStore, as epoch: Epoch) async throws {
        let bytes = try JSONEncoder().encode(rooms.values.sorted { $0.address < $1.address })
        try await store.keep(Array(bytes), as: name, epoch)
    }
}

extension CallRecord {
    /// A call that has come, and of which nothing else is known; what becomes of it takes the place of this.
    init(waiting call: PhoneCall) {
        self.init(callID: call.callID, remote: call.remote, direction: .incoming, startedAt: Date(), duration: nil)
    }

    init(_ entry: CallLogEntry) {
        self.init(
            callID: entry.id,
            remote: entry.remote,
            direction: entry.isOutgoing ? .outgoing : .incoming,
            startedAt: Date(timeIntervalSince1970: TimeInterval(entry.unixSeconds)),
            duration: entry.outcome == .talked ? .milliseconds(Int64(entry.talkSeconds * 1000)) : nil
        )
    }
}
