package import CallBasics
package import MediaEngine

/// A link that encrypts and signs what goes out over another, and gives only what is authentic of what comes in.
///
///     RTP, RTCP ──► SecureLink ──► base: a socket, or a simulated network
///
/// RTCP on a port of its own is a second link with the same `SecurePath`.
/// Thread: media, one for all links of a path.
package final class SecureLink: DatagramLink, @unchecked Sendable {
    private let base: any DatagramLink
    private let path: SecurePath
    /// The packet that is being sent.
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    /// How many datagrams were read in a tick.
    private var reading: (tick: MediaTime, count: Int) = (.zero, 0)

    package init(_ path: SecurePath, over base: any DatagramLink) {
        (self.path, self.base) = (path, base)
        buffer = .allocate(capacity: Self.bufferByteCount)
        buffer.initialize(repeating: 0)
    }

    deinit {
        buffer.deallocate()
    }

    @discardableResult
    package func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        var copy = buffer.mutableSpan
        guard let count = path.protect(bytes, in: &copy) else { return false }
        return base.send(copy.span.extracting(..<count), to: destination, at: now)
    }

    /// Takes the next authentic datagram.
    ///
    /// Forgeries are dropped here, so that they do not use up what the caller takes a tick; a flood of them ends the reading of
    /// the tick.
    package func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        if reading.tick != now { reading = (now, 0) }
        while reading.count < Self.datagramsInTick {
            guard let datagram = base.receive(into: &buffer, at: now) else { return nil }
            reading.count += 1
            guard let count = path.unprotect(&buffer, count: datagram.byteCount) else { continue }
            return ReceivedDatagram(byteCount: count, source: datagram.source, arrival: datagram.arrival)
        }
        return nil
    }

    @discardableResult
    package func accept(only source: SocketAddress?, or other: SocketAddress?) -> Bool {
        base.accept(only: source, or: other)
    }

    package var droppedCount: Int { base.droppedCount }
    package var unreachableCount: Int { base.unreachableCount }

    private static let bufferByteCount = 4096
    private static let datagramsInTick = 512
}
