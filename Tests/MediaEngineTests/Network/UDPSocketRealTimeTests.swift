@testable import MediaEngine
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime)) struct UDPSocketRealTimeTests {
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

    @Test func `an unreachable port does not stop the socket`() throws {
        let (socket, gone) = (try UDPSocket(bind: .loopback(port: 0)), try UDPSocket(bind: .loopback(port: 0)))
        let address = gone.localAddress
        withExtendedLifetime(consume gone) {}
        for _ in 0..<3 { socket.send([1].span, to: address, at: .zero) }
        #expect(take(socket).0 == nil)
        let wasSent = socket.send([1].span, to: socket.localAddress, at: .zero)
        #expect(wasSent && take(socket).0?.byteCount == 1)
    }

    @Test func `an address of the other family is refused and counted`() throws {
        let socket = try UDPSocket(bind: .loopback(port: 0))
        let v6 = try #require(SocketAddress(host: "::1", port: 9))
        let wasSent = socket.send([1].span, to: v6, at: .zero)
        #expect(!wasSent)
        #expect(socket.refusedCount == 1)
    }

    @Test(arguments: ["127.0.0.1", "::1"]) func `the kernel drops and counts what others than the one source send`(
        host: String
    ) throws {
        let any = try #require(SocketAddress(host: host, port: 0))
        let (socket, source, other) = (try UDPSocket(bind: any), try UDPSocket(bind: any), try UDPSocket(bind: any))
        socket.accept(only: source.localAddress)
        for _ in 0..<10 { other.send([1].span, to: socket.localAddress, at: .zero) }
        source.send([1, 2].span, to: socket.localAddress, at: .zero)
        #expect(take(socket).0?.source == source.localAddress)
        #expect(take(socket).0 == nil && socket.droppedCount == 10)
        // One source takes another's place, and then nobody does.
        socket.accept(only: other.localAddress)
        for sender in [source, other] { sender.send([1].span, to: socket.localAddress, at: .zero) }
        #expect(take(socket).0?.source == other.localAddress)
        #expect(take(socket).0 == nil && socket.droppedCount == 11)
        socket.accept(only: nil)
        source.send([1].span, to: socket.localAddress, at: .zero)
        #expect(take(socket).0?.source == source.localAddress && socket.droppedCount == 11)
    }
}
