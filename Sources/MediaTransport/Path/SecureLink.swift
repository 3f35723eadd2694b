package import CallBasics
package import MediaEngine
internal import RTP

/// A link that encrypts and signs what goes out over another, and gives only what is authentic of what comes in.
///
///     RTP, RTCP ──► SecureLink ──► base: a socket, or a simulated network
///
/// RTCP on a port of its own is a second link with the same `SecurePath`. Datagrams of DTLS, and of ICE, go to and from its queue.
/// Where the way goes by a relay (TURN), packets leave for its server with four bytes before them, and come from there so.
/// Thread: media, one for all links of a path.
package final class SecureLink: DatagramLink, @unchecked Sendable {
    private let base: any DatagramLink
    private let path: SecurePath
    private let handshakes: HandshakeQueue?
    /// The newest packets that came before the first keys; none without handshakes.
    ///
    /// The DTLS server has keys first, and may send before its last flight is here.
    private var early: DatagramQueue
    /// The packet that is being sent, behind the bytes that a relay wants before it.
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    private let body: UnsafeMutableBufferPointer<UInt8>
    /// How many datagrams were read in a tick.
    private var reading: (tick: MediaTime, count: Int) = (.zero, 0)
    package private(set) var forgedCount = 0

    package convenience init(_ path: SecurePath, over base: any DatagramLink) { self.init(path, nil, over: base) }

    init(_ path: SecurePath, _ handshakes: HandshakeQueue?, over base: any DatagramLink) {
        (self.path, self.handshakes, self.base) = (path, handshakes, base)
        early = DatagramQueue(capacity: handshakes == nil ? 0 : Self.earlyCapacity)
        buffer = .allocate(capacity: Self.bufferByteCount)
        buffer.initialize(repeating: 0)
        body = UnsafeMutableBufferPointer(rebasing: buffer[ChannelData.headerByteCount...])
    }

    deinit {
        buffer.deallocate()
    }

    @discardableResult
    package func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        var copy = body.mutableSpan
        guard let count = path.protect(bytes, in: &copy) else { return false }
        guard let relay = handshakes?.relay else {
            return base.send(copy.span.extracting(..<count), to: destination, at: now)
        }
        switch relay.way(to: destination) {
        case .asItIs: return base.send(copy.span.extracting(..<count), to: destination, at: now)
        case .channel(let number, let server):
            var whole = buffer.mutableSpan
            whole.store(number, at: 0)
            whole.store(UInt16(count), at: 2)
            let byteCount = ChannelData.headerByteCount + count
            return base.send(whole.span.extracting(..<byteCount), to: server, at: now)
        case .none:
            path.keepBack()
            return false
        }
    }

    /// Takes the next authentic datagram.
    ///
    /// Forgeries are dropped here, so that they do not use up what the caller takes a tick; a flood of them ends the reading of
    /// the tick.
    package func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        if reading.tick != now {
            reading = (now, 0)
            handshakes?.send(over: base, by: self.buffer, at: now)
        }
        path.beginReading()
        defer { path.endReading() }
        while reading.count < Self.datagramsInTick {
            guard let datagram = next(into: &buffer, at: now) else { return nil }
            reading.count += 1
            var (place, source) = (0..<datagram.byteCount, datagram.source)
            if let handshakes {
                guard let packet = handshakes.take(buffer.span, datagram) else { continue }
                (place, source) = packet
            }
            // What a relay has put before it is taken off.
            if place.lowerBound > 0 {
                buffer.withUnsafeMutableBytes { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[place])) }
            }
            if path.awaitsKeys, keep(buffer.span, place.count, source, datagram.arrival) { continue }
            guard let count = path.unprotect(&buffer, count: place.count) else {
                forgedCount &+= 1
                continue
            }
            return ReceivedDatagram(byteCount: count, source: source, arrival: datagram.arrival)
        }
        return nil
    }

    /// The next of those that were early, once there are keys, and else of the network.
    private func next(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        if !path.awaitsKeys {
            // Some may have come after the tick was due.
            while let datagram = early.remove(into: &buffer, dueBy: MediaTime(nanoseconds: .max)) {
                if now - datagram.arrival <= Self.longestWait { return datagram }
                path.refuseEarly()
            }
        }
        return base.receive(into: &buffer, at: now)
    }

    /// Keeps a packet until there are keys; answers false where it is none.
    private func keep(
        _ buffer: Span<UInt8>,
        _ byteCount: Int,
        _ source: SocketAddress,
        _ arrival: MediaTime
    ) -> Bool {
        guard handshakes != nil, byteCount <= buffer.count else { return false }
        let bytes = buffer.extracting(..<byteCount)
        switch DatagramKind(of: bytes) {
        case .rtp, .rtcp: break
        case .stun, .dtls, .unknown: return false
        }
        if early.isFull {
            early.removeFirst()
            path.refuseEarly()
        }
        early.insert(bytes, from: source, due: arrival)
        return true
    }

    @discardableResult
    package func accept(only source: SocketAddress?, or other: SocketAddress?) -> Bool {
        // Checks of ICE come from any address.
        if let handshakes, handshakes.takesChecks { return false }
        return base.accept(only: source, or: other)
    }

    package var droppedCount: Int { base.droppedCount }
    package var unreachableCount: Int { base.unreachableCount }

    /// As long as whatever is taken from the queue of handshakes.
    private static let bufferByteCount = DatagramPipe.maximumByteCount
    private static let datagramsInTick = 512
    /// Keys come a tick later than the handshake ends: the shortest packets have 5 ms.
    private static let earlyCapacity = 4
    /// If it were older than that when the keys are there, there would be a gap behind it: what came between was not kept.
    private static let longestWait = Duration.milliseconds(40)
}
