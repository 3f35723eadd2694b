import Glibc
import Testing

@testable import LocalMessaging

struct AttachmentSocketTests {
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
        guard case .failed = ends.1.receive(for: 0) else { throw Failure() }
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
            try #require(send(raw, bytes, 9, CInt(MSG_NOSIGNAL)) == 9)
            guard case .failed = ends.0.receive(for: 0) else { throw Failure() }
        }
        #expect(try openDescriptorCount() < before + 20)
    }

    private struct Failure: Error {}
}
