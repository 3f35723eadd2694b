internal import CallBasics
internal import Foundation
internal import GRDB

extension SharedStore {
    /// The receipts that are still to be sent, the oldest first.
    public func receipts() async throws(StoreError) -> [MessageReceipt] {
        try await read { db in
            try Row.fetchAll(db.cachedStatement(sql: "SELECT * FROM receipt ORDER BY id")).map(
                MessageReceipt.init(row:)
            )
        }
    }

    /// Queues what the senders of a call-id's messages are told of a person who has seen them, in place of a receipt that still waits.
    package func queueDisplayed(callID: String, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeAction, after: .afterAction) { db in
            for row in try Self.rows(callID, db) { try Self.queue(.displayed, of: StoredMessage(row: row).message, db) }
        }
    }

    /// Takes a receipt out that was sent, or that nobody takes.
    package func finish(_ receipt: MessageReceipt, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeAction, after: .afterAction) { db in
            try db.execute(sql: "DELETE FROM receipt WHERE id = ?", arguments: [receipt.id])
        }
    }

    /// Queues a receipt if the sender wants it and can tell of what it is.
    static func queue(_ kind: MessageReceipt.Kind, of message: IncomingMessage, _ db: Database) throws {
        guard message.wantedReceipts.contains(kind), let messageID = message.messageID else { return }
        if kind == .displayed {
            try db.execute(
                sql: "DELETE FROM receipt WHERE message = ? AND kind = ?",
                arguments: [message.key.bytes, MessageReceipt.Kind.delivered.rawValue]
            )
        }
        try db.execute(
            sql: """
                INSERT INTO receipt (message, kind, messageID, recipient, account, createdAt) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT DO NOTHING
                """,
            arguments: [
                message.key.bytes, kind.rawValue, messageID.bytes, (message.room ?? message.sender).bytes,
                message.account?.bytes, Date().timeIntervalSince1970,
            ]
        )
    }

    // MARK: Registrations

    /// How the accounts are registered, ordered by address.
    public func registrations() async throws(StoreError) -> [StoredRegistration] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM registration ORDER BY address").map(StoredRegistration.init(row:))
        }
    }

    /// Says how an account is registered, in place of what was said before.
    package func set(_ registration: StoredRegistration, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeSetting, after: .afterSetting) { db in
            try db.execute(
                sql: """
                    INSERT INTO registration (address, state, reason, expiresAt, isPushServed) VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT (address) DO UPDATE SET state = excluded.state, reason = excluded.reason,
                        expiresAt = excluded.expiresAt, isPushServed = excluded.isPushServed
                    """,
                arguments: [
                    registration.address.bytes, registration.state, registration.reason,
                    registration.expiresAt?.timeIntervalSince1970, registration.isPushServed.map { $0 ? 1 : 0 },
                ]
            )
        }
    }

    /// Forgets how an account was registered.
    package func removeRegistration(address: String, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeSetting, after: .afterSetting) { db in
            try db.execute(sql: "DELETE FROM registration WHERE address = ?", arguments: [address.bytes])
        }
    }

    // MARK: What services keep

    /// What a service has kept for the next one; nil when it has not.
    package func kept(_ key: String) async throws(StoreError) -> [UInt8]? {
        try await read { db in
            let sql = "SELECT value FROM keepsake WHERE key = ?"
            return try Data.fetchOne(db, sql: sql, arguments: [key.bytes]).map { Array($0) }
        }
    }

    /// Keeps something for the next service, in place of what it was.
    package func keep(_ bytes: [UInt8], as key: String, _ epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeSetting, after: .afterSetting) { db in
            try db.execute(
                sql: """
                    INSERT INTO keepsake (key, value) VALUES (?, ?)
                    ON CONFLICT (key) DO UPDATE SET value = excluded.value
                    """,
                arguments: [key.bytes, Data(bytes)]
            )
        }
    }
}

extension MessageReceipt {
    fileprivate init(row: Row) throws {
        guard let kind = Kind(rawValue: try row.string("kind")) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a receipt of no kind")
        }
        self.init(
            id: try row.integer("id"),
            kind: kind,
            messageID: try row.string("messageID"),
            recipient: try row.string("recipient"),
            account: try row.optionalString("account")
        )
    }
}

extension StoredRegistration {
    fileprivate init(row: Row) throws {
        self.init(
            address: try row.string("address"),
            state: try row.string("state"),
            reason: try row.optionalString("reason"),
            expiresAt: try row.optionalDate("expiresAt"),
            isPushServed: try row.optionalInteger("isPushServed").map { $0 != 0 }
        )
    }
}
