import Foundation
import Glibc
import Testing

@testable import LocalMessaging

struct GroupContainerTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
    }

    private func mode(_ path: String) throws -> mode_t {
        var status = stat()
        try #require(stat(path, &status) == 0)
        return status.st_mode & 0o777
    }

    @Test func `a missing directory is made for its owner alone, and those above it`() throws {
        let path = scratch.path + "/a/b/c"
        let group = try GroupContainer(directory: path)
        for part in ["/a", "/a/b", "/a/b/c"] { #expect(try mode(scratch.path + part) == 0o700) }
        #expect(try group.subdirectory("db") == path + "/db")
        #expect(try mode(path + "/db") == 0o700)
        #expect(try group.file("settings") == path + "/settings")
    }

    @Test(arguments: ["", ".", "..", ".hidden", "a/b", "../a", "/a", "a\u{0}b", "a b", "é", "a\n"])
    func `a name that could leave the group is refused`(name: String) throws {
        let group = try GroupContainer(directory: scratch.path)
        for use in [
            { _ = try group.file(name) }, { _ = try group.subdirectory(name) },
            { _ = try GroupContainer(identifier: name) },
        ] {
            let error = #expect(throws: GroupError.self) { try use() }
            #expect(error?.code == .badName)
            #expect(error?.message.contains("could leave its directory") ?? false)
        }
    }

    @Test func `a name too long for a socket address is refused with the limit`() throws {
        let group = try GroupContainer(directory: scratch.path)
        #expect(try group.file(String(repeating: "n", count: 64)).hasSuffix("n"))
        let error = #expect(throws: GroupError.self) { try group.file(String(repeating: "n", count: 65)) }
        #expect(error?.message.contains("has 65 bytes") ?? false)
        #expect(error?.message.contains("room for 64") ?? false)
    }

    @Test func `the longest name fits an address with any descriptor's number`() throws {
        let group = try GroupContainer(directory: scratch.path)
        let name = String(repeating: "n", count: GroupContainer.maximumNameByteCount)
        // A server's longest name for a moment is that of its socket for descriptors before it has its place.
        let address = group.address(of: "..\(name).files.new")
        let longest = address.utf8.count - String(group.descriptor).utf8.count + String(CInt.max).utf8.count
        #expect(longest <= 107)
    }

    @Test func `a long path of the group does not limit its servers`() async throws {
        let path = scratch.path + String(repeating: "/a-directory-of-a-long-name", count: 20)
        let group = try GroupContainer(directory: path)
        let name = String(repeating: "n", count: 64)
        let server = try await MessageServer.start(name: name, in: group, handlers: .sums)
        let client = try await MessageClient.connect(to: name, in: group)
        #expect(try await client.request(Sum(terms: [2, 3])) == 5)
        await client.close()
        await server.stop()
    }

    @Test(arguments: ["", "/"]) func `a symbolic link is not followed`(end: String) throws {
        let link = scratch.path + "/link"
        try #require(symlink("/tmp", link) == 0)
        let error = #expect(throws: GroupError.self) { try GroupContainer(directory: link + end) }
        #expect(error?.code == .notADirectory)
    }

    @Test func `a file is no group`() throws {
        let path = scratch.path + "/file"
        try Data().write(to: URL(fileURLWithPath: path))
        #expect(throws: GroupError.self) { try GroupContainer(directory: path) }
        #expect(throws: GroupError.self) { try GroupContainer(directory: path + "/below") }
    }

    @Test(arguments: [0o770, 0o702, 0o777] as [mode_t])
    func `a directory that others may write to is refused with the remedy`(mode: mode_t) throws {
        try #require(chmod(scratch.path, mode) == 0)
        let error = #expect(throws: GroupError.self) { try GroupContainer(directory: scratch.path) }
        #expect(error?.code == .unsafe)
        #expect(error?.message.contains("chmod 700 '\(scratch.path)'") ?? false)
        chmod(scratch.path, 0o700)
    }

    /// Whose directories a test may take for another's: to all but root, root's; root gives its own away.
    static let another: uid_t? = {
        guard geteuid() == 0 else { return 0 }
        guard let scratch = try? Scratch() else { return nil }
        return chown(scratch.path, 65534, 65534) == 0 ? 65534 : nil
    }()

    @Test(.enabled(if: another != nil, "root needs the right to give a directory away"))
    func `another user's directory is refused`() throws {
        let another = try #require(Self.another)
        let path = another == 0 ? "/usr" : scratch.path
        if another != 0 { try #require(chown(path, another, another) == 0) }
        let error = #expect(throws: GroupError.self) { try GroupContainer(directory: path) }
        #expect(error?.code == .unsafe)
        #expect(error?.message.contains("belongs to user \(another)") ?? false)
    }

    @Test func `an empty path and one with a zero in it are refused`() {
        for path in ["", "a\u{0}b"] {
            let error = #expect(throws: GroupError.self) { try GroupContainer(directory: path) }
            #expect(error?.code == .badName)
        }
    }

    @Test func `the directory stays the group's when another takes its path`() async throws {
        let path = scratch.path + "/group"
        let group = try GroupContainer(directory: path)
        let server = try await MessageServer.start(name: "sums", in: group, handlers: .sums)
        try #require(rename(path, path + ".moved") == 0 && mkdir(path, 0o700) == 0)
        let client = try await MessageClient.connect(to: "sums", in: group)
        #expect(try await client.request(Sum(terms: [1])) == 1)
        await client.close()
        await server.stop()
    }

    /// The variable belongs to the whole process, and no other test reads it.
    @Test func `an identifier is a directory in XDG_RUNTIME_DIR, and without that an error that says so`() throws {
        let before = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) }
        defer { if let before { setenv("XDG_RUNTIME_DIR", before, 1) } else { unsetenv("XDG_RUNTIME_DIR") } }
        setenv("XDG_RUNTIME_DIR", scratch.path, 1)
        #expect(try GroupContainer(identifier: "org.example.phone").path == scratch.path + "/org.example.phone")
        for set in [{ _ = setenv("XDG_RUNTIME_DIR", "", 1) }, { _ = unsetenv("XDG_RUNTIME_DIR") }] {
            set()
            let error = #expect(throws: GroupError.self) { try GroupContainer(identifier: "org.example.phone") }
            #expect(error?.code == .noRuntimeDirectory)
            #expect(error?.message.contains("XDG_RUNTIME_DIR") ?? false)
        }
    }
}
