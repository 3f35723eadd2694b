/// Why a packet is not protected, or not taken.
package enum SRTPRefusal: Error, Sendable {
    /// There is no key yet.
    case noKey
    /// Too short, or no RTP or RTCP.
    case malformed
    /// Not signed with this key, or changed on the way.
    case unauthentic
    /// It came before.
    case replayed
    /// Older than the last 128, so that nobody knows whether it came before.
    case old
    /// RTCP that says of itself that it is not encrypted, where that was not agreed on.
    case unencrypted
    /// Its master key identifier is another one's.
    case otherKey
    /// The key has protected as many packets as it may.
    case exhausted
    /// No room for the tag behind it.
    case noRoom
    /// Its number was sent before, with something else, or the same.
    case numberUsed
}

/// What the first bytes of a packet say.
struct SRTPPacket {
    let ssrc: UInt32
    /// Of RTP; 0 for RTCP.
    let sequence: UInt16
    /// Bytes that stay as they are.
    let headerByteCount: Int

    /// Reads the header of RTP: with the contributing sources and the extension (RFC 3550, section 5.1).
    init?(media bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 12, bytes[0] >> 6 == 2 else { return nil }
        var count = 12 + Int(bytes[0] & 0x0F) * 4
        if bytes[0] & 0x10 != 0 {
            guard bytes.count >= count + 4 else { return nil }
            count += 4 + (Int(bytes[count + 2]) << 8 | Int(bytes[count + 3])) * 4
        }
        guard bytes.count >= count else { return nil }
        (headerByteCount, sequence) = (count, UInt16(bytes[2]) << 8 | UInt16(bytes[3]))
        ssrc = bytes.word(at: 8)
    }

    /// Reads the header of the first packet of compound RTCP (RFC 3550, section 6.4.1).
    init?(control bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 8, bytes[0] >> 6 == 2 else { return nil }
        (headerByteCount, sequence, ssrc) = (8, 0, bytes.word(at: 4))
    }
}

/// What stands behind the text of a packet.
///
///     RTP     MKI │ tag               GCM: tag │ MKI
///     RTCP    E, index │ MKI │ tag    GCM: tag │ E, index │ MKI
struct SRTPTrailer {
    /// Bytes of each part, for one key.
    struct Layout {
        let tagByteCount: Int
        let wordByteCount: Int
        let identifierByteCount: Int
        /// Whether the tag is the first behind the text, and not the last.
        let putsTagFirst: Bool

        init(_ suite: SRTPSuite, for use: SRTPSessionKey.Use, identifierByteCount: Int) {
            tagByteCount = use == .media ? suite.tagByteCount : suite.controlTagByteCount
            wordByteCount = use == .media ? 0 : 4
            (self.identifierByteCount, putsTagFirst) = (identifierByteCount, suite.isGCM)
        }

        /// Bytes behind the text.
        var byteCount: Int { tagByteCount &+ wordByteCount &+ identifierByteCount }
    }

    let tag: Range<Int>
    /// Where E and the index of RTCP are.
    let word: Int
    let identifier: Range<Int>
    let end: Int

    init(behind textEnd: Int, _ layout: Layout) {
        let tagStart = layout.putsTagFirst ? textEnd : textEnd + layout.wordByteCount + layout.identifierByteCount
        tag = tagStart..<tagStart + layout.tagByteCount
        word = layout.putsTagFirst ? tag.upperBound : textEnd
        let identifierStart = word + layout.wordByteCount
        identifier = identifierStart..<identifierStart + layout.identifierByteCount
        end = textEnd + layout.byteCount
    }
}

extension UnsafeRawBufferPointer {
    /// The four bytes at `place`, in network order.
    func word(at place: Int) -> UInt32 {
        UInt32(bigEndian: loadUnaligned(fromByteOffset: place, as: UInt32.self))
    }
}

extension UnsafeMutableRawBufferPointer {
    func part(_ range: some RangeExpression<Int>) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: self[range])
    }

    /// Writes `word` in network order.
    func write(_ word: UInt32, at place: Int) { storeBytes(of: word.bigEndian, toByteOffset: place, as: UInt32.self) }
}
