internal import CallBasics
internal import MediaEngine
internal import RTP
internal import Synchronization

/// Datagrams of DTLS, and of ICE, between the media thread, which has the sockets, and the thread that answers them.
///
///     socket ──► SecureLink ──► arrived, checks ──► DTLSThread
///     socket ◄── SecureLink ◄── leaving ◄── DTLSThread
///
/// Neither side waits for the other, and nothing is allocated after `init`: what finds no room is lost, as on a network, and
/// is sent once more.
final class HandshakeQueue: @unchecked Sendable {
    private let arrived = DatagramPipe(capacity: HandshakeQueue.capacity)
    private let leaving = DatagramPipe(capacity: HandshakeQueue.capacity)
    /// Checks of ICE, and answers to own ones, in a ring of their own: whoever floods this side with DTLS keeps none of them out.
    private let checks: DatagramPipe?
    /// What begins the USERNAME of checks, in each search for the way: a number that only those know who have read a description.
    private let name: [UInt8]
    /// What begins the transactions of own checks, by which their answers are known.
    let tag: UInt32
    private static let capacity = 16
    /// Datagrams that were posted, and those of them that were sent.
    private var postedCount = 0
    private let sentCount = Atomic(0)

    private let server: any HandshakeServer
    /// What the way may go by; nil without ICE.
    let relay: MediaRelay?

    /// A queue for `server`, which takes checks of ICE for `userFragment`, too, where there is one, also by `relay`.
    init(checksFor userFragment: String?, by server: any HandshakeServer, relay: TURNAllocation? = nil) {
        (self.server, self.relay) = (server, userFragment.map { _ in MediaRelay(relay) })
        tag = .random(in: 0...UInt32.max)
        checks = userFragment.map { _ in DatagramPipe(capacity: HandshakeQueue.capacity) }
        name = Array((userFragment ?? "").utf8)
    }

    // MARK: The media thread

    /// Whether checks of ICE may come, from any address.
    var takesChecks: Bool { checks != nil }

    /// Hands on what a handshake is made of.
    ///
    /// - Returns: Where in the buffer what is nothing of that kind is, as sound, or finds no room, and who has sent it; nil for what
    ///   was handed on, or wants nothing.
    func take(_ buffer: Span<UInt8>, _ datagram: ReceivedDatagram) -> (place: Range<Int>, source: SocketAddress)? {
        let whole = (place: 0..<datagram.byteCount, source: datagram.source)
        guard datagram.byteCount <= buffer.count else { return whole }
        let bytes = buffer.extracting(whole.place)
        var content = whole
        if let relay, datagram.source == relay.server {
            switch relay.kind(of: bytes) {
            case .answer: return checks.map { deliver(bytes, datagram, to: $0) } ?? false ? nil : whole
            case .passedOn(let place, let source): content = (place, source)
            case nil: return whole
            }
        }
        return isHandedOn(bytes.extracting(content.place), of: bytes, datagram) ? nil : content
    }

    private func isHandedOn(_ content: Span<UInt8>, of bytes: Span<UInt8>, _ datagram: ReceivedDatagram) -> Bool {
        switch DatagramKind(of: content) {
        case .dtls: return deliver(bytes, datagram, to: arrived)
        case .stun:
            guard let checks else { return false }
            // What keeps the way open wants nothing.
            if isReminder(content) { return true }
            guard isCheck(content) || isAnswer(content) else { return false }
            return deliver(bytes, datagram, to: checks)
        case .rtp, .rtcp, .unknown: return false
        }
    }

    private func deliver(_ bytes: Span<UInt8>, _ datagram: ReceivedDatagram, to pipe: DatagramPipe) -> Bool {
        let isTaken = pipe.send(bytes, from: datagram.source, due: .zero)
        if isTaken { server.wake() }
        return isTaken
    }

    /// Whether it is a Binding indication.
    ///
    /// Source: RFC 8445, section 11.
    private func isReminder(_ bytes: Span<UInt8>) -> Bool {
        bytes.count >= 20 && bytes.uint16(at: 0) == 0x0011 && bytes.uint32(at: 4) == STUNMessage.cookie
    }

    /// Whether it is a Binding request whose USERNAME begins with our name.
    ///
    /// Source: RFC 8489, section 5; RFC 8445, section 7.2.2.
    private func isCheck(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count >= 20, bytes.uint16(at: 0) == 1, bytes.uint32(at: 4) == STUNMessage.cookie,
            let place = STUNMessage.place(of: .username, in: bytes)
        else { return false }
        return place.count >= name.count && name.indices.allSatisfy { bytes[place.lowerBound + $0] == name[$0] }
    }

    /// Whether it answers a Binding request of our own.
    private func isAnswer(_ bytes: Span<UInt8>) -> Bool {
        bytes.count >= 20 && bytes[0] == 1 && bytes[1] & 0xEF == 1 && bytes.uint32(at: 4) == STUNMessage.cookie
            && bytes.uint32(at: 8) == tag
    }

    /// Sends what is to leave over `link`, by way of `buffer`.
    func send(over link: any DatagramLink, by buffer: UnsafeMutableBufferPointer<UInt8>, at now: MediaTime) {
        var bytes = buffer.mutableSpan
        while let datagram = leaving.receive(into: &bytes, dueBy: .zero) {
            link.send(bytes.span.extracting(..<datagram.byteCount), to: datagram.source, at: now)
            sentCount.wrappingAdd(1, ordering: .releasing)
        }
    }

    // MARK: The thread of DTLS

    /// Takes the next datagram that has come, and who sent it.
    func take(into buffer: inout [UInt8]) -> (bytes: Range<Int>, source: SocketAddress)? {
        var span = buffer.mutableSpan
        let datagram = checks?.receive(into: &span, dueBy: .zero) ?? arrived.receive(into: &span, dueBy: .zero)
        return datagram.map { (0..<$0.byteCount, $0.source) }
    }

    /// Has a datagram sent to `destination` with the next tick.
    func post(_ datagram: [UInt8], to destination: SocketAddress) {
        if leaving.send(datagram.span, from: destination, due: .zero) { postedCount += 1 }
    }

    /// Whether all that was posted has left.
    var isSent: Bool { sentCount.load(ordering: .acquiring) == postedCount }
}
