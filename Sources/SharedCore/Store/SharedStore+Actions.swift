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
            try db.execute(
                sql: "INSERT INTO action (id, callID, reply) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                arguments: [action.id.bytes, action.callID.bytes, reply?.bytes]
            )
            return db.changesCount > 0
        }
    }

    /// The queued actions, the next one first.
    package func actions() async throws(StoreError) -> [MessageAction] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM action ORDER BY attempts, position").map(MessageAction.init(row:))
        }
    }

    /// The action to carry out next, and counts the attempt: one that fails goes behind those that were tried less often.
    ///
    /// Those whose identifiers are in `refused` are left out.
    /// It stays queued until it is finished. A core that dies in between leaves it to the next, so the far end may see it twice,
    /// with the same identifier.
    package func nextAction(
        as epoch: Epoch,
        butNot refused: Set<String> = []
    ) async throws(StoreError) -> MessageAction? {
        try await write(as: epoch, before: .beforeAction, after: .afterAction) { db in
            let rows = try Row.fetchCursor(db, sql: "SELECT * FROM action ORDER BY attempts, position")
            // The cursor gives one row again and again, which a copy outlives.
            let next = try rows.first { try !refused.contains($0.string("id")) }
            guard let row = next?.copy() else { return nil }
            try db.execute(
                sql: "UPDATE action SET attempts = attempts + 1 WHERE position = ?",
                arguments: [try row.integer("position")]
            )
            return try MessageAction(row: row)
        }
    }

    /// Removes an action that was carried out.
    package func finish(_ action: MessageAction, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeAction, after: .afterAction) { db in
            try db.execute(sql: "DELETE FROM action WHERE id = ?", arguments: [action.id.bytes])
        }
    }
}

extension MessageAction {
    fileprivate init(row: Row) throws {
        id = try row.string("id")
        callID = try row.string("callID")
        kind = try row.optionalString("reply").map(Kind.reply) ?? .markAsSeen
    }
}
