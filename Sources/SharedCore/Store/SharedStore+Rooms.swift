internal import CallBasics
internal import Foundation
internal import GRDB

extension SharedStore {
    /// Keeps a chat room to which this person was invited.
    ///
    /// Returns: false for a room that is known already.
    package func insert(_ invitation: RoomInvitation, as epoch: Epoch) async throws(StoreError) -> Bool {
        try await write(as: epoch, before: .beforeInsert, after: .afterInsert) { db in
            try db.execute(
                sql:
                    "INSERT INTO room (address, subject, invitedBy, createdAt) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                arguments: [
                    invitation.address.bytes, invitation.subject?.bytes, invitation.invitedBy.bytes,
                    Date().timeIntervalSince1970,
                ]
            )
            return db.changesCount > 0
        }
    }

    /// The chat room of an address; nil when it is not known.
    public func room(address: String) async throws(StoreError) -> StoredRoom? {
        try await read { db in
            try Row.fetchOne(db, sql: "SELECT * FROM room WHERE address = ?", arguments: [address.bytes])
                .map(StoredRoom.init(row:))
        }
    }

    /// The chat rooms, in the order in which they became known.
    public func rooms() async throws(StoreError) -> [StoredRoom] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM room ORDER BY rowid").map(StoredRoom.init(row:))
        }
    }

    /// Forgets a chat room, which this person left.
    public func removeRoom(address: String, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeInsert, after: .afterInsert) { db in
            try db.execute(sql: "DELETE FROM room WHERE address = ?", arguments: [address.bytes])
        }
    }
}

extension StoredRoom {
    fileprivate init(row: Row) throws {
        invitation = RoomInvitation(
            address: try row.string("address"),
            subject: try row.optionalString("subject"),
            invitedBy: try row.string("invitedBy")
        )
        createdAt = try row.date("createdAt")
    }
}
