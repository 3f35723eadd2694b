import Foundation

/// Files of the shared corpora, which stand beside the package on machines that have them.
enum CorpusFiles {
    static let corpora: URL? = {
        // A clone below the package root's siblings finds the same folder further up.
        var folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        while folder.pathComponents.count > 1 {
            folder.deleteLastPathComponent()
            let candidate = folder.appendingPathComponent("shared/corpora")
            if FileManager.default.fileExists(atPath: candidate.path) { return candidate }
        }
        return nil
    }()

    static var areThere: Bool { corpora != nil }

    /// The messages in the files of `folder` and below, by name.
    static func messages(in folder: String) throws -> [(name: String, bytes: [UInt8])] {
        guard let corpora else { return [] }
        return try messages(at: corpora.appendingPathComponent(folder))
    }

    static func messages(at root: URL) throws -> [(name: String, bytes: [UInt8])] {
        let names = FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String } ?? []
        return try names.sorted().compactMap { name in
            guard name.hasSuffix(".sip") || name.hasSuffix(".dat") else { return nil }
            return (name, [UInt8](try Data(contentsOf: root.appendingPathComponent(name))))
        }
    }

    /// The columns `name` and `expect` of the table in a folder.
    static func expectations(at root: URL) throws -> [String: String] {
        let table = root.appendingPathComponent("expect.tsv")
        let rows = try String(contentsOf: table, encoding: .utf8).split(separator: "\n").dropFirst()
        return rows.reduce(into: [:]) { expectations, row in
            let columns = row.split(separator: "\t", omittingEmptySubsequences: false)
            expectations[String(columns[0])] = String(columns[2])
        }
    }
}
