import MediaEngine

/// What in a capture tells that a stream's payload is ciphertext, which must not be taken for sound.
///
/// Signs are: a session description (RTP/SAVP, UDP/TLS, keys that both sides name), a DTLS or ZRTP handshake that was
/// finished between the two addresses, and payloads that are longer than their sound by what an authentication tag takes.
/// Thread: control; it allocates, but not without bound: see `maximumPairCount`.
/// Source: RFC 4568, RFC 5764, RFC 6189, RFC 3711 (tags of 10 and 4 bytes), RFC 7714 (of 16)
struct EncryptionSigns: Sendable {
    /// What gave it away.
    enum Sign: Sendable, Hashable {
        /// A session description says it, as "RTP/SAVP with a=crypto": that of an address, or one of the same port.
        case description(String, isByPort: Bool = false)
        /// A DTLS handshake.
        case dtls
        /// A ZRTP handshake.
        case zrtp
        /// Packets that are longer than their sound, by so many bytes.
        case tag(byteCount: Int)

        /// The sign in a few words.
        var text: String {
            switch self {
            case .description(let name, false): "\(name) in its session description"
            case .description(let name, true): "\(name) in a session description, by its port"
            case .dtls: "a DTLS handshake between its addresses"
            case .zrtp: "a ZRTP handshake between its addresses"
            case .tag(let byteCount): "each packet is \(byteCount) bytes longer than its sound, as a tag of SRTP is"
            }
        }
    }

    private struct Pair: Hashable {
        let source: SocketAddress
        let destination: SocketAddress
    }

    /// Pairs of addresses beyond these are left out.
    static let maximumPairCount = 4096

    private var seenDTLS: Set<Pair> = []
    private var finishedDTLS: Set<Pair> = []
    private var finishedZRTP: Set<Pair> = []

    /// Takes in a datagram that may be of a handshake.
    mutating func add(_ datagram: CapturedDatagram) {
        let bytes = datagram.payload.span
        let pair = Pair(source: datagram.source, destination: datagram.destination)
        if Self.isDTLS(bytes), seenDTLS.count < Self.maximumPairCount {
            seenDTLS.insert(pair)
            // Who changes to the new cipher has agreed on one.
            if bytes[0] == Self.changeCipherSpec { finishedDTLS.insert(pair) }
        } else if Self.isFinishedZRTP(bytes), finishedZRTP.count < Self.maximumPairCount {
            finishedZRTP.insert(pair)
        }
    }

    /// What says that the stream from `source` to `destination` is encrypted; nil where nothing does.
    ///
    /// - Parameters:
    ///   - source: Who sends it.
    ///   - destination: To whom.
    ///   - descriptions: What session descriptions say.
    ///   - isSound: Whether its packets are as long as sound is; it weighs more than a description of the same port.
    ///   - tagByteCount: By what its packets are longer than their sound, where that is known and always the same.
    /// - Returns: The best sign.
    func sign(
        from source: SocketAddress,
        to destination: SocketAddress,
        _ descriptions: CapturedDescriptions,
        isSound: Bool,
        tagByteCount: Int?
    ) -> Sign? {
        if let found = descriptions.encryption(from: source, to: destination), !(found.isByPort && isSound) {
            return .description(found.name, isByPort: found.isByPort)
        }
        let there = Pair(source: source, destination: destination)
        let back = Pair(source: destination, destination: source)
        if finishedDTLS.contains(there) || finishedDTLS.contains(back) { return .dtls }
        // DTLS 1.3 shows no change of ciphers, only that both sides speak it.
        if seenDTLS.contains(there), seenDTLS.contains(back) { return .dtls }
        if finishedZRTP.contains(there) || finishedZRTP.contains(back) { return .zrtp }
        return tagByteCount.map { .tag(byteCount: $0) }
    }

    private static let changeCipherSpec: UInt8 = 20

    /// Content type, version (254.255 is 1.0, 254.253 is 1.2 and stands for 1.3, too), epoch, number, length.
    private static func isDTLS(_ bytes: Span<UInt8>) -> Bool {
        bytes.count >= 13 && 20...25 ~= bytes[0] && bytes[1] == 0xFE
    }

    /// A message of ZRTP that confirms keys; a Hello alone is no sign, for nobody may answer it.
    ///
    /// Source: RFC 6189, sections 5 and 5.7
    private static func isFinishedZRTP(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count >= 24, bytes[0] & 0xF0 == 0x10 else { return false }
        let confirms: [UInt8] = Array("Conf".utf8)
        guard bytes[4] == 0x5A, bytes[5] == 0x52, bytes[6] == 0x54, bytes[7] == 0x50 else { return false }
        return (0..<4).allSatisfy { bytes[16 + $0] == confirms[$0] }
    }
}
