package import CallBasics

/// Writes a message of STUN, attribute by attribute in the order given.
///
/// Source: RFC 8489, sections 5 and 14.
package struct STUNWriter {
    private var bytes: [UInt8]
    private let transaction: STUNMessage.Transaction

    package init(_ kind: STUNMessage.Class, _ method: STUNMessage.Method, _ transaction: STUNMessage.Transaction) {
        self.transaction = transaction
        let (number, kind) = (method.rawValue, UInt16(kind.rawValue))
        var type = number & 0x000F | (number & 0x0070) << 1 | (number & 0x0F80) << 2
        type |= (kind & 1) << 4 | (kind & 2) << 7
        bytes = []
        bytes.reserveCapacity(128)
        write(type)
        write(UInt16(0))
        write(STUNMessage.cookie)
        write(transaction.high)
        write(transaction.low)
    }

    /// An attribute with a value of up to 763 bytes, the most that any of them may have; DATA may be as long as a datagram.
    package mutating func append(_ attribute: STUNAttribute, _ value: some Collection<UInt8>) {
        precondition(
            value.count <= (attribute == .data ? 1 << 14 : 763),
            "an attribute of STUN is longer than any may be"
        )
        write(attribute.rawValue)
        write(UInt16(value.count))
        bytes += value
        while bytes.count % 4 != 0 { bytes.append(0) }
        let length = bytes.count - STUNMessage.headerByteCount
        (bytes[2], bytes[3]) = (UInt8(length >> 8), UInt8(length & 0xFF))
    }

    package mutating func append(_ attribute: STUNAttribute, _ text: String) { append(attribute, Array(text.utf8)) }

    package mutating func append<Number: FixedWidthInteger>(_ attribute: STUNAttribute, number: Number) {
        append(attribute, withUnsafeBytes(of: number.bigEndian) { Array($0) })
    }

    package mutating func append(_ attribute: STUNAttribute, _ address: SocketAddress) {
        let isPlain = attribute == .mappedAddress || attribute == .alternateServer
        let mask = AddressMask(isPlain ? nil : transaction)
        var value = STUNWriter.number(UInt16(address.isIPv4 ? 1 : 2)) + STUNWriter.number(address.port ^ mask.port)
        if address.isIPv4 {
            value += STUNWriter.number(UInt32(truncatingIfNeeded: address.halves.low) ^ mask.ipv4)
        } else {
            value += STUNWriter.number(address.halves.high ^ mask.high)
            value += STUNWriter.number(address.halves.low ^ mask.low)
        }
        append(attribute, value)
    }

    /// ERROR-CODE (RFC 8489, section 14.8).
    package mutating func append(errorCode code: Int, reason: String) {
        append(.errorCode, [0, 0, UInt8(code / 100 & 7), UInt8(code % 100)] + Array(reason.utf8.prefix(509)))
    }

    /// UNKNOWN-ATTRIBUTES, for the answer 420.
    package mutating func append(unknown attributes: [STUNAttribute]) {
        append(.unknownAttributes, attributes.prefix(64).flatMap { STUNWriter.number($0.rawValue) })
    }

    /// Signs all before it; FINGERPRINT may follow, and nothing else.
    package mutating func sign(with key: STUNKey, isSHA256: Bool = false) {
        let byteCount = isSHA256 ? 32 : 20
        let proof = STUNProof.integrity(bytes, upTo: bytes.count, key, byteCount: byteCount, isSHA256: isSHA256)
        append(isSHA256 ? .messageIntegritySHA256 : .messageIntegrity, proof)
    }

    /// The message, with FINGERPRINT at its end when that is wished.
    package consuming func finish(withFingerprint hasFingerprint: Bool) -> [UInt8] {
        if hasFingerprint { append(.fingerprint, number: STUNProof.fingerprint(bytes, upTo: bytes.count)) }
        return bytes
    }

    private mutating func write(_ number: some FixedWidthInteger) { bytes += STUNWriter.number(number) }

    private static func number(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}
