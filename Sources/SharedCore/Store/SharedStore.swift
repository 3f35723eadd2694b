internal import CallBasics
internal import Foundation
internal import GRDB
public import LocalMessaging

/// What the processes of a group share: one SQLite database in the group directory.
///
///     database/shared.sqlite   epoch · accounts, settings · messages, rooms, calls, actions
///
/// Every process reads. Only the core that owns the group writes accounts, settings and what it receives: it does
/// so as an `Epoch`, which each of its transactions checks, so that a core whose time is over can write nothing
/// any more. Any process claims and acknowledges messages, and queues actions.
///
/// A method that writes returns after the commit has reached the disk. Cancelling the task does not interrupt it:
/// whoever asked knows whether it was done.
///
/// Thread: control; the database is read and written on threads of its own.
/// Throws: `StoreError`, from every method.
public final class SharedStore: Sendable {
    /// The database file.
    package let path: String
    /// How much is kept of what is done with.
    package let limits: StoreLimits
    let group: GroupContainer
    private let pool: DatabasePool

    /// Opens the store of a group, and creates it when the group has none.
    ///
    /// A database that was cut or overwritten is refused and left as it is; so is one of a later version.
    ///
    /// Thread: blocks for some milliseconds; for the busy timeout when another process keeps the database locked.
    public convenience init(
        group: GroupContainer,
        busyTimeout: Duration = .seconds(5),
        limits: StoreLimits = StoreLimits()
    ) throws(StoreError) {
        try self.init(group: group, busyTimeout: busyTimeout, limits: limits) { _ in }
    }

    /// Whether the group has a store; none is made.
    package static func exists(in group: GroupContainer) -> Bool { DatabaseFile.exists(in: group) }

    /// Opens the store with something more to do on every connection.
    init(
        group: GroupContainer,
        busyTimeout: Duration = .seconds(5),
        limits: StoreLimits = StoreLimits(),
        preparing prepare: @escaping @Sendable (Database) throws -> Void
    ) throws(StoreError) {
        let file = try DatabaseFile(group: group)
        try file.createIfMissing()
        path = file.path
        (self.group, self.limits) = (group, limits)
        do {
            pool = try DatabasePool(
                path: file.path,
                configuration: Self.configuration(file, busyTimeout: busyTimeout, preparing: prepare)
            )
            try Self.migrate(pool)
            try pool.writeWithoutTransaction { db in
                // The pool chose NORMAL, which may lose the last commits with the power.
                try db.execute(sql: "PRAGMA synchronous = FULL")
                try Boot.current.enter(db)
            }
        } catch {
            throw StoreError(error, path: file.path)
        }
    }

    /// Closes the database; every method fails from now on.
    ///
    /// A store that is let go closes by itself.
    public func close() throws(StoreError) {
        do { try pool.close() } catch { throw StoreError(error, path: path) }
    }

    /// Brings the tables to the version of this code; another process may do so at the same time.
    private static func migrate(_ pool: DatabasePool) throws {
        while true {
            let applied = try pool.writeWithoutTransaction { db in
                try Schema.migrator.hasCompletedMigrations(db) ? nil : Schema.migrator.appliedIdentifiers(db)
            }
            guard let applied else { return }
            do {
                try Schema.migrator.migrate(pool)
            } catch {
                // A step that another process took first fails here, and is taken.
                guard try pool.writeWithoutTransaction(Schema.migrator.appliedIdentifiers) != applied else {
                    throw error
                }
            }
        }
    }

    private static func configuration(
        _ file: DatabaseFile,
        busyTimeout: Duration,
        preparing prepare: @escaping @Sendable (Database) throws -> Void
    ) -> Configuration {
        var configuration = Configuration()
        configuration.label = "SharedStore"
        configuration.maximumReaderCount = 2
        // In a damaged database even a rollback may fail. That is an error here, and would end the process otherwise.
        configuration.allowsUnsafeTransactions = true
        configuration.busyMode = .timeout(busyTimeout / .seconds(1))
        configuration.prepareDatabase { db in
            // Before the pool writes anything into the file.
            try file.check(db)
            try prepare(db)
        }
        return configuration
    }
}

// MARK: - Transactions

extension SharedStore {
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            pool.asyncRead { database in
                continuation.resume(returning: self.result { try body(database.get()) })
            }
        }
        return try result.get()
    }

    /// One transaction that anybody may do.
    func write<Value: Sendable>(
        before: FaultPoint,
        after: FaultPoint,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            pool.asyncWriteWithoutTransaction { db in
                let result = self.result {
                    if db.isInsideTransaction { try db.rollback() }
                    // Immediate: a transaction that began by reading could no longer become a writer after another had written.
                    try db.beginTransaction(.immediate)
                    do {
                        let value = try body(db)
                        FaultPoint.reached(before)
                        try db.commit()
                        FaultPoint.reached(after)
                        return value
                    } catch {
                        if db.isInsideTransaction { try db.rollback() }
                        throw error
                    }
                }
                continuation.resume(returning: result)
            }
        }
        return try result.get()
    }

    /// One transaction of the owner: refused when its epoch is over.
    func write<Value: Sendable>(
        as epoch: Epoch,
        before: FaultPoint,
        after: FaultPoint,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        try await write(before: before, after: after) { db in
            let fence = try Fence(fetching: db)
            guard fence.isOpen, fence.epoch == epoch else {
                throw StoreError.fenced(epoch: epoch, current: fence.epoch, path: self.path)
            }
            return try body(db)
        }
    }

    private func result<Value>(_ body: () throws -> Value) -> Result<Value, StoreError> {
        do { return .success(try body()) } catch { return .failure(StoreError(error, path: path)) }
    }
}
