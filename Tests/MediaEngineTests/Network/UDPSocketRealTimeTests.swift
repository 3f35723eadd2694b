import Glibc
@testable import MediaEngine
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct UDPSocketRealTimeTests {
    private func take(_ socket: UDPSocket, _ count: Int = 64) -> (ReceivedDatagram?, [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: count)
        var span = buffer.mutableSpan
        let datagram = socket.receive(into: &span, at: MonotonicClock.current)
        return (datagram, buffer)
    }

    @Test(arguments: ["127.0.0.1", "::1"]) func `a datagram arrives whole, with its sender and the kernel's time`(
        host: String
    ) throws {
        let any = try #require(SocketAddress(host: host, port: 0))
        let (left, right) = (try UDPSocket(bind: any), try UDPSocket(bind: any))
        let before = MonotonicClock.current
        let payload: [UInt8] = [1, 2, 3, 4]
        let wasSent = left.send(payload.span, to: right.localAddress, at: before)
        #expect(wasSent)
        let (datagram, buffer) = take(right)
        let received = try #require(datagram)
        #expect(received.byteCount == 4)
        #expect(received.source == left.localAddress)
        #expect(received.arrival >= before - .milliseconds(1) && received.arrival <= MonotonicClock.current)
        #expect(buffer.prefix(4) == [1, 2, 3, 4])
        #expect(take(right).0 == nil)
    }

    @Test func `a taken port is an error that names it`() throws {
        let first = try UDPSocket(bind: .loopback(port: 0))
        let error = #expect(throws: NetworkError.self) { try UDPSocket(bind: first.localAddress) }
        #expect(error?.code == .portInUse)
        #expect(error?.message.contains("\(first.localAddress.port)") == true)
    }

    @Test func `an address of another machine is an error`() throws {
        let foreign = try #require(SocketAddress(host: "192.0.2.1", port: 0))
        #expect(throws: NetworkError.self) { try UDPSocket(bind: foreign) }
    }

    @Test func `a datagram longer than the buffer is cut and says its length`() throws {
        let (left, right) = (try UDPSocket(bind: .loopback(port: 0)), try UDPSocket(bind: .loopback(port: 0)))
        left.send([UInt8](repeating: 7, count: 100).span, to: right.localAddress, at: .zero)
        #expect(take(right, 10).0?.byteCount == 100)
    }

    @Test(arguments: ["127.0.0.1", "::1"]) func `an unreachable port does not stop the socket, and is told`(
        host: String
    ) throws {
        let any = try #require(SocketAddress(host: host, port: 0))
        let (socket, gone) = (try UDPSocket(bind: any), try UDPSocket(bind: any))
        let address = gone.localAddress
        withExtendedLifetime(consume gone) {}
        for _ in 0..<200 {
            let wasSent = socket.send([1].span, to: address, at: .zero)
            #expect(wasSent)
        }
        #expect(take(socket).0 == nil)
        // Linux limits its answers.
        #expect(socket.unreachableCount >= 2 && socket.refusedCount == 0)
        let wasSent = socket.send([1].span, to: socket.localAddress, at: .zero)
        #expect(wasSent && take(socket).0?.byteCount == 1)
    }

    @Test(arguments: ["127.0.0.1", "::1"]) func `a datagram is read behind any number of answers, and few are counted`(
        host: String
    ) throws {
        let any = try #require(SocketAddress(host: host, port: 0))
        let (socket, peer, gone) = (try UDPSocket(bind: any), try UDPSocket(bind: any), try UDPSocket(bind: any))
        let address = gone.localAddress
        withExtendedLifetime(consume gone) {}
        /// Fills the error queue, which nobody reads: every second call fails, and clears the way for the next one.
        func flood() {
            for _ in 0..<801 {
                address.withSystemAddress { target, length in _ = sendto(socket.descriptor, "x", 1, 0, target, length) }
            }
        }
        peer.send([1, 2].span, to: socket.localAddress, at: .zero)
        flood()
        #expect(take(socket).0?.byteCount == 2 && socket.unreachableCount == 64)
        // None are kept for a while: what comes behind them is no answer, and what is sent is sent.
        flood()
        let wasSent = socket.send([1].span, to: socket.localAddress, at: MonotonicClock.current)
        #expect(wasSent && take(socket).0?.byteCount == 1)
        #expect(take(socket).0 == nil && socket.unreachableCount == 64 && socket.refusedCount == 0)
        // After 5 s they are told again.
        var buffer = [UInt8](repeating: 0, count: 4)
        var span = buffer.mutableSpan
        let later = MonotonicClock.current + .seconds(6)
        let datagram = socket.receive(into: &span, at: later)
        #expect(datagram == nil)
        for _ in 0..<2 { socket.send([1].span, to: address, at: later) }
        #expect(socket.unreachableCount > 64)
    }

    @Test func `what has no way from here is told as what did not arrive`() throws {
        let socket = try UDPSocket(bind: .loopback(port: 0))
        let everybody = try #require(SocketAddress(host: "255.255.255.255", port: 9))
        for _ in 0..<3 {
            let wasSent = socket.send([1].span, to: everybody, at: .zero)
            #expect(!wasSent)
        }
        #expect(socket.unreachableCount == 3 && socket.refusedCount == 0)
    }

    @Test func `an address of the other family is refused and counted`() throws {
        let socket = try UDPSocket(bind: .loopback(port: 0))
        let v6 = try #require(SocketAddress(host: "::1", port: 9))
        let wasSent = socket.send([1].span, to: v6, at: .zero)
        #expect(!wasSent)
        #expect(socket.refusedCount == 1)
    }

    @Test(arguments: ["127.0.0.1", "::1"]) func `the kernel drops and counts what others than one source or two send`(
        host: String
    ) throws {
        let any = try #require(SocketAddress(host: host, port: 0))
        let (socket, source, other) = (try UDPSocket(bind: any), try UDPSocket(bind: any), try UDPSocket(bind: any))
        socket.accept(only: source.localAddress, or: nil)
        for _ in 0..<10 { other.send([1].span, to: socket.localAddress, at: .zero) }
        source.send([1, 2].span, to: socket.localAddress, at: .zero)
        #expect(take(socket).0?.source == source.localAddress)
        #expect(take(socket).0 == nil && socket.droppedCount == 10)
        // One source takes another's place, and then nobody does.
        socket.accept(only: other.localAddress, or: nil)
        for sender in [source, other] { sender.send([1].span, to: socket.localAddress, at: .zero) }
        #expect(take(socket).0?.source == other.localAddress)
        #expect(take(socket).0 == nil && socket.droppedCount == 11)
        socket.accept(only: nil, or: nil)
        source.send([1].span, to: socket.localAddress, at: .zero)
        #expect(take(socket).0?.source == source.localAddress && socket.droppedCount == 11)
        // Two at once, and no third.
        let third = try UDPSocket(bind: any)
        socket.accept(only: source.localAddress, or: other.localAddress)
        for sender in [third, other, third, source] { sender.send([1].span, to: socket.localAddress, at: .zero) }
        #expect(take(socket).0?.source == other.localAddress)
        #expect(take(socket).0?.source == source.localAddress)
        #expect(take(socket).0 == nil && socket.droppedCount == 13)
        // One of the other family never comes.
        let elsewhere = try #require(SocketAddress(host: host == "::1" ? "127.0.0.1" : "::1", port: 9))
        socket.accept(only: source.localAddress, or: elsewhere)
        for sender in [other, source] { sender.send([1].span, to: socket.localAddress, at: .zero) }
        #expect(take(socket).0?.source == source.localAddress)
        #expect(take(socket).0 == nil && socket.droppedCount == 14)
        // Where the kernel takes no other filter, that is told.
        var isLocked: Int32 = 1
        setsockopt(socket.descriptor, SOL_SOCKET, SO_LOCK_FILTER, &isLocked, socklen_t(MemoryLayout<Int32>.size))
        #expect(!socket.accept(only: other.localAddress, or: nil))
    }

    @Test func `a socket moves to another address with its port, its filter and its counts`() throws {
        let socket = try UDPSocket(bind: .loopback(port: 0))
        let (source, other) = (try UDPSocket(bind: .loopback(port: 0)), try UDPSocket(bind: .loopback(port: 0)))
        socket.accept(only: source.localAddress, or: nil)
        other.send([1].span, to: socket.localAddress, at: .zero)
        #expect(take(socket).0 == nil && socket.droppedCount == 1)
        let host = try #require(SocketAddress(host: "127.0.0.2", port: 9))
        let there = host.with(port: socket.localAddress.port)
        socket.take(try UDPSocket(bind: there))
        #expect(socket.port == there.port)
        for sender in [other, source] { sender.send([1].span, to: there, at: .zero) }
        #expect(take(socket).0?.source == source.localAddress)
        #expect(take(socket).0 == nil && socket.droppedCount == 2)
        let wasSent = socket.send([1].span, to: source.localAddress, at: .zero)
        #expect(wasSent && take(source).0?.source == there)
        #expect(fcntl(socket.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        // The former address is free.
        let former = try UDPSocket(bind: socket.localAddress)
        source.send([1].span, to: there, at: .zero)
        #expect(take(socket).0?.source == source.localAddress && take(former).0 == nil)
    }

    @Test func `of a call's ports both move or none`() throws {
        let sockets = try CallSockets(bind: .loopback(port: 0), hasControlPort: true, sharing: nil)
        let port = sockets.local.port
        let host = try #require(SocketAddress(host: "127.0.0.2", port: 0))
        let taken = try UDPSocket(bind: host.with(port: port + 1))
        #expect(throws: NetworkError.self) { try sockets.move(to: host) }
        let free = try UDPSocket(bind: host.with(port: port))
        free.close()
        taken.close()
        try sockets.move(to: host)
        func expectToBe(at port: UInt16) throws {
            for number in [port, port + 1] {
                _ = try UDPSocket(bind: .loopback(port: number))
                #expect(throws: NetworkError.self) { try UDPSocket(bind: host.with(port: number)) }
            }
        }
        try expectToBe(at: port)
        // One that is not to be had changes nothing.
        for foreign in ["192.0.2.77", "::1"] {
            let host = try #require(SocketAddress(host: foreign, port: 0))
            #expect(throws: NetworkError.self) { try sockets.move(to: host) }
        }
        let alone = try CallSockets(bind: host, hasControlPort: false, sharing: nil)
        #expect(throws: NetworkError.self) { try sockets.move(to: alone) }
        try expectToBe(at: port)
        // Other ports go with it from then on.
        let others = try CallSockets(bind: .loopback(port: 0), hasControlPort: true, sharing: nil)
        let other = others.local.port
        try sockets.move(to: others)
        others.close()
        try sockets.move(to: host)
        try expectToBe(at: other)
    }
}
