import Foundation
import LocalMessaging
import Testing

@testable import SharedPhone

/// Secrets in the files of a group.
@Suite final class SecretFilesTests {
    private let path = "/tmp/secret-files-\(UUID().uuidString)"
    private let group: GroupContainer

    init() throws { group = try GroupContainer(directory: path) }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    @Test func `a secret is kept, replaced and forgotten`() async throws {
        let files = try SecretFiles(group: group)
        #expect(try await files.secret(of: "a") == nil)
        for secret in [[1, 2, 3], [4]] as [[UInt8]] {
            try await files.set(secret, of: "a")
            #expect(try await files.secret(of: "a") == secret)
        }
        try await files.set(nil, of: "a")
        try await files.set(nil, of: "a")
        #expect(try await files.secret(of: "a") == nil)
        await #expect(throws: SecretError.self) { try await files.set([1], of: "") }
    }

    @Test func `what a process has left that ended while it wrote is removed, what is being written is not`() throws {
        _ = try SecretFiles(group: group)
        let folder = try group.subdirectory("secrets")
        let (left, written) = ("\(folder)/.draft-1-1", "\(folder)/.draft-2-2")
        for draft in [left, written] { try Data("secret".utf8).write(to: URL(fileURLWithPath: draft)) }
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -61)], ofItemAtPath: left)
        _ = try SecretFiles(group: group)
        #expect(!FileManager.default.fileExists(atPath: left) && FileManager.default.fileExists(atPath: written))
    }
}
