import Foundation

@testable import MediaEngine

/// Files that tests read and write.
enum TestFiles {
    /// The folder of this test target.
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

    /// The path of a file below `Fixtures`.
    static func fixture(_ path: String) -> String { folder.appendingPathComponent("Fixtures/\(path)").path }

    /// The path of the speech that the examples use: 9 s at 16 kHz.
    static let speech = folder.appendingPathComponent("../../Examples/Resources/speech.wav").standardizedFileURL.path

    /// The corpora that are read in place, or nil where this machine has none.
    static let fetchedCorpora: URL? = {
        let url = folder.appendingPathComponent("../../../shared/corpora/fetched").standardizedFileURL
        return FileManager.default.fileExists(atPath: url.path) ? url : nil
    }()

    /// Runs `body` with the path of a file that does not exist yet, and removes what is there afterwards.
    static func withTemporaryPath<Result>(_ body: (String) throws -> Result) rethrows -> Result {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("media-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try body(path)
    }

    /// The bytes of the file at `path`.
    static func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }
}

extension PcapReader {
    /// Reads the capture in the file at `path`.
    init(path: String) throws { try self.init(bytes: TestFiles.bytes(path)) }
}

/// A path for a file that is removed when the test is over.
final class TemporaryFile {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("media-\(UUID().uuidString)").path

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}
