package import CallBasics
import Glibc

/// Questions that are asked over a port before a call has it: how it is seen from outside, for one.
package protocol PortQuery: Sendable {
    /// Does what its time has come for.
    ///
    /// - Returns: When to ask again, unless something comes before; nil when it is over.
    mutating func advance(to now: MediaTime) -> MediaTime?
    /// What is to be sent, in order, since it was asked last.
    mutating func takeDatagrams() -> [(bytes: [UInt8], destination: SocketAddress)]
    /// Takes what has come.
    mutating func take(_ datagram: [UInt8], from source: SocketAddress, at now: MediaTime)
}

extension UDPSocket {
    /// Asks until the question is over.
    ///
    /// Thread: any, while nobody else has the socket; it blocks.
    package func ask<Query: PortQuery>(_ query: Query) -> Query {
        var query = query
        var buffer = [UInt8](repeating: 0, count: Self.queryByteLimit)
        while let next = query.advance(to: MonotonicClock.current) {
            for (bytes, destination) in query.takeDatagrams() {
                send(bytes.span, to: destination, at: MonotonicClock.current)
            }
            let pause = (next - MonotonicClock.current).milliseconds.rounded(.up)
            var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&state, 1, Int32(max(0, pause))) > 0 else { continue }
            // What the network says of former questions; nobody waits for it.
            while state.revents & Int16(POLLERR) != 0, recv(descriptor, nil, 0, Int32(MSG_ERRQUEUE)) >= 0 {}
            if let (count, source) = read(into: &buffer) {
                query.take(Array(buffer[..<count]), from: source, at: MonotonicClock.current)
            }
        }
        return query
    }

    /// Takes a datagram without its time, for which sockets of a media thread share a clock.
    private func read(into buffer: inout [UInt8]) -> (count: Int, source: SocketAddress)? {
        var source = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        return withUnsafeMutablePointer(to: &source) { source in
            let count = source.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(descriptor, &buffer, buffer.count, 0, $0, &length)
            }
            return count < 0 ? nil : (count, SocketAddress(source))
        }
    }

    /// More than any answer has.
    private static let queryByteLimit = 1500
}
