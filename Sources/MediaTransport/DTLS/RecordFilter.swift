/// Which records of a datagram the library is given: those that cannot end an association unless they are authentic.
///
///      0      type: 20 change cipher spec, 21 alert, 22 handshake, 23 application data
///      1      version: FE FD for 1.2; FE FF at the beginning
///      3      epoch: 0 in the clear
///      5      number
///     11      count of the bytes behind the header
///
/// OpenSSL 3.0 gives up for good when a record under keys is shorter than its tag and nonce, whoever sent it. One whose
/// version it does not expect it leaves out by its header alone, and reads what is behind that as the next header.
/// Source: RFC 6347, section 4.1; RFC 5288, section 3; RFC 7905, section 2.
struct RecordFilter {
    /// Whether the handshake is over: what is in the clear then says nothing.
    var isConnected = false
    /// The fewest bytes under keys: a nonce of 8 and a tag of 16, as AES-GCM has them.
    ///
    /// ChaCha20 has no nonce; before the handshake is over nothing of it is this short.
    var leastByteCount = 24

    /// The next record that passes, with its header; takes it, and what does not pass, off `datagram`.
    func next(of datagram: inout UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        while datagram.count >= Self.headerByteCount {
            let count = Self.headerByteCount + (Int(datagram[11]) << 8 | Int(datagram[12]))
            guard count <= datagram.count else { break }
            let record = UnsafeRawBufferPointer(rebasing: datagram[..<count])
            datagram = UnsafeRawBufferPointer(rebasing: datagram[count...])
            if passes(record) { return record }
        }
        return nil
    }

    private func passes(_ record: UnsafeRawBufferPointer) -> Bool {
        guard 20...23 ~= record[0], record[1] == 0xFE else { return false }
        if record[3] == 0, record[4] == 0 { return !isConnected && record[0] != 23 }
        return record[2] == 0xFD && record.count >= Self.headerByteCount + leastByteCount
    }

    /// Whether a datagram is the beginning of a handshake, in the clear.
    ///
    /// Source: RFC 6347, sections 4.1 and 4.2.2.
    static func isClientHello(_ datagram: ArraySlice<UInt8>) -> Bool {
        let bytes = Array(datagram.prefix(headerByteCount + 1))
        return bytes.count == 14 && bytes[0] == 22 && bytes[1] == 0xFE && bytes[3] == 0 && bytes[4] == 0
            && bytes[13] == 1
    }

    private static let headerByteCount = 13
}
