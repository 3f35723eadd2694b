package import CallBasics
import Glibc
import Synchronization

/// A non-blocking UDP socket, IPv4 or IPv6, whose arrival times come from the kernel.
///
/// Thread: made and closed on the control side; `send` and `receive` on the media thread. They are single system
/// calls: on one machine, batching (`sendmmsg`, io_uring) gains nothing.
package final class UDPSocket: DatagramLink, @unchecked Sendable {
    /// Bytes that the kernel is asked to hold for us: 2 s of the largest audio packets.
    private static let kernelBufferByteCount: Int32 = 512 * 1024

    /// Where the socket is bound; the port is the real one also when 0 was asked for.
    package let localAddress: SocketAddress
    private let descriptor: Int32
    private let isIPv4: Bool
    private let refused = Atomic<Int>(0)
    /// When the socket was last seen to be empty: what comes out now arrived after that.
    ///
    /// Thread: media.
    private var lastEmpty = MonotonicClock.current
    private let clock: ArrivalClock?
    /// What had been dropped when the socket was closed; nil while it is open.
    private let closedWith = Mutex<Int?>(nil)

    /// A socket bound to `address`; port 0 takes any free port.
    ///
    /// - Parameters:
    ///   - address: The local address and port.
    ///   - dscp: Differentiated services code point of what is sent; 46 (expedited forwarding) suits voice (RFC 4594).
    /// - Throws: `NetworkError` when the port is taken, the address is not ours, or the system refuses.
    package convenience init(bind address: SocketAddress, dscp: Int = 46) throws(NetworkError) {
        try self.init(bind: address, dscp: dscp, clock: ArrivalClock())
    }

    /// As `init(bind:dscp:)`, with a clock that all sockets of a media thread share; without one, in virtual time, a datagram
    /// arrives when it is taken.
    init(bind address: SocketAddress, dscp: Int = 46, clock: ArrivalClock?) throws(NetworkError) {
        self.clock = clock
        isIPv4 = address.isIPv4
        let family = isIPv4 ? AF_INET : AF_INET6
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, type, 0)
        self.descriptor = descriptor
        guard descriptor >= 0 else { throw NetworkError("A socket", address: address, errno: errno) }
        do throws(NetworkError) {
            Self.set(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, 1)
            Self.set(descriptor, SOL_SOCKET, SO_RCVBUF, Self.kernelBufferByteCount)
            Self.set(descriptor, SOL_SOCKET, SO_SNDBUF, Self.kernelBufferByteCount)
            if isIPv4 {
                Self.set(descriptor, Int32(IPPROTO_IP), IP_TOS, Int32(dscp << 2))
            } else {
                Self.set(descriptor, Int32(IPPROTO_IPV6), IPV6_TCLASS, Int32(dscp << 2))
                Self.set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1)
            }
            let code = Self.withSocketAddress(address) { Glibc.bind(descriptor, $0, $1) }
            guard code == 0 else { throw NetworkError("Binding", address: address, errno: errno) }
            localAddress = try Self.boundAddress(of: descriptor, asked: address)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    deinit {
        close()
    }

    /// Frees the port; who reads or sends must have ended.
    ///
    /// Thread: any.
    func close() {
        closedWith.withLock { count in
            guard count == nil else { return }
            count = countDropped()
            Glibc.close(descriptor)
        }
    }

    /// Datagrams that the kernel did not take: no route, no room, or a port that answered "unreachable".
    package var refusedCount: Int { refused.load(ordering: .relaxed) }

    /// Sends one datagram; answers whether the kernel took it.
    @discardableResult
    package func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        guard destination.isIPv4 == isIPv4 else {
            refused.wrappingAdd(1, ordering: .relaxed)
            return false
        }
        let isSent = bytes.withUnsafeBytes { buffer in
            Self.withSocketAddress(destination) { address, length in
                sendto(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL), address, length) >= 0
            }
        }
        if !isSent { refused.wrappingAdd(1, ordering: .relaxed) }
        return isSent
    }

    /// Has the kernel drop what others than `source` send, and count it; nil takes everybody's again.
    package func accept(only source: SocketAddress?) {
        guard let source, source.isIPv4 == isIPv4 else {
            Self.set(descriptor, SOL_SOCKET, SO_DETACH_FILTER, 0)
            return
        }
        SourceFilter(source).attach(to: descriptor)
    }

    /// Datagrams that the kernel dropped: of others than the one source, or for want of room.
    ///
    /// Thread: any.
    package var droppedCount: Int { closedWith.withLock { $0 ?? countDropped() } }

    private func countDropped() -> Int {
        // The last of nine numbers: SK_MEMINFO_DROPS.
        var numbers = InlineArray<9, UInt32>(repeating: 0)
        var length = socklen_t(MemoryLayout.size(ofValue: numbers))
        guard getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, &numbers, &length) == 0 else { return 0 }
        return Int(numbers[8])
    }

    /// Takes one datagram that waits, with the time at which the kernel got it.
    package func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        var source = sockaddr_in6()
        let received = buffer.withUnsafeMutableBytes { bytes in
            withUnsafeMutablePointer(to: &source) { source in
                receive(into: bytes, source: source, now: now)
            }
        }
        if received == nil { lastEmpty = now }
        return received
    }

    /// One `recvmsg`.
    ///
    /// An error that a past send left on the socket (port unreachable) is cleared by one more try.
    private func receive(
        into bytes: UnsafeMutableRawBufferPointer,
        source: UnsafeMutablePointer<sockaddr_in6>,
        now: MediaTime
    ) -> ReceivedDatagram? {
        var control = InlineArray<8, UInt64>(repeating: 0)
        var vector = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &vector) { vector in
            withUnsafeMutablePointer(to: &control) { control in
                for _ in 0..<2 {
                    var message = msghdr()
                    message.msg_name = UnsafeMutableRawPointer(source)
                    message.msg_namelen = socklen_t(MemoryLayout<sockaddr_in6>.size)
                    message.msg_iov = vector
                    message.msg_iovlen = 1
                    message.msg_control = UnsafeMutableRawPointer(control)
                    message.msg_controllen = MemoryLayout<InlineArray<8, UInt64>>.size
                    let count = recvmsg(descriptor, &message, Int32(MSG_TRUNC))
                    if count >= 0 {
                        return ReceivedDatagram(
                            byteCount: count,
                            source: Self.address(source),
                            arrival: arrival(UnsafeRawPointer(control), Int(message.msg_controllen), now)
                        )
                    }
                    guard errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == ENETUNREACH else { return nil }
                }
                return nil
            }
        }
    }

    /// The kernel's time stamp, as an instant of the monotonic clock.
    private func arrival(_ control: UnsafeRawPointer, _ byteCount: Int, _ now: MediaTime) -> MediaTime {
        guard let clock, byteCount >= 32 else { return now }
        let header = control.load(as: cmsghdr.self)
        guard header.cmsg_level == SOL_SOCKET, header.cmsg_type == SO_TIMESTAMPNS else { return now }
        let seconds = control.load(fromByteOffset: 16, as: Int64.self)
        let nanoseconds = control.load(fromByteOffset: 24, as: Int64.self)
        return clock.arrival(seconds &* 1_000_000_000 &+ nanoseconds, in: now, after: lastEmpty)
    }

    private static func address(_ source: UnsafeMutablePointer<sockaddr_in6>) -> SocketAddress {
        let port = UInt16(bigEndian: source.pointee.sin6_port)
        let bytes = UnsafeRawPointer(source)
        guard source.pointee.sin6_family == UInt16(AF_INET6) else {
            return SocketAddress(ipv4: UInt32(bigEndian: bytes.load(fromByteOffset: 4, as: UInt32.self)), port: port)
        }
        let high = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        let low = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
        return SocketAddress(
            ipv6High: UInt64(bigEndian: high),
            low: UInt64(bigEndian: low),
            scope: source.pointee.sin6_scope_id,
            port: port
        )
    }

    private static func withSocketAddress<Result>(
        _ address: SocketAddress,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        if address.isIPv4 {
            var v4 = sockaddr_in()
            v4.sin_family = UInt16(AF_INET)
            v4.sin_port = address.port.bigEndian
            v4.sin_addr = address.inAddress
            return withUnsafePointer(to: &v4) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        var v6 = sockaddr_in6()
        v6.sin6_family = UInt16(AF_INET6)
        v6.sin6_port = address.port.bigEndian
        v6.sin6_addr = address.in6Address
        v6.sin6_scope_id = address.scope
        return withUnsafePointer(to: &v6) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
            }
        }
    }

    private static func boundAddress(
        of descriptor: Int32,
        asked: SocketAddress
    ) throws(NetworkError) -> SocketAddress {
        var bound = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let code = withUnsafeMutablePointer(to: &bound) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard code == 0 else { throw NetworkError("Asking for the port", address: asked, errno: errno) }
        return withUnsafeMutablePointer(to: &bound) { address($0) }
    }

    private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
