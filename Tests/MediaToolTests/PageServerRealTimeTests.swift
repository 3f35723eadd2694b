import CallBasics
import Foundation
import TestSupport
import Testing

@testable import media_tool

/// A server of pages over TCP, and clients that ask too much of it.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct PageServerRealTimeTests {
    /// A server that answers with what it was sent, while `body` runs.
    private func serving(_ body: @escaping @Sendable (UInt16) throws -> Void) async throws {
        let port = Watched<UInt16?>(nil)
        let server = Task {
            try await PageServer.serve(at: .loopback(port: 0), listening: { bound in port.update { $0 = bound.port } })
            { request in
                PageResponse("\(request.method) \(request.path) \(request.body)")
            }
        }
        #expect(await Polling.eventually { port.value != nil })
        try await Task.detached { [bound = try #require(port.value)] in try body(bound) }.value
        server.cancel()
        _ = await server.result
    }

    private static let get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test func `requests of one connection are answered in order`() async throws {
        try await serving { port in
            let client = try StreamClient(to: port)
            client.send(Self.get + "POST /b HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
            let answers = client.read()
            let (first, second) = (answers.range(of: "GET /a "), answers.range(of: "POST /b abc"))
            #expect(try #require(first).lowerBound < #require(second).lowerBound, "\(answers)")
            #expect(answers.contains("Content-Security-Policy: default-src 'self'"))
        }
    }

    @Test func `a body that is too long is refused, however it is told`() async throws {
        try await serving { port in
            for head in ["Content-Length: 70000", "Transfer-Encoding: chunked"] {
                let client = try StreamClient(to: port)
                client.send("POST / HTTP/1.1\r\n\(head)\r\n\r\n")
                if head.hasPrefix("Transfer") { client.send("11170\r\n") }
                client.send(String(repeating: "x", count: 70_000))
                #expect(client.read(12).hasPrefix("HTTP/1.1 413"), "\(head)")
            }
        }
    }

    @Test func `what is no HTTP, or ends in the midst, ends that connection alone`() async throws {
        try await serving { port in
            for text in ["\0\u{1}\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9\r\n\r\n", "POST / HTTP/1.1\r\nContent-Le"] {
                let client = try StreamClient(to: port)
                client.send(text)
            }
            let client = try StreamClient(to: port)
            client.send(Self.get)
            #expect(client.read(12).hasPrefix("HTTP/1.1 200"))
        }
    }

    /// What is accepted, and not taken up yet, is let go of.
    @Test func `a server ends whoever is just about to ask`() async throws {
        for _ in 0..<50 { try await serving { port in for _ in 0..<20 { _ = try StreamClient(to: port) } } }
    }

    @Test func `more connections than it takes are closed, and it serves on once others have gone`() async throws {
        try await serving { port in
            do {
                let clients = try (0..<64).map { _ in try StreamClient(to: port) }
                // Each is served, so all have a place.
                for client in clients { client.send(Self.get) }
                for client in clients { #expect(client.read(12).hasPrefix("HTTP/1.1 200")) }
                for _ in 0..<64 { #expect(try StreamClient(to: port).read().isEmpty) }
            }
            #expect(
                Polling.wait {
                    guard let client = try? StreamClient(to: port) else { return false }
                    client.send(Self.get)
                    return client.read(12).hasPrefix("HTTP/1.1 200")
                }
            )
        }
    }
}
