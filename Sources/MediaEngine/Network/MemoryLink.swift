public import CallBasics

/// A perfect network between two ends in one process: what one sends, the other receives at once, whole, in order.
///
/// Wrap an end in an `ImpairedLink` to make the network worse.
/// Thread: both ends belong to one media thread (or to one `ManualDriver`).
public final class MemoryLink: DatagramLink, @unchecked Sendable {
    /// The address that the other end sees.
    public let localAddress: SocketAddress
    private var queue = DatagramQueue(capacity: 512)
    private weak var peer: MemoryLink?

    private init(_ address: SocketAddress) {
        localAddress = address
    }

    /// Two ends that are connected to each other.
    ///
    /// Each keeps the other alive only weakly.
    public static func pair(
        _ first: SocketAddress = SocketAddress(ipv4: 0x0A00_0001, port: 5004),
        _ second: SocketAddress = SocketAddress(ipv4: 0x0A00_0002, port: 5004)
    ) -> (MemoryLink, MemoryLink) {
        let ends = (MemoryLink(first), MemoryLink(second))
        ends.0.peer = ends.1
        ends.1.peer = ends.0
        return ends
    }

    /// Datagrams lost because nobody took them.
    package var refusedCount: Int { queue.refusedCount }

    /// Hands `bytes` to the other end; answers false when `destination` is not its address.
    @discardableResult
    public func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        guard let peer, peer.localAddress == destination else { return false }
        peer.queue.insert(bytes, from: localAddress, due: now)
        return true
    }

    /// Takes what the other end has sent, the oldest first.
    public func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        queue.remove(into: &buffer, dueBy: now)
    }
}
