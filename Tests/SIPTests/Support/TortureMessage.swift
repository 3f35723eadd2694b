import Foundation
import Testing

/// A message of RFC 4475 or RFC 5118, and what the RFC asks for, as its table says.
struct TortureMessage: CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    let expectation: String

    var testDescription: String { name }

    /// Those that stand beside the tests, and those of the corpora where these are: together all 61.
    static func all() throws -> [TortureMessage] {
        let corpora = CorpusFiles.corpora?.appendingPathComponent("rfc")
        return try [Fixture.folder, corpora].compactMap(\.self).flatMap { root in
            try ["rfc4475", "rfc5118"].flatMap { name in
                let folder = root.appendingPathComponent(name)
                let expectations = try CorpusFiles.expectations(at: folder)
                return try CorpusFiles.messages(at: folder).map { name, bytes in
                    let expectation = try #require(expectations[name], "\(name) is in no table")
                    return TortureMessage(name: name, bytes: bytes, expectation: expectation)
                }
            }
        }
    }
}
