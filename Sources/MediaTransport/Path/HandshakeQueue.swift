internal import CallBasics
internal import MediaEngine
internal import Synchronization

/// Datagrams of DTLS, and of ICE, between the media thread, which has the sockets, and the thread that answers them.
///
///     socket ──► SecureLink ──► arrived ──► DTLSThread
///     socket ◄── SecureLink ◄── leaving ◄── DTLSThread
///
/// Neither side waits for the other, and nothing is allocated after `init`: what finds no room is lost, as on a network, and
/// is sent once more.
final class HandshakeQueue: @unchecked Sendable {
    private let arrived = DatagramPipe(capacity: HandshakeQueue.capacity)
    private let leaving = DatagramPipe(capacity: HandshakeQueue.capacity)
    private static let capacity = 16
    /// Whether checks of ICE are answered, too.
    let takesChecks: Bool
    /// Datagrams that were posted, and those of them that were sent.
    private var postedCount = 0
    private let sentCount = Atomic(0)

    init(takesChecks: Bool) { self.takesChecks = takesChecks }

    // MARK: The media thread

    /// Hands a datagram on; answers false when there is no room.
    func deliver(_ buffer: Span<UInt8>, _ datagram: ReceivedDatagram) -> Bool {
        let isTaken = arrived.send(buffer.extracting(..<datagram.byteCount), from: datagram.source, due: .zero)
        if isTaken { DTLSThread.shared.wake() }
        return isTaken
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
        return arrived.receive(into: &span, dueBy: .zero).map { (0..<$0.byteCount, $0.source) }
    }

    /// Has a datagram sent to `destination` with the next tick.
    func post(_ datagram: [UInt8], to destination: SocketAddress) {
        if leaving.send(datagram.span, from: destination, due: .zero) { postedCount += 1 }
    }

    /// Whether all that was posted has left.
    var isSent: Bool { sentCount.load(ordering: .acquiring) == postedCount }
}
