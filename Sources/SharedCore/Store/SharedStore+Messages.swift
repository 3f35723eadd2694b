internal import CallBasics
internal import Foundation
internal import GRDB

extension SharedStore {
    /// Keeps a message that was received: only after this may the service acknowledge it to its server.
    ///
    /// The receipt that its sender asked for is queued with it. Of a message that the first version of the store has seen through,
    /// the call-id alone is known.
    ///
    /// Returns: false for a message that is or was here, by its sender's identifier, or by its call-id and what distinguishes it.
    package func insert(_ message: IncomingMessage, as epoch: Epoch) async throws(StoreError) -> Bool {
        try await write(as: epoch, before: .beforeInsert, after: .afterInsert) { db in
            try db.cachedStatement(
                sql: """
                    INSERT INTO message
                        (key, callID, messageID, room, sender, account, text, wantedReceipts, receivedAt)
                    SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
                    WHERE NOT EXISTS (SELECT 1 FROM message WHERE callID = ? AND sender = x'')
                    ON CONFLICT DO NOTHING
                    """
            ).execute(arguments: [
                message.key.bytes, message.callID.bytes, message.messageID?.bytes, message.room?.bytes,
                message.sender.bytes, message.account?.bytes, message.text.bytes,
                message.wantedReceipts.map(\.rawValue).sorted().joined(separator: ","), Date().timeIntervalSince1970,
                message.callID.bytes,
            ])
            guard db.changesCount > 0 else { return false }
            try Self.queue(.delivered, of: message, db)
            return true
        }
    }

    /// The messages that nobody has acknowledged, in the order in which they came.
    public func pending() async throws(StoreError) -> [StoredMessage] {
        try await read { db in
            let sql = "SELECT * FROM message WHERE acknowledgedAt IS NULL ORDER BY id"
            return try Row.fetchAll(db.cachedStatement(sql: sql)).map(StoredMessage.init(row:))
        }
    }

    /// The message of a call-id, whatever became of it; nil when it never came, or was forgotten after its acknowledgement.
    public func message(callID: String) async throws(StoreError) -> StoredMessage? {
        try await read { try Self.row(callID, $0).map(StoredMessage.init(row:)) }
    }

    /// Takes a message, to show it: of all who ask at the same time one gets it.
    ///
    /// The message of a process that has died is taken over, and says that it may have been shown before.
    ///
    /// Returns: nil when there is no such message, another has it, or it was acknowledged.
    public func claim(callID: String, by process: ProcessIdentity) async throws(StoreError) -> ClaimedMessage? {
        // A look without the write lock first: most who ask come too early or too late.
        guard let present = try await message(callID: callID), present.status == .pending else { return nil }
        return try await write(before: .beforeClaim, after: .afterClaim) { db in
            guard let row = try Self.row(callID, db) else { return nil }
            let stored = try StoredMessage(row: row)
            guard stored.status == .pending else { return nil }
            let claims = try row.integer("claims")
            try db.execute(
                sql: "UPDATE message SET claimedByPid = ?, claimedByStart = ?, claims = claims + 1 WHERE id = ?",
                arguments: [process.pid, Int64(clamping: process.startTime), try row.integer("id")]
            )
            return ClaimedMessage(
                message: stored.message,
                receivedAt: stored.receivedAt,
                isRepeated: claims > 0,
                key: try row.string("key"),
                claimant: process
            )
        }
    }

    /// Gives back a message that was not shown, so that another may show it; as if it had never been claimed.
    ///
    /// Returns: false when the claim was no longer this process's.
    @discardableResult
    public func release(_ claim: ClaimedMessage) async throws(StoreError) -> Bool {
        try await write(before: .beforeRelease, after: .afterRelease) { db in
            try db.execute(
                sql: """
                    UPDATE message SET claimedByPid = NULL, claimedByStart = NULL, claims = MAX(0, claims - 1)
                    WHERE key = ? AND claimedByPid = ? AND claimedByStart = ? AND acknowledgedAt IS NULL
                    """,
                arguments: [
                    claim.key.bytes, claim.claimant.pid, Int64(clamping: claim.claimant.startTime),
                ]
            )
            return db.changesCount > 0
        }
    }

    /// Says that a message was shown by the process that claimed it: only now it is gone.
    ///
    /// Its identifiers are remembered within `limits`, so that a late duplicate is known.
    ///
    /// Returns: false when the claim was no longer this process's, or the message is already acknowledged.
    @discardableResult
    public func acknowledge(_ claim: ClaimedMessage) async throws(StoreError) -> Bool {
        try await write(before: .beforeAcknowledge, after: .afterAcknowledge) { db in
            let now = try Boot.groupTime(db)
            let last = try Int64.fetchOne(db, sql: "SELECT acknowledged FROM meta") ?? 0
            let order = try Int64.checked(last.addingReportingOverflow(1))
            let (count, age) = (self.limits.acknowledgedCount, self.limits.acknowledgedAge.components.seconds)
            let lastForgotten = try Int64.checked(order.subtractingReportingOverflow(Int64(count)))
            let earliest = try Int64.checked(now.subtractingReportingOverflow(age))
            try db.execute(
                sql: """
                    UPDATE message SET acknowledgedAt = ?, acknowledgedOrder = ?, claimedByPid = NULL, claimedByStart = NULL,
                        text = x''
                    WHERE key = ? AND claimedByPid = ? AND claimedByStart = ? AND acknowledgedAt IS NULL
                    """,
                arguments: [
                    now, order, claim.key.bytes, claim.claimant.pid, Int64(clamping: claim.claimant.startTime),
                ]
            )
            guard db.changesCount > 0 else { return false }
            try db.execute(sql: "UPDATE meta SET acknowledged = ?", arguments: [order])
            try db.execute(sql: "DELETE FROM message WHERE acknowledgedOrder <= ?", arguments: [lastForgotten])
            try db.execute(sql: "DELETE FROM message WHERE acknowledgedAt < ?", arguments: [earliest])
            return true
        }
    }

    /// How many messages wait, and how many were acknowledged since the group was created.
    public func counts() async throws(StoreError) -> MessageCounts {
        try await read { db in
            MessageCounts(
                pending: try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM message WHERE acknowledgedAt IS NULL") ?? 0,
                acknowledged: try Int.fetchOne(db, sql: "SELECT acknowledged FROM meta") ?? 0
            )
        }
    }

    /// Of several messages of one call-id the first that can be claimed; when none can, one that is claimed, else the last.
    private static func row(_ callID: String, _ db: Database) throws -> Row? {
        let rows = try rows(callID, db)
        let unseen = try rows.filter { try $0.optionalInteger("acknowledgedAt") == nil }
        let open = try unseen.first { try $0.process("claimedByPid", "claimedByStart")?.isAlive != true }
        return open ?? unseen.first ?? rows.last
    }

    /// The messages of a call-id, in the order in which they came: those of the sender who had it first.
    ///
    /// Whoever else uses it is not found by it: what is done with a message, as a reply, goes to whom it was for.
    static func rows(_ callID: String, _ db: Database) throws -> [Row] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT * FROM message WHERE callID = ?1
                    AND sender = (SELECT sender FROM message WHERE callID = ?1 ORDER BY id LIMIT 1)
                ORDER BY id
                """
        )
        return try Row.fetchAll(statement, arguments: [callID.bytes])
    }
}

extension StoredMessage {
    /// A claim counts while its process lives.
    init(row: Row) throws {
        var message = IncomingMessage(
            callID: try row.string("callID"),
            messageID: try row.optionalString("messageID"),
            room: try row.optionalString("room"),
            sender: try row.string("sender"),
            text: try row.string("text")
        )
        message.account = try row.optionalString("account")
        message.wantedReceipts = Set(
            try row.string("wantedReceipts").split(separator: ",").compactMap { MessageReceipt.Kind(rawValue: "\($0)") }
        )
        self.message = message
        receivedAt = try row.date("receivedAt")
        let claimant = try row.process("claimedByPid", "claimedByStart")
        status =
            if try row.optionalInteger("acknowledgedAt") != nil {
                .acknowledged
            } else if let claimant, claimant.isAlive {
                .claimed(claimant)
            } else {
                .pending
            }
    }
}
