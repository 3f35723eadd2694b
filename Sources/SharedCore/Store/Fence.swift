internal import GRDB

/// Which epoch may write, as the store keeps it: the one thing in it that is about cores.
///
/// Who owns the group is told by the lock, and by the record in its file. The fence is for a core whose time is over and
/// that does not know it yet: each transaction of an owner compares its epoch with this one.
struct Fence: Hashable, Sendable {
    /// The epoch that began last, or that a main fenced with.
    let epoch: Epoch
    /// Whether somebody may write as it: not once it has ended in order, and never as the epoch of a fence.
    let isOpen: Bool

    init(fetching db: Database) throws {
        let statement = try db.cachedStatement(sql: "SELECT epoch, isOpen FROM fence")
        guard let row = try Row.fetchOne(statement) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the fence is missing")
        }
        epoch = Epoch(rawValue: try row.integer("epoch"))
        isOpen = try row.integer("isOpen") != 0
    }

    /// Raises the epoch, for somebody to write as it or for nobody.
    static func raise(opening: Bool, _ db: Database) throws -> Epoch {
        let epoch = Epoch(rawValue: try Fence(fetching: db).epoch.rawValue &+ 1)
        try db.execute(sql: "UPDATE fence SET epoch = ?, isOpen = ?", arguments: [epoch.rawValue, opening])
        return epoch
    }

    /// Lets nobody write until the next epoch begins.
    static func close(_ db: Database) throws { try db.execute(sql: "UPDATE fence SET isOpen = 0") }
}
