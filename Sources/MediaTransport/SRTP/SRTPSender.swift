/// Encrypts and signs what one side sends.
///
///     RTP     header, clear │ payload, encrypted │ trailer
///     RTCP    8 bytes, clear │ rest, encrypted │ trailer
///
/// Thread: any, one at a time; allocates nothing.
/// Source: RFC 3711, sections 3.1, 3.3 and 3.4; RFC 7714, sections 8 and 9.
package struct SRTPSender: ~Copyable {
    private var keys: HeldKeys
    /// The newest packet of each source; the first `sourceCount` are known.
    private var sources = InlineArray<64, (ssrc: UInt32, highest: UInt64)>(repeating: (0, 0))
    private var sourceCount = 0
    private var mediaCount: UInt64 = 0
    /// Of the last packet of RTCP.
    ///
    /// It goes on over other keys, and so do the sources': one that comes back is used for no index twice.
    private var controlIndex: UInt32
    /// Where the counts of cycles begin.
    private let firstCycles: UInt64

    /// One that sends nothing until there are keys.
    package init(_ keys: SRTPKeys? = nil) { self.init(keys, cycles: 0, controlIndex: 0) }

    /// One that goes on where another was.
    init(_ keys: SRTPKeys?, cycles: UInt32, controlIndex: UInt32) {
        self.keys = HeldKeys(keys)
        (self.controlIndex, firstCycles) = (controlIndex, UInt64(cycles))
    }

    /// Goes on with other keys; those of the same master key change nothing.
    ///
    /// The counts of cycles go on, as the RFC has it.
    /// - Returns: Those that are to be freed, off the media thread; nil when there were none.
    package mutating func exchange(_ next: SRTPKeys) -> SRTPKeys? {
        if keys.areOfMasterKey(of: next) { return next }
        mediaCount = 0
        return keys.exchange(next)
    }

    /// Protects a packet of RTP in place.
    ///
    /// - Parameters:
    ///   - buffer: The packet, with room behind it for the trailer.
    ///   - count: Bytes of the packet.
    /// - Returns: Bytes of what is to be sent; or `noKey`, `malformed`, `noRoom`, `exhausted`, or `numberUsed`, since a
    ///   number protects only one packet.
    package mutating func protect(
        _ buffer: inout MutableSpan<UInt8>,
        count: Int
    ) -> Result<Int, SRTPRefusal> {
        guard let keys = keys.reference else { return .failure(.noKey) }
        return keys._withUnsafeGuaranteedRef { keys in buffer.withUnsafeMutableBytes { protect($0, count, by: keys) } }
    }

    /// Protects compound RTCP in place, as `protect(_:count:)` does RTP.
    package mutating func protectControl(
        _ buffer: inout MutableSpan<UInt8>,
        count: Int
    ) -> Result<Int, SRTPRefusal> {
        guard let keys = keys.reference else { return .failure(.noKey) }
        return keys._withUnsafeGuaranteedRef { keys in
            buffer.withUnsafeMutableBytes { protectControl($0, count, by: keys) }
        }
    }

    private mutating func protect(
        _ buffer: UnsafeMutableRawBufferPointer,
        _ count: Int,
        by keys: SRTPKeys
    ) -> Result<Int, SRTPRefusal> {
        guard count <= buffer.count, let packet = SRTPPacket(media: UnsafeRawBufferPointer(buffer.part(..<count)))
        else {
            return .failure(.malformed)
        }
        let trailer = SRTPTrailer(behind: count, keys.mediaTrailer)
        guard trailer.end <= buffer.count else { return .failure(.noRoom) }
        guard mediaCount < keys.lifetime else { return .failure(.exhausted) }
        let index: UInt64
        switch nextIndex(packet) {
        case .success(let next): index = next
        case .failure(let refusal): return .failure(refusal)
        }
        mediaCount += 1
        if !trailer.identifier.isEmpty { buffer.part(trailer.identifier).copyBytes(from: keys.identifier) }
        let (header, text) = (buffer.part(..<packet.headerByteCount), buffer.part(packet.headerByteCount..<count))
        keys.media.protect(
            text,
            UnsafeRawBufferPointer(header),
            nil,
            ssrc: packet.ssrc,
            index: index,
            into: buffer.part(trailer.tag)
        )
        return .success(trailer.end)
    }

    /// The index of the packet, which is above all before it.
    private mutating func nextIndex(_ packet: SRTPPacket) -> Result<UInt64, SRTPRefusal> {
        for place in 0..<sourceCount where sources[place].ssrc == packet.ssrc {
            let highest = sources[place].highest
            guard let index = PacketIndex.nearest(packet.sequence, to: highest), index > highest else {
                return .failure(.numberUsed)
            }
            guard index <= PacketIndex.last else { return .failure(.exhausted) }
            sources[place].highest = index
            return .success(index)
        }
        // A source whose numbers are forgotten could use them again: more than a call ever changes are known.
        guard sourceCount < sources.count else { return .failure(.exhausted) }
        let index = firstCycles << 16 | UInt64(packet.sequence)
        sources[sourceCount] = (packet.ssrc, index)
        sourceCount += 1
        return .success(index)
    }

    private mutating func protectControl(
        _ buffer: UnsafeMutableRawBufferPointer,
        _ count: Int,
        by keys: SRTPKeys
    ) -> Result<Int, SRTPRefusal> {
        guard count <= buffer.count, let packet = SRTPPacket(control: UnsafeRawBufferPointer(buffer.part(..<count)))
        else { return .failure(.malformed) }
        let trailer = SRTPTrailer(behind: count, keys.controlTrailer)
        guard trailer.end <= buffer.count else { return .failure(.noRoom) }
        guard controlIndex < 1 << 31 - 1 else { return .failure(.exhausted) }
        controlIndex += 1
        let word = controlIndex | (keys.encryptsControl ? 1 << 31 : 0)
        buffer.write(word, at: trailer.word)
        buffer.part(trailer.identifier).copyBytes(from: keys.identifier)
        // What is not encrypted is signed all the same.
        let textStart = keys.encryptsControl ? packet.headerByteCount : count
        keys.control.protect(
            buffer.part(textStart..<count),
            UnsafeRawBufferPointer(buffer.part(..<textStart)),
            word,
            ssrc: packet.ssrc,
            index: UInt64(controlIndex),
            into: buffer.part(trailer.tag)
        )
        return .success(trailer.end)
    }
}
