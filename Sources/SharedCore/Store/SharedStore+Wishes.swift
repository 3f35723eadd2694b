internal import GRDB

extension SharedStore {
    /// Says that a process waits for something, so that the core that runs stays until it is there.
    package func addWish(for item: WishedItem, by process: ProcessIdentity) async throws(StoreError) -> Wish {
        try await write(before: .beforeWish, after: .afterWish) { db in
            try db.execute(
                sql: "INSERT INTO wish (kind, address, pid, start) VALUES (?, ?, ?, ?)",
                arguments: [item.kind, item.address.bytes, process.pid, Int64(clamping: process.startTime)]
            )
            return Wish(id: db.lastInsertedRowID, item: item, process: process)
        }
    }

    /// Takes a wish back: it is fulfilled, or nobody waits any more.
    package func removeWish(_ wish: Wish) async throws(StoreError) {
        try await write(before: .beforeWish, after: .afterWish) { db in
            try db.execute(sql: "DELETE FROM wish WHERE id = ?", arguments: [wish.id])
        }
    }

    /// What living processes wait for, oldest first.
    ///
    /// Wishes of the dead are dropped.
    public func wishes() async throws(StoreError) -> [Wish] {
        let all = try await read { db in
            try Row.fetchAll(db.cachedStatement(sql: "SELECT * FROM wish ORDER BY id")).map(Wish.init(row:))
        }
        let dead = all.filter { !$0.process.isAlive }
        guard !dead.isEmpty else { return all }
        try await write(before: .beforeWish, after: .afterWish) { db in
            for wish in dead { try db.execute(sql: "DELETE FROM wish WHERE id = ?", arguments: [wish.id]) }
        }
        return all.filter { !dead.contains($0) }
    }
}

extension WishedItem {
    fileprivate var kind: String {
        switch self {
        case .message: "message"
        case .room: "room"
        }
    }

    fileprivate var address: String {
        switch self {
        case .message(let callID): callID
        case .room(let address): address
        }
    }
}

extension Wish {
    fileprivate init(row: Row) throws {
        let address = try row.string("address")
        id = try row.integer("id")
        switch try row.string("kind") {
        case "message": item = .message(callID: address)
        case "room": item = .room(address: address)
        case let kind: throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a wish of the unknown kind \(kind)")
        }
        guard let process = try row.process("pid", "start") else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a wish of nobody")
        }
        self.process = process
    }
}
