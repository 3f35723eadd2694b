internal import CLinux
import CallBasics
import Glibc
import Synchronization

/// Datagrams that one system call has taken from a socket, until they are asked for one by one.
///
/// While few come, a call for each is quicker: with a batch, there is always a look at an empty socket behind the last one. So a
/// socket begins with it when many have come in one tick, as in a flood of forged packets.
/// All sockets of a media thread share one, so that it stays in the processor's cache. The socket that has filled it owns it
/// until it is empty; the others read one by one meanwhile.
/// Thread: media; `leave` control.
final class DatagramBatch: @unchecked Sendable {
    /// More in one call gain nothing.
    static let capacity = 16
    /// As much as a datagram may have that is not cut off.
    private static let slotByteCount = PacketScratch.packetByteCount
    /// Between slots: were they whole pages, all would compete for the same places of the cache.
    private static let stride = slotByteCount + 256

    private let bytes: UnsafeMutableRawPointer
    private let messages: UnsafeMutablePointer<Message>
    private let vectors: UnsafeMutablePointer<iovec>
    private let sources: UnsafeMutablePointer<sockaddr_in6>
    private let controls: UnsafeMutablePointer<UDPSocket.ControlData>
    /// Whose datagrams wait; 0 for nobody's.
    private let owner = Atomic<UInt>(0)
    /// Those that wait.
    // The media thread alone has it; `leave` does not touch it.
    @exclusivity(unchecked) private var waiting = 0..<0

    /// What the system takes and tells about a datagram: struct mmsghdr (recvmmsg(2)), which Glibc hides from Swift.
    private struct Message {
        var header = msghdr()
        var byteCount: UInt32 = 0
    }

    /// A batch that is nobody's.
    init() {
        // Until there is a flood nothing is written to it, so that it takes no memory.
        bytes = .allocate(byteCount: Self.capacity * Self.stride, alignment: 64)
        messages = .allocate(capacity: Self.capacity)
        messages.initialize(repeating: Message(), count: Self.capacity)
        vectors = .allocate(capacity: Self.capacity)
        sources = .allocate(capacity: Self.capacity)
        sources.initialize(repeating: sockaddr_in6(), count: Self.capacity)
        controls = .allocate(capacity: Self.capacity)
        controls.initialize(repeating: UDPSocket.ControlData(repeating: 0), count: Self.capacity)
        for index in 0..<Self.capacity {
            let place = vectors + index
            place.initialize(to: iovec(iov_base: bytes + index * Self.stride, iov_len: Self.slotByteCount))
            messages[index].header.msg_iov = place
            messages[index].header.msg_iovlen = 1
            messages[index].header.msg_name = UnsafeMutableRawPointer(sources + index)
            messages[index].header.msg_control = UnsafeMutableRawPointer(controls + index)
        }
    }

    deinit {
        bytes.deallocate()
        messages.deallocate()
        vectors.deallocate()
        sources.deallocate()
        controls.deallocate()
    }

    /// Whether datagrams of `socket` wait in it.
    func holdsThose(of socket: UDPSocket) -> Bool { owner.load(ordering: .acquiring) == Self.name(socket) }

    /// Whether nobody's datagrams wait in it.
    var isFree: Bool { owner.load(ordering: .acquiring) == 0 }

    /// Takes up to `capacity` that wait in `socket`, for a batch that is free.
    ///
    /// - Returns: How many, or the error's code below 0.
    func fill(from socket: UDPSocket) -> Int {
        for index in 0..<Self.capacity {
            messages[index].header.msg_namelen = socklen_t(MemoryLayout<sockaddr_in6>.size)
            messages[index].header.msg_controllen = MemoryLayout<UDPSocket.ControlData>.size
        }
        let count = Int(linux_receive_datagrams(socket.descriptor, messages, UInt32(Self.capacity)))
        guard count > 0 else { return count }
        waiting = 0..<count
        owner.store(Self.name(socket), ordering: .releasing)
        return count
    }

    /// Copies the next one into `buffer`, and hands on what the kernel has told of it.
    ///
    /// - Parameters:
    ///   - buffer: Gets as much as it has room for.
    ///   - body: Gets the datagram's byte count, who sent it, and the control data with its byte count.
    /// - Returns: What `body` makes of it; nil when none waits.
    func takeNext<Result>(
        into buffer: UnsafeMutableRawBufferPointer,
        _ body: (Int, UnsafePointer<sockaddr_in6>, UnsafeRawPointer, Int) -> Result
    ) -> Result? {
        guard let index = waiting.first else { return nil }
        let byteCount = Int(messages[index].byteCount)
        let slot = UnsafeRawBufferPointer(start: bytes + index * Self.stride, count: min(byteCount, Self.slotByteCount))
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: slot.prefix(buffer.count)))
        let result = body(byteCount, sources + index, controls + index, Int(messages[index].header.msg_controllen))
        waiting = index + 1..<waiting.upperBound
        if waiting.isEmpty { owner.store(0, ordering: .releasing) }
        return result
    }

    /// Drops what waits of a socket that is closed.
    func leave(_ socket: UDPSocket) {
        _ = owner.compareExchange(expected: Self.name(socket), desired: 0, ordering: .acquiringAndReleasing)
    }

    private static func name(_ socket: UDPSocket) -> UInt { UInt(bitPattern: ObjectIdentifier(socket)) }
}

/// What the sockets of one media thread share.
struct SocketSharing: Sendable {
    let clock = ArrivalClock()
    let batch = DatagramBatch()
}
