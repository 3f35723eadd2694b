internal import CallBasics
internal import GRDB

extension SharedStore {
    /// Queues what a person did with a notification, until a core has carried it out.
    ///
    /// Returns: false for an action that is queued already.
    @discardableResult
    package func enqueue(_ action: MessageAction) async throws(StoreError) -> Bool {
        try await write(before: .beforeAction, after: .afterAction) { db in
            let reply: String? =
                switch action.kind {
                case .reply(let text): text
                case .markAsSeen: nil
                }
            // One that was refused may be tried anew, when somebody asks for that.
            try db.execute(
                sql: "DELETE FROM action WHERE id = ? AND refusal IS NOT NULL",
                arguments: [action.id.bytes]
            )
            try db.execute(
                sql: "INSERT INTO action (id, callID, reply, queuedAt) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                arguments: [action.id.bytes, action.callID.bytes, reply?.bytes, try Boot.groupTime(db)]
            )
            return db.changesCount > 0
        }
    }

    /// The queued actions, the next one first.
    package func actions() async throws(StoreError) -> [MessageAction] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM action WHERE refusal IS NULL ORDER BY attempts, position").map(
                MessageAction.init(row:)
            )
        }
    }

    /// The action to carry out next, and counts the attempt: of those that do not wait for each other, the one that was tried
    /// least often.
    ///
    /// Replies to one receiver are carried out in the order in which they were queued; the lanes of `closed` are left out.
    /// It stays queued until it is finished. A core that dies in between leaves it to the next, so the far end may see it twice,
    /// with the same identifier.
    package func nextAction(
        as epoch: Epoch,
        butNot closed: Set<String> = []
    ) async throws(StoreError) -> ActionAttempt? {
        try await write(as: epoch, before: .beforeAction, after: .afterAction) { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT *, (SELECT COALESCE(room, sender) FROM message WHERE message.callID = action.callID
                        ORDER BY message.id LIMIT 1) AS receiver
                    FROM action WHERE refusal IS NULL ORDER BY position
                    """
            )
            var seen = closed
            var next: ActionAttempt?
            let now = try Boot.groupTime(db)
            for row in rows {
                let attempt = try ActionAttempt(row: row, now)
                guard seen.insert(attempt.lane).inserted else { continue }
                if attempt.count < next?.count ?? .max { next = attempt }
            }
            guard let next else { return nil }
            try db.execute(
                sql: "UPDATE action SET attempts = attempts + 1 WHERE id = ?",
                arguments: [next.action.id.bytes]
            )
            return next
        }
    }

    /// Removes an action that was carried out.
    package func finish(_ action: MessageAction, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeAction, after: .afterAction) { db in
            try db.execute(sql: "DELETE FROM action WHERE id = ?", arguments: [action.id.bytes])
        }
    }

    /// Says that an action will never be carried out, and why; what it said is no longer kept.
    package func refuse(_ action: MessageAction, _ reason: String, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeAction, after: .afterAction) { db in
            try db.execute(
                sql: "UPDATE action SET refusal = ?, reply = NULL WHERE id = ?",
                arguments: [reason.bytes, action.id.bytes]
            )
            try db.execute(
                sql: """
                    DELETE FROM action WHERE refusal IS NOT NULL AND position NOT IN
                        (SELECT position FROM action WHERE refusal IS NOT NULL ORDER BY position DESC LIMIT ?)
                    """,
                arguments: [Self.refusalLimit]
            )
        }
    }

    /// The actions that were refused for good, in the order in which they were queued; 256 are kept.
    public func refusedActions() async throws(StoreError) -> [RefusedAction] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM action WHERE refusal IS NOT NULL ORDER BY position").map(
                RefusedAction.init(row:)
            )
        }
    }

    private static let refusalLimit = 256
}

/// An action that is about to be tried.
package struct ActionAttempt: Hashable, Sendable {
    /// What is tried.
    package let action: MessageAction
    /// What only one at a time is tried of.
    package let lane: String
    /// How often it was tried before.
    package let count: Int
    /// Whether it has waited longer than it may.
    package let isLate: Bool

    /// How long an action waits.
    ///
    /// Units: seconds.
    fileprivate static let patience: Int64 = 3 * 24 * 3600
}

extension ActionAttempt {
    fileprivate init(row: Row, _ now: Int64) throws {
        action = try MessageAction(row: row)
        let receiver = try row.optionalString("receiver") ?? ""
        switch action.kind {
        case .reply where !receiver.isEmpty: lane = "to \(receiver)"
        case .reply, .markAsSeen: lane = "id \(action.id)"
        }
        count = Int(clamping: try row.integer("attempts"))
        isLate = try Int64.checked(now.subtractingReportingOverflow(row.integer("queuedAt"))) >= Self.patience
    }
}

extension RefusedAction {
    fileprivate init(row: Row) throws {
        self.init(
            id: try row.string("id"),
            callID: try row.string("callID"),
            reason: try row.string("refusal")
        )
    }
}

extension MessageAction {
    fileprivate init(row: Row) throws {
        id = try row.string("id")
        callID = try row.string("callID")
        kind = try row.optionalString("reply").map(Kind.reply) ?? .markAsSeen
    }
}
