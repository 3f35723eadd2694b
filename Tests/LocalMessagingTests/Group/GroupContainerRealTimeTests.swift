import Glibc
import TestSupport
import Testing

@testable import LocalMessaging

/// Groups whose servers are reached, and the environment that names their place.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct GroupContainerRealTimeTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
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

    /// The variable belongs to the whole process.
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
