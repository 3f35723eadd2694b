package import CallBasics
import Glibc
import Synchronization

/// A non-blocking UDP socket, IPv4 or IPv6, whose arrival times come from the kernel.
///
/// Thread: made and closed on the control side; `send` and `receive` on the media thread. They are single system
/// calls: on one machine, batching (`sendmmsg`, io_uring) gains nothing, but where floods are read (`DatagramBatch`).
package final class UDPSocket: DatagramLink, @unchecked Sendable {
    /// Bytes that the kernel is asked to hold for us: 2 s of the largest audio packets.
    private static let kernelBufferByteCount: Int32 = 512 * 1024

    /// Where the socket was bound first; the port is the real one also when 0 was asked for.
    package let localAddress: SocketAddress
    let descriptor: Int32
    private let isIPv4: Bool
    private let refused = Atomic<Int>(0)
    private let unreachable = Atomic<Int>(0)
    /// When the socket was last seen to be empty: what comes out now arrived after that.
    ///
    /// Thread: media.
    private var lastEmpty = MonotonicClock.current
    // One thread owns it, and no access lasts longer than a call, so checking each would be a waste of the tick.
    @exclusivity(unchecked) private var errorLimit = ErrorQueueLimit()
    private let clock: ArrivalClock?
    private let batch: DatagramBatch?
    @exclusivity(unchecked) private var look = Look()
    /// What had been dropped when the socket was closed; nil while it is open.
    private let closedWith = Mutex<Int?>(nil)
    /// What was dropped at addresses that it has left.
    private let droppedBefore = Atomic<Int>(0)

    /// What was read in one tick.
    private struct Look {
        var tick = MediaTime(nanoseconds: .min)
        /// Reads of one datagram each.
        var count = 0
        /// Whether a batch found no more: the socket is empty, or an answer to what was sent stands before the rest.
        var isDrained = false
    }

    /// What comes beside a datagram: the time stamp, with room for more.
    typealias ControlData = InlineArray<8, UInt64>

    /// Datagrams of a tick that are read one by one before a batch is worth it.
    private static let singleCount = 8

    /// A socket bound to `address`; port 0 takes any free port.
    ///
    /// - Parameters:
    ///   - address: The local address and port.
    ///   - dscp: Differentiated services code point of what is sent; 46 (expedited forwarding) suits voice (RFC 4594).
    /// - Throws: `NetworkError` when the port is taken, the address is not ours, or the system refuses.
    package convenience init(bind address: SocketAddress, dscp: Int = 46) throws(NetworkError) {
        try self.init(bind: address, dscp: dscp, clock: ArrivalClock(), batch: nil)
    }

    /// As `init(bind:dscp:)`, with what all sockets of a media thread share; without it, in virtual time, a datagram arrives
    /// when it is taken.
    convenience init(bind address: SocketAddress, sharing: SocketSharing?) throws(NetworkError) {
        try self.init(bind: address, dscp: 46, clock: sharing?.clock, batch: sharing?.batch)
    }

    private init(
        bind address: SocketAddress,
        dscp: Int,
        clock: ArrivalClock?,
        batch: DatagramBatch?
    ) throws(NetworkError) {
        (self.clock, self.batch) = (clock, batch)
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
            Self.keepAnswers(descriptor, isIPv4: isIPv4, true)
            let code = address.withSystemAddress { Glibc.bind(descriptor, $0, $1) }
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
            batch?.leave(self)
            count = countDropped()
            Glibc.close(descriptor)
        }
    }

    /// Where it is bound now.
    var port: UInt16 { (try? Self.boundAddress(of: descriptor, asked: localAddress))?.port ?? localAddress.port }

    /// Goes to where `twin` is, of the same family; what waits at the former address in the kernel is lost.
    ///
    /// The descriptor stays, so that the media thread goes on in the same tick, and so does the kernel's filter of sources.
    /// Thread: control; nobody waits.
    func take(_ twin: UDPSocket) {
        SourceFilter.copy(from: descriptor, to: twin.descriptor)
        closedWith.withLock { count in
            guard count == nil else { return }
            droppedBefore.wrappingAdd(countDropped(), ordering: .relaxed)
            while dup2(twin.descriptor, descriptor) < 0, errno == EINTR || errno == EBUSY {}
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        }
    }

    /// Datagrams that the kernel did not take, mostly for want of room.
    package var refusedCount: Int { refused.load(ordering: .relaxed) }

    /// Answers of hosts and routers on the way that what was sent did not arrive (ICMP), as that nobody listens there, and
    /// datagrams that have no way from here.
    ///
    /// Where 64 come in one tick, which nobody's sound causes, these are counted, and the kernel keeps no others for 5 s.
    /// Thread: any.
    package var unreachableCount: Int { unreachable.load(ordering: .relaxed) }

    /// Sends one datagram; answers whether the kernel took it.
    @discardableResult
    package func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        guard destination.isIPv4 == isIPv4 else {
            refused.wrappingAdd(1, ordering: .relaxed)
            return false
        }
        func trySend() -> Bool {
            bytes.withUnsafeBytes { buffer in
                destination.withSystemAddress { address, length in
                    sendto(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL), address, length) >= 0
                }
            }
        }
        // An answer to an earlier datagram is told in place of sending this one.
        var (isSent, reason) = (trySend(), errno)
        for _ in 0..<Self.answerLimit where !isSent && takeAnswers(after: reason, at: now) {
            (isSent, reason) = (trySend(), errno)
        }
        guard !isSent else { return true }
        switch reason {
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EACCES, EPERM: unreachable.wrappingAdd(1, ordering: .relaxed)
        default: refused.wrappingAdd(1, ordering: .relaxed)
        }
        return false
    }

    /// Has the kernel drop what others than `source` and `other` send, and count it; nil takes everybody's again.
    ///
    /// - Returns: False when the kernel has no room for it; then it drops nothing, not what it did before either.
    @discardableResult
    package func accept(only source: SocketAddress?, or other: SocketAddress?) -> Bool {
        if let source, source.isIPv4 == isIPv4 {
            let filter = SourceFilter(source, other.flatMap { $0.isIPv4 == isIPv4 ? $0 : nil })
            if filter.attach(to: descriptor) { return true }
        }
        Self.set(descriptor, SOL_SOCKET, SO_DETACH_FILTER, 0)
        return source?.isIPv4 != isIPv4
    }

    /// Datagrams that the kernel dropped: for want of room, or of others than may be accepted.
    ///
    /// Thread: any.
    package var droppedCount: Int {
        closedWith.withLock { $0 ?? countDropped() } + droppedBefore.load(ordering: .relaxed)
    }

    private func countDropped() -> Int {
        // The last of nine numbers: SK_MEMINFO_DROPS.
        var numbers = InlineArray<9, UInt32>(repeating: 0)
        var length = socklen_t(MemoryLayout.size(ofValue: numbers))
        guard getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, &numbers, &length) == 0 else { return 0 }
        return Int(numbers[8])
    }

    /// Takes one datagram that waits, with the time at which the kernel got it.
    package func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        if look.tick != now { look = Look(tick: now) }
        if let batch, batch.holdsThose(of: self) || look.count >= Self.singleCount && batch.isFree {
            return buffer.withUnsafeMutableBytes { receive(into: $0, by: batch, now: now) }
        }
        look.count &+= 1
        var source = sockaddr_in6()
        return buffer.withUnsafeMutableBytes { bytes in
            withUnsafeMutablePointer(to: &source) { source in
                receive(into: bytes, source: source, now: now)
            }
        }
    }

    /// The next of the batch, which is filled when it is empty.
    private func receive(
        into bytes: UnsafeMutableRawBufferPointer,
        by batch: DatagramBatch,
        now: MediaTime
    ) -> ReceivedDatagram? {
        if !batch.holdsThose(of: self) {
            guard !look.isDrained, fill(batch, now) else { return nil }
        }
        return batch.takeNext(into: bytes) { byteCount, source, control, controlByteCount in
            ReceivedDatagram(
                byteCount: byteCount,
                source: SocketAddress(source),
                arrival: arrival(control, controlByteCount, now)
            )
        }
    }

    /// Whether there is something in the batch then.
    private func fill(_ batch: DatagramBatch, _ now: MediaTime) -> Bool {
        for _ in 0..<Self.answerLimit {
            let count = batch.fill(from: self)
            if count > 0 {
                look.isDrained = count < DatagramBatch.capacity
                return true
            }
            guard isWorthAnotherTry(after: Int32(-count), at: now) else { return false }
        }
        return false
    }

    /// After a call that gave no datagram: takes note of an empty socket, or of answers, behind which a datagram may wait.
    private func isWorthAnotherTry(after reason: Int32, at now: MediaTime) -> Bool {
        guard reason != EAGAIN else {
            lastEmpty = now
            return false
        }
        takeAnswers(after: reason, at: now)
        return true
    }

    /// Answers that one call gets past: another may come between a look at the queue and the next try.
    private static let answerLimit = 4

    /// After a call that failed by `reason`: takes and counts the answers in the socket's error queue (ip(7), IP_RECVERR), where they
    /// would take up the room of datagrams; with a flood of them, the rest is thrown away, and none are taken for a while.
    ///
    /// - Returns: Whether it is worth trying again: the failure was such an answer.
    @discardableResult
    private func takeAnswers(after reason: Int32, at now: MediaTime) -> Bool {
        // Nothing waits, or there is no room; any other may be an answer: ICMP has many (ip(7), ipv6(7)).
        guard reason != EAGAIN, reason != ENOBUFS else { return false }
        let room = errorLimit.room(at: now)
        var count = 0
        var message = msghdr()
        while count < room, recvmsg(descriptor, &message, Int32(MSG_ERRQUEUE)) >= 0 {
            count &+= 1
            message = msghdr()
        }
        if count > 0 { unreachable.wrappingAdd(count, ordering: .relaxed) }
        if errorLimit.beginsPause(count, at: now) {
            Self.keepAnswers(descriptor, isIPv4: isIPv4, false)
            // What the next call would fail with: asking for it takes it away.
            var (code, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        }
        // An answer that was taken from the queue just before it was told leaves that empty.
        return count > 0 || reason == ECONNREFUSED
    }

    /// Has the kernel keep answers for the socket, or throw away those that wait and keep none.
    private static func keepAnswers(_ descriptor: Int32, isIPv4: Bool, _ isOn: Bool) {
        if isIPv4 {
            set(descriptor, Int32(IPPROTO_IP), IP_RECVERR, isOn ? 1 : 0)
        } else {
            set(descriptor, Int32(IPPROTO_IPV6), IPV6_RECVERR, isOn ? 1 : 0)
        }
    }

    /// One `recvmsg`; more after answers to what was sent, which are told in place of a datagram.
    private func receive(
        into bytes: UnsafeMutableRawBufferPointer,
        source: UnsafeMutablePointer<sockaddr_in6>,
        now: MediaTime
    ) -> ReceivedDatagram? {
        if errorLimit.endsPause(at: now) { Self.keepAnswers(descriptor, isIPv4: isIPv4, true) }
        var control = ControlData(repeating: 0)
        var vector = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &vector) { vector in
            withUnsafeMutablePointer(to: &control) { control in
                for _ in 0..<Self.answerLimit {
                    var message = msghdr()
                    message.msg_name = UnsafeMutableRawPointer(source)
                    message.msg_namelen = socklen_t(MemoryLayout<sockaddr_in6>.size)
                    message.msg_iov = vector
                    message.msg_iovlen = 1
                    message.msg_control = UnsafeMutableRawPointer(control)
                    message.msg_controllen = MemoryLayout<ControlData>.size
                    let count = recvmsg(descriptor, &message, Int32(MSG_TRUNC))
                    if count >= 0 {
                        return ReceivedDatagram(
                            byteCount: count,
                            source: SocketAddress(source),
                            arrival: arrival(UnsafeRawPointer(control), Int(message.msg_controllen), now)
                        )
                    }
                    guard isWorthAnotherTry(after: errno, at: now) else { return nil }
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
        return SocketAddress(&bound)
    }

    private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
