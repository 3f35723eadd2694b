internal import GRDB

/// The tables of the store, version by version.
///
/// Names and texts that come from outside are kept as the bytes of their UTF-8: as SQL text they would end at a NUL character.
enum Schema {
    /// Marks the file as a store of this project: "SHCR".
    static var applicationID: Int { 0x5348_4352 }
    /// The version that this code writes; a database with a higher one is refused.
    static var version: Int { 4 }

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.execute(
                sql: """
                    CREATE TABLE meta (
                        one INTEGER PRIMARY KEY CHECK (one = 1),
                        settingsVersion INTEGER NOT NULL,
                        acknowledged INTEGER NOT NULL,
                        boot TEXT NOT NULL,
                        bootBase INTEGER NOT NULL
                    ) STRICT;
                    INSERT INTO meta VALUES (1, 0, 0, '', 0);

                    CREATE TABLE state (
                        one INTEGER PRIMARY KEY CHECK (one = 1),
                        state TEXT NOT NULL,
                        epoch INTEGER NOT NULL,
                        ownerPid INTEGER,
                        ownerStart INTEGER,
                        since REAL
                    ) STRICT;
                    INSERT INTO state VALUES (1, 'free', 0, NULL, NULL, NULL);

                    CREATE TABLE account (
                        address BLOB PRIMARY KEY,
                        parameters TEXT NOT NULL
                    ) STRICT;

                    CREATE TABLE setting (
                        key BLOB PRIMARY KEY,
                        value TEXT NOT NULL,
                        version INTEGER NOT NULL
                    ) STRICT;

                    CREATE TABLE message (
                        id INTEGER PRIMARY KEY,
                        callID BLOB NOT NULL UNIQUE,
                        messageID BLOB UNIQUE,
                        room BLOB,
                        sender BLOB NOT NULL,
                        text BLOB NOT NULL,
                        receivedAt REAL NOT NULL,
                        claimedByPid INTEGER,
                        claimedByStart INTEGER,
                        claims INTEGER NOT NULL DEFAULT 0,
                        acknowledgedAt INTEGER,
                        acknowledgedOrder INTEGER
                    ) STRICT;
                    CREATE INDEX messagePending ON message (id) WHERE acknowledgedAt IS NULL;
                    CREATE INDEX messageAcknowledged ON message (acknowledgedAt) WHERE acknowledgedAt IS NOT NULL;
                    CREATE INDEX messageOrder ON message (acknowledgedOrder) WHERE acknowledgedOrder IS NOT NULL;

                    CREATE TABLE wish (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        kind TEXT NOT NULL,
                        address BLOB NOT NULL,
                        pid INTEGER NOT NULL,
                        start INTEGER NOT NULL
                    ) STRICT;

                    CREATE TABLE room (
                        address BLOB PRIMARY KEY,
                        subject BLOB,
                        invitedBy BLOB NOT NULL,
                        createdAt REAL NOT NULL
                    ) STRICT;

                    CREATE TABLE callLog (
                        id INTEGER PRIMARY KEY,
                        callID BLOB NOT NULL UNIQUE,
                        remote BLOB NOT NULL,
                        direction TEXT NOT NULL,
                        startedAt REAL NOT NULL,
                        milliseconds INTEGER
                    ) STRICT;

                    CREATE TABLE action (
                        position INTEGER PRIMARY KEY AUTOINCREMENT,
                        id BLOB NOT NULL UNIQUE,
                        callID BLOB NOT NULL,
                        reply BLOB,
                        attempts INTEGER NOT NULL DEFAULT 0
                    ) STRICT;

                    CREATE TABLE imported (
                        source BLOB PRIMARY KEY,
                        importedAt REAL NOT NULL
                    ) STRICT;

                    PRAGMA user_version = 1;
                    """
            )
        }
        migrator.registerMigration("2") { db in try db.execute(sql: second) }
        migrator.registerMigration("3") { db in
            try db.execute(sql: third)
            try db.execute(sql: "UPDATE action SET queuedAt = ?", arguments: [try Boot.groupTime(db)])
        }
        migrator.registerMigration("4") { db in try db.execute(sql: fourth) }
        return migrator
    }

    /// Messages are told apart by a key, for several may share a call-id; receipts, registrations, and what a service keeps.
    private static let second = """
        CREATE TABLE keyedMessage (
            id INTEGER PRIMARY KEY,
            key BLOB NOT NULL UNIQUE,
            callID BLOB NOT NULL,
            messageID BLOB,
            room BLOB,
            sender BLOB NOT NULL,
            account BLOB,
            text BLOB NOT NULL,
            wantedReceipts TEXT NOT NULL,
            receivedAt REAL NOT NULL,
            claimedByPid INTEGER,
            claimedByStart INTEGER,
            claims INTEGER NOT NULL DEFAULT 0,
            acknowledgedAt INTEGER,
            acknowledgedOrder INTEGER
        ) STRICT;
        INSERT INTO keyedMessage SELECT id,
            CASE WHEN messageID IS NULL THEN CAST('call ' || CAST(callID AS TEXT) || ' ' AS BLOB)
                ELSE CAST('id ' || CAST(messageID AS TEXT) || ' ' || CAST(sender AS TEXT) AS BLOB) END,
            callID, messageID, room, sender, NULL, text, '', receivedAt, claimedByPid, claimedByStart, claims,
            acknowledgedAt, acknowledgedOrder
            FROM message;
        DROP TABLE message;
        ALTER TABLE keyedMessage RENAME TO message;
        CREATE INDEX messageCallID ON message (callID);
        CREATE INDEX messagePending ON message (id) WHERE acknowledgedAt IS NULL;
        CREATE INDEX messageAcknowledged ON message (acknowledgedAt) WHERE acknowledgedAt IS NOT NULL;
        CREATE INDEX messageOrder ON message (acknowledgedOrder) WHERE acknowledgedOrder IS NOT NULL;

        CREATE TABLE receipt (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            message BLOB NOT NULL,
            kind TEXT NOT NULL,
            messageID BLOB NOT NULL,
            recipient BLOB NOT NULL,
            account BLOB,
            createdAt REAL NOT NULL,
            UNIQUE (message, kind)
        ) STRICT;

        CREATE TABLE registration (
            address BLOB PRIMARY KEY,
            state TEXT NOT NULL,
            reason TEXT,
            expiresAt REAL,
            isPushServed INTEGER
        ) STRICT;

        CREATE TABLE keepsake (
            key BLOB PRIMARY KEY,
            value BLOB NOT NULL
        ) STRICT;

        PRAGMA user_version = 2;
        """

    /// Actions have an age, and may be refused for good.
    private static let third = """
        ALTER TABLE action ADD COLUMN queuedAt INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE action ADD COLUMN refusal BLOB;

        PRAGMA user_version = 3;
        """

    /// Who owns the group is told by its lock alone, and who waits is connected to the core that runs.
    private static let fourth = """
        CREATE TABLE fence (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            epoch INTEGER NOT NULL,
            isOpen INTEGER NOT NULL
        ) STRICT;
        INSERT INTO fence SELECT 1, epoch, state != 'free' FROM state;
        DROP TABLE state;
        DROP TABLE wish;

        PRAGMA user_version = 4;
        """
}
