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

    @Test func `a directory that all share, as /tmp is, is not taken from them`() throws {
        try #require(chmod(scratch.path, 0o1777) == 0)
        let error = #expect(throws: GroupError.self) { try GroupContainer(directory: scratch.path) }
        #expect(error?.code == .unsafe)
        #expect(error?.message.contains("directory of your own") == true && error?.message.contains("chmod") == false)
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
}
