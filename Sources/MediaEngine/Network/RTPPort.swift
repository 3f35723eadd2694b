package import CallBasics
import RTP

/// One leg's sockets, or what stands for them: datagrams go in and out, and each leaves a copy in the leg's capture.
///
/// Thread: media.
package final class RTPPort {
    /// Where datagrams come from.
    package enum Side {
        /// RTP's port, which RTCP may share.
        case media
        /// RTCP's own port.
        case control
    }

    /// What captures show as this side's address.
    private let localAddress: SocketAddress
    private let link: any DatagramLink
    private let controlLink: (any DatagramLink)?
    private let tap: PacketTap?
    private let scratch: PacketScratch
    /// The sources whose datagrams alone the link lets through; nil while it takes everybody's.
    private var onlySources: (locked: SocketAddress, named: SocketAddress?)?

    /// A port of `link`, and of `controlLink` for RTCP when it has a port of its own.
    ///
    /// - Parameters:
    ///   - link: Where RTP goes, and RTCP too when there is no `controlLink`.
    ///   - controlLink: Where RTCP goes.
    ///   - localAddress: The address that captures show as ours.
    ///   - tap: Gets a copy of every datagram, both ways.
    ///   - scratch: Where packets are made and taken; legs of one media thread may share it.
    package init(
        link: any DatagramLink,
        controlLink: (any DatagramLink)? = nil,
        localAddress: SocketAddress,
        tap: PacketTap? = nil,
        scratch: PacketScratch = PacketScratch()
    ) {
        self.link = link
        self.controlLink = controlLink
        self.localAddress = localAddress
        self.tap = tap
        self.scratch = scratch
        // Another call may have used the link.
        link.accept(only: nil, or: nil)
    }

    /// Where a datagram is put together before it is sent.
    package var bytes: UnsafeMutableBufferPointer<UInt8> { scratch.bytes }

    /// Where a payload is put together before it becomes part of a datagram.
    package var payload: UnsafeMutableBufferPointer<UInt8> { scratch.payload }

    /// Takes the next datagram of `side`.
    ///
    /// - Parameters:
    ///   - side: Which port; there may be none for RTCP alone.
    ///   - now: The tick's start.
    ///   - body: Gets the datagram's bytes, none if it was cut off; who sent it; and when it arrived.
    /// - Returns: Whether there was a datagram.
    @inline(__always)
    package func receive(
        from side: Side,
        at now: MediaTime,
        _ body: (Span<UInt8>, SocketAddress, MediaTime) -> Void
    ) -> Bool {
        guard let source = side == .media ? link : controlLink else { return false }
        let memory = scratch.bytes
        var buffer = memory.mutableSpan
        guard let datagram = source.receive(into: &buffer, at: now) else { return false }
        // What was cut off cannot be whole: handing on nothing makes the session count it as malformed.
        let byteCount = datagram.byteCount <= buffer.count ? datagram.byteCount : 0
        let bytes = UnsafeBufferPointer(rebasing: memory[..<byteCount]).span
        tap?.record(bytes, from: datagram.source, to: localAddress, at: datagram.arrival)
        body(bytes, datagram.source, datagram.arrival)
        return true
    }

    /// Sends the first `byteCount` of `bytes`.
    package func send(_ byteCount: Int, from side: Side, to destination: SocketAddress, at now: MediaTime) {
        let bytes = UnsafeBufferPointer(rebasing: scratch.bytes[..<byteCount]).span
        let way = side == .media ? link : controlLink ?? link
        way.send(bytes, to: destination, at: now)
        tap?.record(bytes, from: localAddress, to: destination, at: now)
    }

    /// Datagrams of RTP's port that the socket dropped before anybody took them.
    ///
    /// Thread: any.
    var droppedCount: Int { link.droppedCount }

    /// Datagrams of RTP's port that the link itself found to be nobody's.
    var forgedCount: Int { link.forgedCount }

    /// Answers that what was sent from RTP's port did not arrive.
    ///
    /// Thread: any.
    var unreachableCount: Int { link.unreachableCount }

    /// Lets only datagrams of `sources` through from now on, where the link can; nil lets everybody's through.
    ///
    /// What the link refused is asked of it again with the next call.
    package func accept(only sources: (locked: SocketAddress, named: SocketAddress?)?) {
        guard sources?.locked != onlySources?.locked || sources?.named != onlySources?.named else { return }
        onlySources = link.accept(only: sources?.locked, or: sources?.named) ? sources : nil
    }
}
