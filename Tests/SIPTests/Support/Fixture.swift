import Foundation

/// Files that stand beside the tests.
enum Fixture {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../Fixtures")

    static func data(_ name: String) throws -> Data { try Data(contentsOf: folder.appendingPathComponent(name)) }

    static func json(_ name: String) throws -> Any { try JSONSerialization.jsonObject(with: data(name)) }
}
