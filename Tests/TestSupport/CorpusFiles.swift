import CallBasics
package import Foundation

/// Files of the shared corpora, which stand beside the package on machines that have them.
package enum CorpusFiles {
    package static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    package static let fetched: URL = {
        // A clone below the package root's siblings finds the same folder further up.
        var folder = root
        for _ in 0..<4 {
            folder.deleteLastPathComponent()
            let candidate = folder.appendingPathComponent("shared/corpora/fetched")
            if FileManager.default.fileExists(atPath: candidate.path) { return candidate }
        }
        return root.appendingPathComponent("../shared/corpora/fetched")
    }()

    package static var areThere: Bool { FileManager.default.fileExists(atPath: fetched.path) }

    /// The names and contents of the files in `folder`, in the order of their names.
    package static func contents(of folder: String) throws -> [(name: String, bytes: [UInt8])] {
        let url = fetched.appendingPathComponent(folder)
        return try FileManager.default.contentsOfDirectory(atPath: url.path).sorted().map { name in
            (name, [UInt8](try Data(contentsOf: url.appendingPathComponent(name))))
        }
    }
}

/// The bytes that the hexadecimal digits of `text` stand for; blanks are skipped.
package func bytes(_ text: String) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count & ~1, by: 2).map { (index: Int) -> UInt8 in
        UInt8(digits[index] << 4 | digits[index + 1])
    }
}

/// Calls `body` with every truncation of `valid`, with single-byte changes of it, and with random bytes.
package func forEachSpoiling(of valid: [UInt8], seed: UInt64 = 1, _ body: (Span<UInt8>) -> Void) {
    for count in 0...valid.count { body(Array(valid.prefix(count)).span) }
    var generator = SeededGenerator(seed: seed)
    for index in valid.indices {
        for _ in 0..<8 {
            var spoiled = valid
            spoiled[index] = UInt8(truncatingIfNeeded: generator.next())
            body(spoiled.span)
        }
    }
    for _ in 0..<2000 {
        let random = (0..<Int(generator.next() % 96)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
        body(random.span)
    }
}
