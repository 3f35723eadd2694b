internal import CallBasics
internal import GRDB

// The table keeps its name of old, `wish`: groups that exist have it.
extension SharedStore {
    /// Says that a process waits for something, so that the core that runs stays until it is there.
    package func addWaiter(for item: AwaitedItem, by process: ProcessIdentity) async throws(StoreError) -> Waiter {
        try await write(before: .beforeWaiter, after: .afterWaiter) { db in
            try db.execute(
                sql: "INSERT INTO wish (kind, address, pid, start) VALUES (?, ?, ?, ?)",
                arguments: [item.kind, item.address.bytes, process.pid, Int64(clamping: process.startTime)]
            )
            return Waiter(id: db.lastInsertedRowID, item: item, process: process)
        }
    }

    /// Takes a waiter out: what it waited for is there, or it waits no more.
    package func removeWaiter(_ waiter: Waiter) async throws(StoreError) {
        try await write(before: .beforeWaiter, after: .afterWaiter) { db in
            try db.execute(sql: "DELETE FROM wish WHERE id = ?", arguments: [waiter.id])
        }
    }

    /// What living processes wait for, oldest first.
    ///
    /// The dead are dropped.
    public func waiters() async throws(StoreError) -> [Waiter] {
        let all = try await read { db in
            try Row.fetchAll(db.cachedStatement(sql: "SELECT * FROM wish ORDER BY id")).map(Waiter.init(row:))
        }
        let dead = all.filter { !$0.process.isAlive }
        guard !dead.isEmpty else { return all }
        try await write(before: .beforeWaiter, after: .afterWaiter) { db in
            for waiter in dead { try db.execute(sql: "DELETE FROM wish WHERE id = ?", arguments: [waiter.id]) }
        }
        return all.filter { !dead.contains($0) }
    }
}

extension AwaitedItem {
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

extension Waiter {
    fileprivate init(row: Row) throws {
        let address = try row.string("address")
        id = try row.integer("id")
        switch try row.string("kind") {
        case "message": item = .message(callID: address)
        case "room": item = .room(address: address)
        case let kind:
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a waiter for the unknown kind \(kind)")
        }
        guard let process = try row.process("pid", "start") else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a waiter without a process")
        }
        self.process = process
    }
}
