internal import CallBasics
internal import Foundation
internal import GRDB

extension SharedStore {
    /// What runs, and as which epoch.
    public func status() async throws(StoreError) -> CoreStatus {
        try await read { try CoreStatus(fetching: $0) }
    }

    /// Begins a new epoch: the first thing that a core does once it holds WRITER.
    package func beginEpoch(role: CoreRole, process: ProcessIdentity) async throws(StoreError) -> Epoch {
        try await write(before: .beforeEpoch, after: .afterEpoch) { db in
            try self.apply(.begin(role), owner: process, raisingEpoch: true, db)
        }
    }

    /// Changes the state, as its owner.
    ///
    /// Throws: `fenced`; `illegalTransition` when the event cannot happen in the present state.
    package func setState(_ event: CoreState.Event, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeState, after: .afterState) { db in
            let owner = try CoreStatus(fetching: db).owner
            _ = try self.apply(event, owner: owner, raisingEpoch: false, db)
        }
    }

    /// Ends an epoch in order: the last thing that a core does before it lets go of WRITER.
    package func endEpoch(_ epoch: Epoch) async throws(StoreError) {
        try await setState(.end, as: epoch)
    }

    /// Ends whatever epoch there is, so that its core can write nothing any more.
    ///
    /// For a main that holds MAIN and gives up waiting for an executor, before it kills it.
    ///
    /// Returns: the epoch that is valid now; nobody writes as it.
    package func fence() async throws(StoreError) -> Epoch {
        try await write(before: .beforeFence, after: .afterFence) { db in
            try self.apply(.fence, owner: nil, raisingEpoch: true, db)
        }
    }

    private func apply(
        _ event: CoreState.Event,
        owner: ProcessIdentity?,
        raisingEpoch: Bool,
        _ db: Database
    ) throws -> Epoch {
        let present = try CoreStatus(fetching: db)
        guard let next = present.state.next(after: event) else {
            throw StoreError(
                .illegalTransition(from: present.state),
                "The core of \(path) is \(present.state.rawValue): \(event) cannot happen now."
            )
        }
        let epoch = Epoch(rawValue: present.epoch.rawValue &+ (raisingEpoch ? 1 : 0))
        let owner = next == .free ? nil : owner
        try db.execute(
            sql: "UPDATE state SET state = ?, epoch = ?, ownerPid = ?, ownerStart = ?, since = ?",
            arguments: [
                next.rawValue, epoch.rawValue, owner?.pid, owner.map { Int64(clamping: $0.startTime) },
                Date().timeIntervalSince1970,
            ]
        )
        return epoch
    }
}

extension CoreStatus {
    init(fetching db: Database) throws {
        let statement = try db.cachedStatement(sql: "SELECT state, epoch, ownerPid, ownerStart, since FROM state")
        guard let row = try Row.fetchOne(statement), let state = CoreState(rawValue: try row.string("state")) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the state is missing")
        }
        self.init(
            state: state,
            owner: try row.process("ownerPid", "ownerStart"),
            epoch: Epoch(rawValue: try row.integer("epoch")),
            since: try row.optionalDate("since")
        )
    }
}
