import Foundation

/// Files of the shared corpora, which stand beside the package on machines that have them.
enum CorpusFiles {
    static let corpora: URL? = {
        // A clone below the package root's siblings finds the same folder further up.
        var folder = URL(fileURLWithPath: #filePath)
        while folder.pathComponents.count > 1 {
            folder.deleteLastPathComponent()
            let candidate = folder.appendingPathComponent("shared/corpora")
            if FileManager.default.fileExists(atPath: candidate.path) { return candidate }
        }
        return nil
    }()

    static var areThere: Bool { corpora != nil }

    /// The descriptions in the files of `folder`, by name; of a SIP message its body.
    static func descriptions(in folder: String) throws -> [(name: String, bytes: [UInt8])] {
        guard let corpora else { return [] }
        let root = corpora.appendingPathComponent(folder)
        let names = FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String } ?? []
        return try names.sorted().compactMap { name in
            guard name.hasSuffix(".sdp") || name.hasSuffix(".sip") else { return nil }
            let bytes = [UInt8](try Data(contentsOf: root.appendingPathComponent(name)))
            guard name.hasSuffix(".sip") else { return ("\(folder)/\(name)", bytes) }
            guard let start = bytes.firstRange(of: Array("\r\nv=0\r\n".utf8))?.lowerBound else { return nil }
            return ("\(folder)/\(name)", Array(bytes[(start + 2)...]))
        }
    }
}
