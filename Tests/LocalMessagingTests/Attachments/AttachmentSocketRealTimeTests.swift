import CLinux
import Foundation
import Glibc
import TestSupport
import Testing

@testable import LocalMessaging

/// Descriptors that pass through sockets, and what the process has open then.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct AttachmentSocketRealTimeTests {
    private let ends: (AttachmentSocket, AttachmentSocket)
    /// The descriptor of the second.
    private let raw: CInt

    init() throws {
        var ends: [CInt] = [-1, -1]
        let type = CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        self.ends = (AttachmentSocket(owning: ends[0]), AttachmentSocket(owning: ends[1]))
        raw = ends[1]
    }

    private func files(_ count: Int) throws -> [OpenFile] {
        try (0..<count).map { _ in try OpenFile(readingFrom: "/dev/null") }
    }

    private func received(_ ordinal: UInt64) -> Int? {
        if case .done(let files) = ends.1.receive(for: ordinal) { files.count } else { nil }
    }

    @Test(arguments: 1...8) func `descriptors arrive, as many as were passed, closed on exec`(count: Int) throws {
        guard case .done = ends.0.pass(try files(count), for: 3) else { throw Failure() }
        guard case .done(let arrived) = ends.1.receive(for: 3) else { throw Failure() }
        #expect(arrived.count == count)
        #expect(arrived.allSatisfy { fcntl($0.descriptor, F_GETFD) & FD_CLOEXEC != 0 })
    }

    @Test func `those of several frames come in order, and only to their frames`() throws {
        for ordinal in 0..<3 {
            guard case .done = ends.0.pass(try files(ordinal + 1), for: UInt64(ordinal)) else { throw Failure() }
        }
        #expect(received(0) == 1)
        #expect(received(1) == 2)
        #expect(received(7) == nil, "the third's")
    }

    @Test func `none are there before they are passed, nor after the peer is gone`() throws {
        guard case .later = ends.1.receive(for: 0) else { throw Failure() }
        shutdown(raw, CInt(SHUT_RDWR))
        guard case .broken = ends.1.receive(for: 0) else { throw Failure() }
    }

    @Test func `a peer that does not take them is waited for, and nothing is lost`() throws {
        let file = try files(1)
        var passed: UInt64 = 0
        while case .done = ends.0.pass(file, for: passed) {
            passed += 1
            try #require(passed < 100_000)
        }
        guard case .later = ends.0.pass(file, for: passed) else { throw Failure() }
        for ordinal in 0..<passed { try #require(received(ordinal) == 1) }
        guard case .done = ends.0.pass(file, for: passed) else { throw Failure() }
    }

    @Test func `a message of another length is refused, and its descriptors are closed`() throws {
        let before = try openDescriptorCount()
        for _ in 0..<20 {
            // Nine bytes instead of eight, as from a peer that speaks something else.
            let bytes = [UInt8](repeating: 0, count: 9)
            let file = try OpenFile(readingFrom: "/dev/null")
            try #require(linux_send_descriptors(raw, bytes, 9, [file.descriptor], 1) == 9)
            guard case .broken = ends.0.receive(for: 0) else { throw Failure() }
        }
        #expect(try openDescriptorCount() < before + 20)
    }

    @Test func `a process that may have no more descriptors is told so, and the peer is not blamed`() async {
        await #expect(processExitsWith: .success) {
            let tests = try AttachmentSocketRealTimeTests()
            // Nobody else has this file open.
            let files = try (0..<3).map { _ in try OpenFile(readingFrom: "/dev/zero") }
            guard case .done = tests.ends.0.pass(files, for: 0) else { throw Failure() }
            // Two numbers are free below the limit, fewer if another thread takes one, and three descriptors come.
            let (one, other) = (dup(0), dup(0))
            var limit = rlimit(rlim_cur: rlim_t(max(one, other) + 1), rlim_max: 1024)
            close(one)
            close(other)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            guard case .failed("Too many open files") = tests.ends.1.receive(for: 0) else { throw Failure() }
            limit.rlim_cur = limit.rlim_max
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            let own = Set(files.map { "\($0.descriptor)" })
            let folder = "/proc/self/fd/"
            let open = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: folder + $0)) == "/dev/zero"
            }
            #expect(Set(open) == own)
            withExtendedLifetime(files) {}
        }
    }

    @Test func `what a peer passed before it ended is received, also when it had not read everything`() throws {
        var descriptors: [CInt] = [-1, -1]
        let type = CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &descriptors) == 0)
        let near = AttachmentSocket(owning: descriptors[0])
        var far: AttachmentSocket? = AttachmentSocket(owning: descriptors[1])
        guard case .done = far?.pass(try files(2), for: 0) else { throw Failure() }
        guard case .done = near.pass(try files(1), for: 0) else { throw Failure() }
        far = nil
        guard case .done(let arrived) = near.receive(for: 0) else { throw Failure() }
        #expect(arrived.count == 2)
        guard case .gone = near.pass(try files(1), for: 1) else { throw Failure() }
    }

    @Test func `a server that is gone is told from a system that refuses`() async throws {
        let scratch = try Scratch()
        let path = scratch.path + "/files"
        let token = [UInt8](repeating: 0, count: AttachmentListener.tokenByteCount)
        guard case .gone = AttachmentSocket.connect(to: path, token: token) else { throw Failure() }
        close(try socketToListen(path))
        guard case .gone = AttachmentSocket.connect(to: path, token: token) else { throw Failure() }
        await #expect(processExitsWith: .success) {
            var limit = rlimit(rlim_cur: 0, rlim_max: 1024)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            guard case .failed("Too many open files") = AttachmentSocket.connect(to: "/nowhere", token: []) else {
                throw Failure()
            }
        }
    }

    @Test func `a client that has not said its token yet is heard later`() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/files"
        let listening = try socketToListen(path)
        let listener = AttachmentListener(owning: listening)
        let (first, second) = (try connected(path), try connected(path))
        let token = [UInt8](repeating: 2, count: AttachmentListener.tokenByteCount)
        try #require(send(second, token, token.count, CInt(MSG_NOSIGNAL)) == token.count)
        var heard: [[UInt8]] = []
        _ = listener.acceptAll { token, _, _ in heard.append(token) }
        #expect(heard == [token])
        let late = [UInt8](repeating: 1, count: AttachmentListener.tokenByteCount)
        try #require(send(first, late, late.count, CInt(MSG_NOSIGNAL)) == late.count)
        _ = listener.acceptAll { token, process, _ in
            heard.append(token)
            #expect(process == getpid())
        }
        #expect(heard == [token, late])
        close(first)
        close(second)
    }

    @Test func `a server that may have no more descriptors is told so, and its client is not blamed`() async {
        await #expect(processExitsWith: .success) {
            let tests = try AttachmentSocketRealTimeTests()
            let scratch = try Scratch()
            let path = scratch.path + "/files"
            let listener = AttachmentListener(owning: try tests.socketToListen(path))
            let client = try tests.connected(path)
            #expect(listener.acceptAll { _, _, _ in } == nil)
            let next = try tests.connected(path)
            var limit = rlimit(rlim_cur: rlim_t(next + 1), rlim_max: 1024)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            while dup(0) >= 0 {}
            #expect(listener.acceptAll { _, _, _ in } == "Too many open files")
            close(client)
        }
    }

    @Test func `of clients that never say a token only the last are kept`() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/files"
        let listener = AttachmentListener(owning: try socketToListen(path))
        let clients = try (0..<AttachmentListener.maximumSilentCount + 1).map { _ in try connected(path) }
        _ = listener.acceptAll { _, _, _ in }
        let token = [UInt8](repeating: 1, count: AttachmentListener.tokenByteCount)
        #expect(send(clients[0], token, token.count, CInt(MSG_NOSIGNAL)) == -1, "it is closed")
        #expect(send(clients[1], token, token.count, CInt(MSG_NOSIGNAL)) == token.count)
        var heardCount = 0
        _ = listener.acceptAll { _, _, _ in heardCount += 1 }
        #expect(heardCount == 1)
        for client in clients { close(client) }
    }

    private func socketToListen(_ path: String) throws -> CInt {
        let type = CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        try #require(withSocketAddress(path) { Glibc.bind(descriptor, $0, $1) } == 0 && listen(descriptor, 128) == 0)
        return descriptor
    }

    private func connected(_ path: String) throws -> CInt {
        let descriptor = socket(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        try #require(withSocketAddress(path) { Glibc.connect(descriptor, $0, $1) } == 0)
        return descriptor
    }

    private struct Failure: Error {}
}
