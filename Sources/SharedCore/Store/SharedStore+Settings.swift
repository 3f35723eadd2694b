internal import CallBasics
internal import Foundation
internal import GRDB

extension SharedStore {
    /// How often accounts and settings have changed: who remembers the number knows whether to read them again.
    public func settingsVersion() async throws(StoreError) -> Int {
        try await read { try Int.fetchOne($0, sql: "SELECT settingsVersion FROM meta") ?? 0 }
    }

    /// The value of a setting; nil when it has none.
    ///
    /// Throws: `badValue` when it is of another type.
    public func setting<Value: Decodable & Sendable>(
        _ key: String,
        as type: Value.Type = Value.self
    ) async throws(StoreError) -> Value? {
        try await read { db in
            guard
                let json = try String.fetchOne(
                    db,
                    sql: "SELECT value FROM setting WHERE key = ?",
                    arguments: [key.bytes]
                )
            else { return nil }
            return try self.decode(type, json, "setting \(key)")
        }
    }

    /// Gives a setting a value.
    ///
    /// One that it has already counts as no change.
    public func set(_ value: some Encodable & Sendable, for key: String, as epoch: Epoch) async throws(StoreError) {
        let json = try encode(value, "setting \(key)")
        try await write(as: epoch, before: .beforeSetting, after: .afterSetting) { db in
            try db.execute(
                sql: """
                    INSERT INTO setting (key, value, version) VALUES (?, ?, (SELECT settingsVersion + 1 FROM meta))
                    ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version
                        WHERE value <> excluded.value
                    """,
                arguments: [key.bytes, json]
            )
            try Self.countChange(db)
        }
    }

    /// Removes a setting.
    public func removeSetting(_ key: String, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeSetting, after: .afterSetting) { db in
            try db.execute(sql: "DELETE FROM setting WHERE key = ?", arguments: [key.bytes])
            try Self.countChange(db)
        }
    }

    /// The accounts, ordered by address.
    public func accounts() async throws(StoreError) -> [StoredAccount] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM account ORDER BY address").map { row in
                let address = try row.string("address")
                let parameters = try self.decode([String: String].self, row.string("parameters"), "account \(address)")
                return StoredAccount(address: address, parameters: parameters)
            }
        }
    }

    /// Adds an account, or replaces the one of the same address.
    ///
    /// One that is equal counts as no change.
    public func setAccount(_ account: StoredAccount, as epoch: Epoch) async throws(StoreError) {
        let json = try encode(account.parameters, "account \(account.address)")
        try await write(as: epoch, before: .beforeSetting, after: .afterSetting) { db in
            try db.execute(
                sql: """
                    INSERT INTO account (address, parameters) VALUES (?, ?)
                    ON CONFLICT (address) DO UPDATE SET parameters = excluded.parameters
                        WHERE parameters <> excluded.parameters
                    """,
                arguments: [account.address.bytes, json]
            )
            try Self.countChange(db)
        }
    }

    /// Removes an account.
    public func removeAccount(address: String, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeSetting, after: .afterSetting) { db in
            try db.execute(sql: "DELETE FROM account WHERE address = ?", arguments: [address.bytes])
            try Self.countChange(db)
        }
    }

    /// Counts a change if the statement before made one.
    private static func countChange(_ db: Database) throws {
        guard db.changesCount > 0 else { return }
        try db.execute(sql: "UPDATE meta SET settingsVersion = settingsVersion + 1")
    }

    private func encode(_ value: some Encodable, _ what: String) throws(StoreError) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        do {
            return String(decoding: try encoder.encode(value), as: UTF8.self)
        } catch {
            throw StoreError(.badValue, "The \(what) cannot be kept as JSON: \(error).")
        }
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ json: String, _ what: String) throws(StoreError)
        -> Value
    {
        do {
            return try JSONDecoder().decode(type, from: json.bytes)
        } catch {
            throw StoreError(
                .badValue,
                "The \(what) is no \(type) in \(path): \(error). Ask for the type it was set with."
            )
        }
    }
}
