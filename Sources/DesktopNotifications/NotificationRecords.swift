internal import CallBasics
internal import Foundation
internal import Synchronization

/// Which notification of the desktop is which message's, known to all processes of a group.
///
/// Shape: a directory with a file for each notification, named after the service's unique name and the number that it
/// gave; the content is the identifier of the message. Without a directory the process keeps them for itself.
final class NotificationRecords: Sendable {
    private let directory: URL?
    private let own = Mutex<[String: String]>([:])

    init(directory: String?) {
        self.directory = directory.map { URL(fileURLWithPath: $0, isDirectory: true) }
    }

    /// The latest number that this service gave to a notification of `identifier`.
    ///
    /// - Throws: `NotificationError` with code `records`.
    func number(of identifier: String, owner: String) throws(NotificationError) -> UInt32? {
        try names(owner).filter { self.identifier(ofName: $0) == identifier }.compactMap(Self.number).max()
    }

    /// The identifier of the notification to which this service gave `number`.
    func identifier(of number: UInt32, owner: String) -> String? {
        identifier(ofName: "\(owner)-\(number)")
    }

    /// Keeps a number, and of the others the latest of this service.
    ///
    /// - Throws: `NotificationError` with code `records`.
    func keep(_ number: UInt32, of identifier: String, owner: String) throws(NotificationError) {
        let name = "\(owner)-\(number)"
        guard let directory else {
            own.withLock { $0[name] = identifier }
            return try prune(owner)
        }
        do {
            try Data(identifier.utf8).write(to: directory.appendingPathComponent(name), options: .atomic)
        } catch {
            throw failure(error)
        }
        try prune(owner)
    }

    /// Forgets a number.
    func forget(_ number: UInt32, owner: String) {
        remove("\(owner)-\(number)")
    }

    /// Forgets what services before this one gave, and all but the latest numbers.
    private func prune(_ owner: String) throws(NotificationError) {
        let all = try names(nil)
        let current = all.filter { $0.hasPrefix(owner + "-") }
        let latest = current.sorted { (Self.number($0) ?? 0) > (Self.number($1) ?? 0) }.prefix(Self.most)
        for name in Set(all).subtracting(latest) { remove(name) }
    }

    private func names(_ owner: String?) throws(NotificationError) -> [String] {
        let all: [String]
        if let directory {
            do {
                all = try FileManager.default.contentsOfDirectory(atPath: directory.path)
            } catch {
                throw failure(error)
            }
        } else {
            all = own.withLock { Array($0.keys) }
        }
        return all.filter { Self.number($0) != nil && $0.hasPrefix(owner.map { $0 + "-" } ?? "") }
    }

    private func identifier(ofName name: String) -> String? {
        guard let directory else { return own.withLock { $0[name] } }
        // Another process may have forgotten it meanwhile.
        return (try? Data(contentsOf: directory.appendingPathComponent(name))).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    private func remove(_ name: String) {
        guard let directory else {
            own.withLock { $0[name] = nil }
            return
        }
        // Another process may have been faster.
        try? FileManager.default.removeItem(at: directory.appendingPathComponent(name))
    }

    private func failure(_ error: any Error) -> NotificationError {
        let place = directory?.path ?? ""
        return NotificationError(.records, "The notifications in \(place) cannot be kept: \(error). Free space there.")
    }

    /// The number at the end of a name like `:1.42-7`; nil for other files.
    private static func number(_ name: String) -> UInt32? {
        guard name.hasPrefix(":"), let dash = name.lastIndex(of: "-") else { return nil }
        return UInt32(name[name.index(after: dash)...])
    }

    private static var most: Int { 256 }
}
