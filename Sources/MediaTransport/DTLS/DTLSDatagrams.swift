internal import CLibSSL

/// The network of an association, as the library sees it: a write is one datagram, a read one record of it.
///
/// The library's own buffers in memory lose where a datagram ends.
final class DTLSDatagrams {
    /// What is to be sent, in order.
    private var outgoing: [[UInt8]] = []
    /// What the library gets to read.
    var filter = RecordFilter()
    /// What has come and is not read; valid within `receive`.
    private var incoming = UnsafeRawBufferPointer(start: nil, count: 0)

    /// Bytes of a datagram that is sent: they pass any network that calls do.
    static let byteLimit = 1200
    /// Bytes of a datagram that is taken: more than any handshake sends at once, and no more than a record may have.
    private static let incomingByteLimit = 1 << 14
    /// More than two flights; what nobody takes is lost, as in a network, and sent again.
    private static let countLimit = 32

    /// Has `session` read and write here.
    ///
    /// - Returns: False when there is no memory for it.
    func attach(to session: OpaquePointer) -> Bool {
        guard let method = Self.method.pointer, let bio = BIO_new(method) else { return false }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        // The session frees it.
        SSL_set_bio(session, bio, bio)
        dtls_set_datagram_limit(session, Self.byteLimit)
        return true
    }

    /// Lets the library read `datagram` within `body`.
    func receive(_ datagram: UnsafeRawBufferPointer, _ body: () -> Void) {
        guard datagram.count <= Self.incomingByteLimit else { return }
        incoming = datagram
        body()
        incoming = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    func takeOutgoing() -> [[UInt8]] {
        defer { outgoing = [] }
        return outgoing
    }

    private func write(_ bytes: UnsafeRawBufferPointer) {
        if outgoing.count < Self.countLimit { outgoing.append(Array(bytes)) }
    }

    /// Bytes written into `buffer`; nil when nothing is there.
    private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        guard let record = filter.next(of: &incoming) else { return nil }
        let count = min(buffer.count, record.count)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: record[..<count]))
        return count
    }

    /// How the library calls it; made once, and never freed.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?

        init() {
            pointer = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "datagrams")
            BIO_meth_set_write(pointer) { bio, bytes, count in
                guard let datagrams = DTLSDatagrams.of(bio), count > 0 else { return -1 }
                datagrams.write(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
                return count
            }
            BIO_meth_set_read(pointer) { bio, buffer, count in
                bio_clear_retry(bio)
                let room = UnsafeMutableRawBufferPointer(start: buffer, count: Int(max(0, count)))
                if let count = DTLSDatagrams.of(bio)?.read(into: room) { return CInt(count) }
                bio_set_retry_read(bio)
                return -1
            }
            BIO_meth_set_ctrl(pointer) { _, command, _, _ in
                switch command {
                case BIO_CTRL_FLUSH: 1
                case BIO_CTRL_DGRAM_QUERY_MTU: DTLSDatagrams.byteLimit
                // Headers of IPv4 and UDP.
                case BIO_CTRL_DGRAM_GET_MTU_OVERHEAD: 28
                default: 0
                }
            }
        }
    }

    private static let method = Method()

    private static func of(_ bio: OpaquePointer?) -> DTLSDatagrams? {
        BIO_get_data(bio).map { Unmanaged<DTLSDatagrams>.fromOpaque($0).takeUnretainedValue() }
    }
}
