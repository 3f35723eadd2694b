public import CallBasics

/// Where datagrams go out and come in: a UDP socket, or a simulated network.
///
/// Thread: media. Neither call waits, allocates or throws: what cannot be sent now is counted as refused.
public protocol DatagramLink: AnyObject, Sendable {
    /// Sends `bytes` to `destination`; answers false when the network refused them.
    @discardableResult
    func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool

    /// Takes the next datagram that has arrived by `now`, or answers nil.
    ///
    /// Bytes beyond `buffer`'s count are cut off; the result's `byteCount` is then larger than the buffer.
    func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram?

    /// Drops datagrams of all but `source`, and `other` if there is one, from now on, where that costs nothing; nil takes
    /// everybody's again.
    ///
    /// It only spares work: who reads judges every datagram all the same.
    /// - Returns: False when the system refused, so that it takes everybody's, and is to be asked again.
    @discardableResult
    func accept(only source: SocketAddress?, or other: SocketAddress?) -> Bool

    /// Datagrams that came and were dropped before anybody took them: for want of room, or of others than may be accepted.
    ///
    /// Thread: any.
    var droppedCount: Int { get }

    /// Datagrams that were read and were nobody's, before anybody took them: forgeries.
    ///
    /// Thread: that which reads.
    var forgedCount: Int { get }

    /// Answers from the network that what was sent did not arrive, as that nobody listens there.
    ///
    /// Thread: any.
    var unreachableCount: Int { get }
}

extension DatagramLink {
    /// Takes everybody's, however often it is asked.
    @discardableResult
    public func accept(only source: SocketAddress?, or other: SocketAddress?) -> Bool { true }

    /// None.
    public var droppedCount: Int { 0 }

    /// None.
    public var forgedCount: Int { 0 }

    /// None.
    public var unreachableCount: Int { 0 }
}

/// A datagram that was copied into the caller's buffer.
public struct ReceivedDatagram: Sendable, BitwiseCopyable {
    /// Bytes of the datagram, also when the buffer was smaller.
    public let byteCount: Int
    /// Who sent it.
    public let source: SocketAddress
    /// When it reached the host: the kernel's time stamp for sockets.
    public let arrival: MediaTime

    /// A datagram of `byteCount` bytes from `source`.
    public init(byteCount: Int, source: SocketAddress, arrival: MediaTime) {
        self.byteCount = byteCount
        self.source = source
        self.arrival = arrival
    }
}
