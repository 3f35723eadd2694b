@testable import MediaEngine
import TestSupport
import Testing

/// Sockets of one media thread that many datagrams wait in.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct DatagramBatchRealTimeTests {
    private let sharing = SocketSharing()
    /// By family.
    private let peers: [String: UDPSocket]
    private let tick = MonotonicClock.current

    init() {
        // A machine may have no IPv6, which the tests for it tell.
        let sockets = ["127.0.0.1", "::1"].compactMap { host in
            SocketAddress(host: host, port: 0).flatMap { try? UDPSocket(bind: $0) }
        }
        peers = Dictionary(uniqueKeysWithValues: sockets.map { ($0.localAddress.host, $0) })
    }

    private func socket(_ host: String = "127.0.0.1") throws -> UDPSocket {
        try UDPSocket(bind: #require(SocketAddress(host: host, port: 0)), sharing: sharing)
    }

    /// Sends datagrams of 1, 2, 3 bytes and so on, each full of its own length.
    private func send(_ count: Int, to socket: UDPSocket) throws {
        let peer = try #require(peers[socket.localAddress.host])
        for length in 1...count {
            let wasSent = peer.send(
                [UInt8](repeating: UInt8(length), count: length).span,
                to: socket.localAddress,
                at: .zero
            )
            #expect(wasSent)
        }
    }

    /// Byte counts of up to `count` datagrams, each of which is checked.
    private func take(_ count: Int, of socket: UDPSocket, at now: MediaTime) throws -> [Int] {
        var lengths: [Int] = []
        while lengths.count < count {
            var buffer = [UInt8](repeating: 0, count: 256)
            var span = buffer.mutableSpan
            guard let datagram = socket.receive(into: &span, at: now) else { break }
            try #require(datagram.byteCount <= buffer.count)
            #expect(buffer.prefix(datagram.byteCount).allSatisfy { $0 == UInt8(datagram.byteCount) })
            #expect(datagram.source == peers[socket.localAddress.host]?.localAddress)
            #expect(datagram.arrival > tick && datagram.arrival <= MonotonicClock.current, "not when it was read")
            lengths.append(datagram.byteCount)
        }
        return lengths
    }

    @Test(arguments: [1, 8, 9, 24, 25, 100], ["127.0.0.1", "::1"])
    func `what waits in a tick comes in order, whole and with its sender`(count: Int, host: String) throws {
        let socket = try socket(host)
        try send(count, to: socket)
        let some = min(count, 9)
        #expect(try take(some, of: socket, at: tick) == Array(1...some))
        #expect(sharing.batch.holdsThose(of: socket) == (count > 9))
        #expect(try take(.max, of: socket, at: tick) == Array(some + 1..<count + 1))
        #expect(sharing.batch.isFree)
        try send(2, to: socket)
        #expect(try take(.max, of: socket, at: tick + .milliseconds(10)) == [1, 2])
    }

    @Test func `a batch that was not emptied goes on in the next tick, and others read without it`() throws {
        let (first, second) = (try socket(), try socket())
        try send(60, to: first)
        try send(40, to: second)
        #expect(try take(12, of: first, at: tick) == Array(1...12))
        #expect(sharing.batch.holdsThose(of: first))
        #expect(try take(.max, of: second, at: tick) == Array(1...40))
        #expect(sharing.batch.holdsThose(of: first))
        #expect(try take(.max, of: first, at: tick + .milliseconds(10)) == Array(13...60))
        #expect(sharing.batch.isFree)
    }

    @Test func `sockets of both families have a batch in turns`() throws {
        let (first, second) = (try socket("::1"), try socket())
        for round in 0..<3 {
            try send(30, to: first)
            try send(20, to: second)
            let now = tick + .milliseconds(10 * round)
            #expect(try take(.max, of: first, at: now) == Array(1...30))
            #expect(try take(.max, of: second, at: now) == Array(1...20))
        }
    }

    @Test func `a socket that is closed leaves the batch to others`() throws {
        let (first, second) = (try socket(), try socket())
        try send(40, to: first)
        try send(40, to: second)
        #expect(try take(12, of: first, at: tick) == Array(1...12))
        first.close()
        #expect(sharing.batch.isFree)
        #expect(try take(12, of: second, at: tick) == Array(1...12))
        #expect(sharing.batch.holdsThose(of: second))
        #expect(try take(.max, of: second, at: tick) == Array(13...40))
    }

    @Test func `a datagram of a batch that is longer than the buffer is cut and says its length`() throws {
        let socket = try socket()
        try send(20, to: socket)
        let peer = try #require(peers["127.0.0.1"])
        peer.send([UInt8](repeating: 7, count: 6000).span, to: socket.localAddress, at: .zero)
        peer.send([UInt8]().span, to: socket.localAddress, at: .zero)
        try send(1, to: socket)
        #expect(try take(20, of: socket, at: tick) == Array(1...20))
        var buffer = [UInt8](repeating: 0, count: 10)
        var span = buffer.mutableSpan
        #expect(socket.receive(into: &span, at: tick)?.byteCount == 6000)
        #expect(buffer == [UInt8](repeating: 7, count: 10))
        span = buffer.mutableSpan
        #expect(socket.receive(into: &span, at: tick)?.byteCount == 0)
        #expect(try take(.max, of: socket, at: tick) == [1])
    }

    @Test func `answers that nobody listens stop no batch, and are told`() throws {
        let (socket, gone) = (try socket(), try socket())
        let address = gone.localAddress
        gone.close()
        try send(30, to: socket)
        #expect(try take(8, of: socket, at: tick) == Array(1...8))
        let wasSent = socket.send([1].span, to: address, at: tick)
        #expect(wasSent)
        #expect(try take(.max, of: socket, at: tick) == Array(9...30))
        #expect(socket.unreachableCount == 1)
    }
}
