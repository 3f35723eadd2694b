public import CallBasics

/// A perfect network between two ends in one process: what one sends, the other receives at once, whole, in order.
///
/// Up to 512 datagrams of up to 4096 bytes wait for an end; others are dropped, and counted there. A `DatagramLink` of
/// your own around an end makes the network worse.
/// Thread: each end belongs to one media thread, in virtual time to whoever moves it; the two ends may belong to two.
public final class MemoryLink: DatagramLink {
    /// The address that the other end sees.
    public let localAddress: SocketAddress
    private let peerAddress: SocketAddress
    private let outgoing: DatagramPipe
    private let incoming: DatagramPipe

    private init(
        _ address: SocketAddress,
        _ peerAddress: SocketAddress,
        outgoing: DatagramPipe,
        incoming: DatagramPipe
    ) {
        localAddress = address
        self.peerAddress = peerAddress
        self.outgoing = outgoing
        self.incoming = incoming
    }

    deinit {
        incoming.close()
    }

    /// Two ends that are connected to each other.
    ///
    /// Neither keeps the other alive.
    public static func pair(
        _ first: SocketAddress = SocketAddress(ipv4: 0x0A00_0001, port: 5004),
        _ second: SocketAddress = SocketAddress(ipv4: 0x0A00_0002, port: 5004)
    ) -> (MemoryLink, MemoryLink) {
        let (there, back) = (DatagramPipe(capacity: capacity), DatagramPipe(capacity: capacity))
        return (
            MemoryLink(first, second, outgoing: there, incoming: back),
            MemoryLink(second, first, outgoing: back, incoming: there)
        )
    }

    /// Datagrams from the other end that were too long, or found no room because nobody took those before them.
    public var droppedCount: Int { incoming.refusedCount }

    /// Hands `bytes` to the other end; answers false when `destination` is not its address, or it is gone.
    @discardableResult
    public func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        guard destination == peerAddress, !outgoing.isClosed else { return false }
        outgoing.send(bytes, from: localAddress, due: now)
        return true
    }

    /// Takes what the other end has sent, the oldest first.
    public func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        incoming.receive(into: &buffer, dueBy: now)
    }

    /// Datagrams that wait for one end.
    private static let capacity = 512
}
