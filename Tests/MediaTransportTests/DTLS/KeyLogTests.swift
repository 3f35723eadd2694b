import Foundation
import Testing

@testable import MediaTransport

/// The secrets of handshakes, where somebody has asked for them.
@Suite struct KeyLogTests {
    @Test func `both sides of a handshake write the same secret, by the random of its first hello`() throws {
        let path = NSTemporaryDirectory() + "media-tool-keys-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let file = try #require(FileHandle(forWritingAtPath: path))
        KeyLog.shared.write(to: file.fileDescriptor)
        defer { KeyLog.shared.write(to: nil) }
        let pair = try DTLSPair()
        pair.exchange()
        #expect(pair.isConnected)
        // Behind the headers of the record and of the message, and the version.
        let hello = try #require(pair.sent.first).datagram
        let random = hello[27..<59].map { String(format: "%02x", $0) }.joined()
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
            $0.split(separator: " ")
        }
        let own = lines.filter { $0.count == 3 && $0[1] == random }
        #expect(own.count == 2 && own[0] == own[1] && own[0][0] == "CLIENT_RANDOM" && own[0][2].count == 96, "\(lines)")
    }
}
