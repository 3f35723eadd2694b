import CallBasics
import Foundation
import Glibc
import SIP
import TestSupport
import Testing

@testable import SIPTransport

/// Questions to a name server on this machine, over real sockets.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct DNSClientRealTimeTests {
    /// A server that answers each question by the same bytes behind the question's own id, or not at all.
    private final class Server: Sendable {
        let address: SocketAddress
        private let descriptor: Int32

        init(answering: Bool) throws {
            descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
            var own = sockaddr_in()
            own.sin_family = sa_family_t(AF_INET)
            own.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let descriptor = descriptor
            let status = withUnsafeMutablePointer(to: &own) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    bind(descriptor, address, length) == 0 ? getsockname(descriptor, address, &length) : -1
                }
            }
            try #require(status == 0)
            address = SocketAddress(ipv4: 0x7F00_0001, port: UInt16(bigEndian: own.sin_port))
            guard answering else { return }
            Thread.detachNewThread { Self.serve(descriptor) }
        }

        deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }

        private static func serve(_ descriptor: Int32) {
            var bytes = [UInt8](repeating: 0, count: 512)
            while true {
                var peer = sockaddr_in()
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let count = withUnsafeMutablePointer(to: &peer) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        recvfrom(descriptor, &bytes, bytes.count, 0, $0, &length)
                    }
                }
                guard count > 12 else { break }
                // The question comes back, with one address for it.
                let record: [UInt8] = [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7]
                var answer = Array(bytes[..<2]) + [0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]
                answer += bytes[12..<(12 + question(bytes, count))] + record
                withUnsafeMutablePointer(to: &peer) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        _ = sendto(descriptor, answer, answer.count, 0, $0, length)
                    }
                }
            }
            close(descriptor)
        }

        /// How many bytes the question has.
        private static func question(_ bytes: [UInt8], _ count: Int) -> Int {
            var index = 12
            while index < count, bytes[index] != 0 { index += Int(bytes[index]) + 1 }
            return index + 5 - 12
        }
    }

    private static func question(_ name: String) throws -> DNSQuestion {
        DNSQuestion(try #require(DNSName(name)), .a)
    }

    @Test func `questions are answered, many beside each other`() async throws {
        let server = try Server(answering: true)
        let client = try DNSClient(servers: [server.address])
        let answers = try await withThrowingTaskGroup(of: Bool.self) { group in
            for index in 0..<50 {
                group.addTask {
                    let question = try Self.question("host\(index).example.test")
                    guard case .records(let records) = await client.ask(question) else { return false }
                    return records.map(\.value) == [.address(SocketAddress(ipv4: 0xC000_0207, port: 0))]
                        && records[0].owner == question.name
                }
            }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(answers == 50)
    }

    @Test func `a server that says nothing is a timeout`() async throws {
        let server = try Server(answering: false)
        let client = try DNSClient(servers: [server.address], timeout: .milliseconds(50), tries: 1)
        #expect(await client.ask(try Self.question("a.example.test")) == .timeout)
    }

    @Test func `what is open when the client ends has failed`() async throws {
        let server = try Server(answering: false)
        var client: DNSClient? = try DNSClient(servers: [server.address], timeout: .seconds(30), tries: 1)
        let question = try Self.question("a.example.test")
        let answer = await withCheckedContinuation { continuation in
            client?.ask(question) { continuation.resume(returning: $0) }
            client = nil
        }
        #expect(answer == .failure)
    }

    @Test func `a process that may have no more descriptors is told so`() async {
        await #expect(processExitsWith: .success) {
            let next = dup(0)
            close(next)
            var limit = rlimit(rlim_cur: rlim_t(next), rlim_max: 1024)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            let error = #expect(throws: DNSClientError.self) { try DNSClient() }
            limit.rlim_cur = limit.rlim_max
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            try #require(error?.code == .unavailable)
        }
    }
}
