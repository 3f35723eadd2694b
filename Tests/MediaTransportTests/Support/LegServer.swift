import CallBasics
import MediaEngine

@testable import MediaTransport

/// Serves no leg: the test does.
struct LegServer: HandshakeServer {
    func add(_ leg: DTLSLeg) -> Bool { true }
    func remove(_ leg: DTLSLeg) {}
    func wake() {}
}

/// A socket whose datagrams the test carries.
final class Wire: DatagramLink, @unchecked Sendable {
    var sent: [(bytes: [UInt8], to: SocketAddress)] = []
    var arrived: [(bytes: [UInt8], from: SocketAddress)] = []

    func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        sent.append((bytes.withUnsafeBytes { Array($0) }, destination))
        return true
    }

    func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        guard !arrived.isEmpty else { return nil }
        let (bytes, source) = arrived.removeFirst()
        buffer.store(bytes.span, at: 0)
        return ReceivedDatagram(byteCount: bytes.count, source: source, arrival: now)
    }

    var droppedCount: Int { 0 }
    var unreachableCount: Int { 0 }
}
