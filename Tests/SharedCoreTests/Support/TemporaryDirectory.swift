import Foundation
import LocalMessaging

/// A directory of a test, removed with the object.
final class TemporaryDirectory: Sendable {
    let path: String
    /// The group in it.
    let group: GroupContainer

    init() throws {
        path = "/tmp/shared-core-\(UUID().uuidString)"
        // Makes it, for this user alone.
        group = try GroupContainer(directory: path)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func write(_ text: String, to name: String) throws {
        let file = URL(fileURLWithPath: path).appendingPathComponent(name)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }

    func text(of name: String) -> String? {
        try? String(contentsOfFile: path + "/" + name, encoding: .utf8)
    }

    func names(in name: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path + "/" + name).sorted()
    }
}
