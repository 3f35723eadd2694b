import Foundation
import Glibc
import Synchronization

/// A bus that does what a test wants with whoever connects to it, and tells when they have gone.
package final class FakeBus: Sendable {
    /// How a connection begins.
    package enum Manner: Sendable {
        /// Nothing is ever said.
        case silent
        /// These bytes are all that is ever said.
        case says(String)
        /// It authenticates, and answers calls.
        case answers(@Sendable (BusPeer.Call) -> BusPeer.Answer)
    }

    package let address: String
    /// One element for each connection that was accepted.
    package let arrived: AsyncStream<Void>
    private let arrive: AsyncStream<Void>.Continuation
    /// One element for each connection that its client has closed.
    package let gone: AsyncStream<Void>
    private let leave: AsyncStream<Void>.Continuation
    private let path: String
    private let listener: CInt
    private let peers = Mutex<[BusPeer]>([])

    /// Listens, and accepts nobody when there is no manner: then its queue of connections is full.
    package init(_ manner: Manner?) throws {
        (arrived, arrive) = AsyncStream.makeStream()
        (gone, leave) = AsyncStream.makeStream()
        path = FileManager.default.temporaryDirectory.appendingPathComponent("fake-\(UUID().uuidString.prefix(8))").path
        address = "unix:path=" + path
        listener = try Self.listen(at: path, queue: manner == nil ? 0 : 128)
        guard let manner else {
            while Self.connect(to: path) {}
            return
        }
        Thread.detachNewThread { [listener, arrive, weak self] in
            while true {
                let socket = accept(listener, nil, nil)
                guard socket >= 0 else { return }
                arrive.yield()
                self?.serve(socket, manner)
            }
        }
    }

    deinit {
        // Ends `accept`, too.
        shutdown(listener, CInt(SHUT_RDWR))
        close(listener)
        unlink(path)
    }

    private func serve(_ socket: CInt, _ manner: Manner) {
        switch manner {
        case .silent: read(socket, saying: "")
        case .says(let text): read(socket, saying: text)
        case .answers(let answer):
            _ = fcntl(socket, F_SETFL, O_NONBLOCK)
            guard let peer = try? BusPeer(serverOn: socket, answer: answer) else { return }
            peers.withLock { $0.append(peer) }
            Task { [leave] in
                try await peer.hasEnded()
                leave.yield()
            }
        }
    }

    /// Reads until the client has closed.
    private func read(_ socket: CInt, saying text: String) {
        Thread.detachNewThread { [leave] in
            var bytes = [UInt8](repeating: 0, count: 4096)
            _ = text.withCString { send(socket, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
            while recv(socket, &bytes, bytes.count, 0) > 0 {}
            close(socket)
            leave.yield()
        }
    }

    private static func listen(at path: String, queue: CInt) throws -> CInt {
        let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard withAddress(path, { Glibc.bind(descriptor, $0, $1) }) == 0, Glibc.listen(descriptor, queue) == 0 else {
            throw POSIXError(.EADDRINUSE)
        }
        return descriptor
    }

    /// Connects without a wait, and keeps the connection until the process ends; false when the queue is full.
    private static func connect(to path: String) -> Bool {
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        guard withAddress(path, { Glibc.connect(descriptor, $0, $1) }) != 0 else { return true }
        close(descriptor)
        return false
    }

    private static func withAddress<Result>(
        _ path: String,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }
}
