package import CallBasics
internal import Cryptography

/// A message of STUN, as it came or as it is sent.
///
///     0                   1                   2                   3
///     0 0│ M4..M0 class, method │   length behind the header        │
///     │                 magic cookie 0x2112A442                     │
///     │                 transaction, 96 bits                        │
///     │  attribute          │  length             │  value, padded  │ ...
///
/// The bytes are kept, for what is signed are these. An attribute that comes twice counts the first time; behind
/// MESSAGE-INTEGRITY only MESSAGE-INTEGRITY-SHA256 and FINGERPRINT are looked at, and behind FINGERPRINT nothing.
/// Source: RFC 8489, sections 5 and 14.
package struct STUNMessage: Sendable {
    package enum Class: UInt8, Sendable {
        case request = 0
        case indication = 1
        case success = 2
        case failure = 3
    }

    package enum Method: UInt16, Sendable {
        case binding = 0x001
        case allocate = 0x003
        case refresh = 0x004
        case send = 0x006
        case data = 0x007
        case createPermission = 0x008
        case channelBind = 0x009
    }

    /// 96 bits that tell which request is answered.
    package struct Transaction: Hashable, Sendable {
        let high: UInt32
        let low: UInt64

        package init(using generator: inout some RandomNumberGenerator) {
            (high, low) = (generator.next(), generator.next())
        }

        init(high: UInt32, low: UInt64) { (self.high, self.low) = (high, low) }
    }

    package let kind: Class
    package let method: Method
    package let transaction: Transaction
    package let bytes: [UInt8]
    /// Where values are, and where their attributes begin.
    private let places: [(attribute: STUNAttribute, start: Int, value: Range<Int>)]

    static let headerByteCount = 20
    static let cookie: UInt32 = 0x2112_A442

    /// Reads the datagram that `bytes` are; nil when they are no STUN, or no method of ours.
    package init?(parsing bytes: [UInt8]) {
        guard bytes.count >= Self.headerByteCount, bytes.count % 4 == 0, bytes[0] & 0xC0 == 0,
            bytes.number(at: 2, UInt16.self) == bytes.count - Self.headerByteCount,
            bytes.number(at: 4, UInt32.self) == Self.cookie
        else { return nil }
        let type = bytes.number(at: 0, UInt16.self)
        let method = type & 0x000F | type >> 1 & 0x0070 | type >> 2 & 0x0F80
        guard let kind = Class(rawValue: UInt8(type >> 4 & 1 | type >> 7 & 2)), let method = Method(rawValue: method)
        else { return nil }
        var places: [(attribute: STUNAttribute, start: Int, value: Range<Int>)] = []
        var (place, isSigned, isEnded) = (Self.headerByteCount, false, false)
        while place < bytes.count {
            guard place + 4 <= bytes.count else { return nil }
            let attribute = STUNAttribute(rawValue: bytes.number(at: place, UInt16.self))
            let (start, count) = (place + 4, Int(bytes.number(at: place + 2, UInt16.self)))
            guard start + count <= bytes.count else { return nil }
            let counts = !isSigned || attribute == .messageIntegritySHA256 || attribute == .fingerprint
            if counts, !isEnded { places.append((attribute, place, start..<start + count)) }
            if attribute == .messageIntegrity || attribute == .messageIntegritySHA256 { isSigned = true }
            if attribute == .fingerprint { isEnded = true }
            place = start + (count + 3) / 4 * 4
        }
        (self.kind, self.method, self.bytes, self.places) = (kind, method, bytes, places)
        transaction = Transaction(high: bytes.number(at: 8, UInt32.self), low: bytes.number(at: 12, UInt64.self))
    }

    /// Where the value of an attribute is in a datagram that has a header, and has not been read; nil when it is not there.
    ///
    /// Thread: media.
    static func place(of attribute: STUNAttribute, in datagram: Span<UInt8>) -> Range<Int>? {
        var place = headerByteCount
        while place + 4 <= datagram.count {
            let (value, count) = (place + 4, Int(datagram.uint16(at: place + 2)))
            guard value + count <= datagram.count else { return nil }
            if datagram.uint16(at: place) == attribute.rawValue { return value..<value + count }
            place = value + (count + 3) & ~3
        }
        return nil
    }

    // MARK: Values

    /// The bytes of an attribute; nil when it is not there.
    package subscript(attribute: STUNAttribute) -> ArraySlice<UInt8>? {
        places.first { $0.attribute == attribute }.map { bytes[$0.value] }
    }

    /// The text of an attribute; nil when it is not there, or no UTF-8.
    package func text(_ attribute: STUNAttribute) -> String? {
        self[attribute].flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// The number of an attribute of four bytes, such as PRIORITY and LIFETIME.
    package func number(_ attribute: STUNAttribute) -> UInt32? { self[attribute].flatMap { $0.whole(UInt32.self) } }

    /// The number that decides who controls, of ICE-CONTROLLING or ICE-CONTROLLED.
    package func tieBreaker(_ attribute: STUNAttribute) -> UInt64? { self[attribute].flatMap { $0.whole(UInt64.self) } }

    /// The channel of CHANNEL-NUMBER (RFC 8656, section 18.1).
    package var channel: UInt16? {
        self[.channelNumber].flatMap { $0.count == 4 ? $0.prefix(2).whole(UInt16.self) : nil }
    }

    /// What ERROR-CODE says, 300 to 699; nil when it is not there, or none (RFC 8489, section 14.8).
    package var error: (code: Int, reason: String)? {
        guard let value = self[.errorCode], value.count >= 4 else { return nil }
        let start = value.startIndex
        let (hundreds, rest) = (Int(value[start + 2] & 7), Int(value[start + 3]))
        guard 3...6 ~= hundreds, rest < 100 else { return nil }
        return (hundreds * 100 + rest, String(decoding: value.dropFirst(4), as: UTF8.self))
    }

    /// The address of an attribute; nil when it is not there, or none.
    package func address(_ attribute: STUNAttribute) -> SocketAddress? {
        self[attribute].flatMap { address($0, attribute) }
    }

    /// The addresses of XOR-PEER-ADDRESS.
    package var peerAddresses: [SocketAddress] {
        places.compactMap { $0.attribute == .xorPeerAddress ? address(bytes[$0.value], $0.attribute) : nil }
    }

    private func address(_ value: ArraySlice<UInt8>, _ attribute: STUNAttribute) -> SocketAddress? {
        let isPlain = attribute == .mappedAddress || attribute == .alternateServer
        guard value.count == 8 || value.count == 20 else { return nil }
        let (start, mask) = (value.startIndex, AddressMask(isPlain ? nil : transaction))
        guard value[start + 1] == (value.count == 8 ? 1 : 2) else { return nil }
        let port = bytes.number(at: start + 2, UInt16.self) ^ mask.port
        guard value.count == 20 else {
            return SocketAddress(ipv4: bytes.number(at: start + 4, UInt32.self) ^ mask.ipv4, port: port)
        }
        let high = bytes.number(at: start + 4, UInt64.self) ^ mask.high
        return SocketAddress(ipv6High: high, low: bytes.number(at: start + 12, UInt64.self) ^ mask.low, port: port)
    }

    /// The attributes that would have to be understood, and are not (RFC 8489, section 6.3.1).
    package var notUnderstood: [STUNAttribute] {
        places.map(\.attribute).filter { $0.mustBeUnderstood && !STUNAttribute.understood.contains($0) }
    }

    // MARK: Proofs

    /// Whether FINGERPRINT is right; nil when it is not there.
    package var hasRightFingerprint: Bool? {
        guard let place = places.first(where: { $0.attribute == .fingerprint }) else { return nil }
        return bytes[place.value].whole(UInt32.self) == STUNProof.fingerprint(bytes, upTo: place.start)
    }

    /// Whether the message is signed with `key`: by MESSAGE-INTEGRITY-SHA256 where that is there, else by MESSAGE-INTEGRITY.
    ///
    /// - Parameter key: As `STUNKey` makes it.
    /// - Returns: False also when it is not signed at all.
    package func isSigned(with key: STUNKey) -> Bool {
        if let place = places.first(where: { $0.attribute == .messageIntegritySHA256 }) {
            let count = place.value.count
            guard 16...32 ~= count, count % 4 == 0 else { return false }
            let own = STUNProof.integrity(bytes, upTo: place.start, key, byteCount: count, isSHA256: true)
            return isSameSecret(own, bytes[place.value])
        }
        guard let place = places.first(where: { $0.attribute == .messageIntegrity }), place.value.count == 20 else {
            return false
        }
        let own = STUNProof.integrity(bytes, upTo: place.start, key, byteCount: 20, isSHA256: false)
        return isSameSecret(own, bytes[place.value])
    }
}

/// What addresses are mixed with, so that no box on the way rewrites them (RFC 8489, section 14.2).
struct AddressMask {
    let port: UInt16
    let ipv4: UInt32
    let high: UInt64
    let low: UInt64

    /// The one of a transaction; nil for addresses as they are.
    init(_ transaction: STUNMessage.Transaction?) {
        guard let transaction else {
            (port, ipv4, high, low) = (0, 0, 0, 0)
            return
        }
        (port, ipv4) = (UInt16(STUNMessage.cookie >> 16), STUNMessage.cookie)
        (high, low) = (UInt64(STUNMessage.cookie) << 32 | UInt64(transaction.high), transaction.low)
    }
}

extension [UInt8] {
    /// The number at `place`, in network order.
    func number<Number: FixedWidthInteger>(at place: Int, _ type: Number.Type) -> Number {
        self[place..<place + Number.bitWidth / 8].reduce(0) { $0 << 8 | Number($1) }
    }
}

extension ArraySlice<UInt8> {
    /// The number that all bytes make, in network order; nil when they are not as many.
    func whole<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
        count == Number.bitWidth / 8 ? reduce(0) { $0 << 8 | Number($1) } : nil
    }
}
