internal import CallBasics
internal import Dispatch
internal import Foundation
internal import GRDB
public import LocalMessaging

/// Takes the files that a program kept for itself alone into the group's directory, once.
///
///     its configuration  →  config/
///     its data           →  data/
///     its downloads      →  downloads/
///
/// It may be repeated, and killed at any moment: a file appears under its name complete and flushed, or not at all; what the group
/// has already is never overwritten; the store notes last, source by source, that it was done. The sources stay as they are.
/// Links and devices are not followed and not copied.
public struct GroupImport: Sendable {
    /// A directory of the group that an import fills; the raw value is its name.
    public enum Part: String, Codable, Hashable, Sendable, CaseIterable {
        /// Configuration files.
        case configuration = "config"
        /// Databases and other data.
        case data
        /// What was received and saved.
        case downloads
    }

    /// Why something was not copied.
    public enum Reason: Hashable, Sendable {
        /// The group has a file of that name already.
        case exists
        /// It is a symbolic link, which may lead anywhere.
        case symbolicLink
        /// It is a device, a pipe or a socket.
        case specialFile
        /// This user may not read it; when it is a source as a whole, a later import looks again.
        case notPermitted
        /// It lies more directories deep than are followed.
        case tooDeep
        /// It is the directory of the group itself.
        case isGroup
        /// There is no such source; a later import looks again.
        case missing
    }

    /// Something that was not copied.
    public struct Skip: Hashable, Sendable {
        /// Its path in the group's directory.
        public let path: String
        /// Why it was not copied.
        public let reason: Reason
    }

    /// What an import did.
    public struct Report: Hashable, Sendable {
        /// The files that were copied, by their paths in the group's directory.
        public internal(set) var copied: [String] = []
        /// What was not copied, and why.
        public internal(set) var skipped: [Skip] = []
        /// The parts that an earlier import had done with, from the same source.
        public internal(set) var alreadyImported: [Part] = []
    }

    /// The group that it fills.
    public let group: GroupContainer
    /// The directory from which each part comes.
    public let sources: [Part: String]

    /// An import of these directories into a group.
    public init(group: GroupContainer, sources: [Part: String]) {
        self.group = group
        self.sources = sources
    }

    /// Copies what has not been imported yet.
    ///
    /// Throws: `fenced` when the epoch is over; `full`, `readOnly` or `system` when a file could not be copied, and then a later
    /// import goes on from there.
    public func run(store: SharedStore, as epoch: Epoch) async throws(StoreError) -> Report {
        var report = Report()
        for part in Part.allCases {
            guard let source = sources[part] else { continue }
            if try await store.isImported(part, from: source, as: epoch) {
                report.alreadyImported.append(part)
                continue
            }
            let copied = try await copy(part, from: source)
            report.copied += copied.copied
            report.skipped += copied.skipped
            // The source as a whole; what is missing is never anything else.
            let root = Skip(path: part.rawValue, reason: .notPermitted)
            if copied.skipped.contains(where: { $0.reason == .missing || $0 == root }) { continue }
            try await store.noteImport(part, from: source, as: epoch)
        }
        return report
    }

    /// On a thread that may block: files can be large.
    private func copy(_ part: Part, from source: String) async throws(StoreError) -> Report {
        let result: Result<Report, StoreError> = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                let result: Result<Report, StoreError>
                do throws(StoreError) {
                    result = .success(try TreeCopy(group: group.path).copy(part, from: source))
                } catch {
                    result = .failure(error)
                }
                continuation.resume(returning: result)
            }
        }
        return try result.get()
    }
}

extension SharedStore {
    fileprivate func isImported(
        _ part: GroupImport.Part,
        from source: String,
        as epoch: Epoch
    ) async throws(StoreError) -> Bool {
        try await write(as: epoch, before: .beforeImport, after: .afterImport) { db in
            try Bool.fetchOne(
                db,
                sql: "SELECT EXISTS (SELECT 1 FROM imported WHERE source = ?)",
                arguments: [Self.importKey(part, source)]
            ) ?? false
        }
    }

    fileprivate func noteImport(
        _ part: GroupImport.Part,
        from source: String,
        as epoch: Epoch
    ) async throws(StoreError) {
        try await write(as: epoch, before: .beforeImport, after: .afterImport) { db in
            try db.execute(
                sql: "INSERT INTO imported (source, importedAt) VALUES (?, ?) ON CONFLICT DO NOTHING",
                arguments: [Self.importKey(part, source), Date().timeIntervalSince1970]
            )
        }
    }

    private static func importKey(_ part: GroupImport.Part, _ source: String) -> Data {
        "\(part.rawValue):\(source)".bytes
    }
}
