/// Encrypts and signs what one side sends.
///
///     RTP     header, clear │ payload, encrypted │ MKI │ tag             GCM: tag │ MKI
///     RTCP    8 bytes, clear │ rest, encrypted │ E, index │ MKI │ tag    GCM: tag │ E, index │ MKI
///
/// Thread: any, one at a time; allocates nothing after `init`.
/// Source: RFC 3711, sections 3.1, 3.3 and 3.4; RFC 7714, sections 8 and 9.
package struct SRTPSender: ~Copyable {
    private var keys: SRTPKeys
    /// The newest packet of each source; the first `sourceCount` are known.
    private var sources = InlineArray<64, (ssrc: UInt32, highest: UInt64)>(repeating: (0, 0))
    private var sourceCount = 0
    private var mediaCount: UInt64 = 0
    /// Of the last packet of RTCP.
    private var controlIndex: UInt32
    /// Where the counts of cycles begin.
    private let firstCycles: UInt64

    package init(_ keys: SRTPKeys) { self.init(keys, cycles: 0, controlIndex: 0) }

    /// One that goes on where another was.
    init(_ keys: SRTPKeys, cycles: UInt32, controlIndex: UInt32) {
        (self.keys, self.controlIndex, firstCycles) = (keys, controlIndex, UInt64(cycles))
    }

    /// Goes on with other keys; those of the same master key change nothing.
    ///
    /// The counts of cycles go on, as the RFC has it.
    /// - Returns: Those that are to be freed, off the media thread.
    package mutating func exchange(_ next: SRTPKeys) -> SRTPKeys {
        guard !next.master.equals(keys.master) else { return next }
        defer { (keys, mediaCount, controlIndex) = (next, 0, 0) }
        return keys
    }

    /// Protects a packet of RTP in place.
    ///
    /// - Parameters:
    ///   - buffer: The packet, with room behind it for the `overhead` of the keys.
    ///   - count: Bytes of the packet.
    /// - Returns: Bytes of what is to be sent; or `malformed`, `noRoom`, `exhausted`, or `numberUsed`, since a number
    ///   protects only one packet.
    package mutating func protect(
        _ buffer: inout MutableSpan<UInt8>,
        count: Int
    ) -> Result<Int, SRTPRefusal> {
        buffer.withUnsafeMutableBytes { protect($0, count) }
    }

    /// Protects compound RTCP in place, as `protect(_:count:)` does RTP.
    package mutating func protectControl(
        _ buffer: inout MutableSpan<UInt8>,
        count: Int
    ) -> Result<Int, SRTPRefusal> {
        buffer.withUnsafeMutableBytes { protectControl($0, count) }
    }

    private mutating func protect(_ buffer: UnsafeMutableRawBufferPointer, _ count: Int) -> Result<Int, SRTPRefusal> {
        let (media, identifier) = (keys.media, keys.identifier)
        let tagCount = media.tagByteCount
        let end = count + tagCount + identifier.count
        guard count <= buffer.count, let packet = SRTPPacket(media: UnsafeRawBufferPointer(buffer.part(..<count)))
        else {
            return .failure(.malformed)
        }
        guard end <= buffer.count else { return .failure(.noRoom) }
        guard mediaCount < keys.lifetime else { return .failure(.exhausted) }
        let index: UInt64
        switch nextIndex(packet) {
        case .success(let next): index = next
        case .failure(let refusal): return .failure(refusal)
        }
        mediaCount += 1
        let payload = buffer.part(packet.headerByteCount..<count)
        if media.isGCM {
            let header = UnsafeRawBufferPointer(buffer.part(..<packet.headerByteCount))
            media.seal(payload, header, ssrc: packet.ssrc, index: index, into: buffer.part(count..<count + tagCount))
            buffer.part((count + tagCount)..<end).copyBytes(from: identifier)
        } else {
            media.crypt(payload, ssrc: packet.ssrc, index: index)
            buffer.part(count..<count + identifier.count).copyBytes(from: identifier)
            let signed = UnsafeRawBufferPointer(buffer.part(..<count))
            media.sign(signed, UInt32(truncatingIfNeeded: index >> 16), into: buffer.part((end - tagCount)..<end))
        }
        return .success(end)
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
        // A source whose numbers are forgotten could use them again.
        guard sourceCount < sources.count else { return .failure(.exhausted) }
        let index = firstCycles << 16 | UInt64(packet.sequence)
        sources[sourceCount] = (packet.ssrc, index)
        sourceCount += 1
        return .success(index)
    }

    private mutating func protectControl(
        _ buffer: UnsafeMutableRawBufferPointer,
        _ count: Int
    ) -> Result<Int, SRTPRefusal> {
        let (control, identifier, encryptsControl) = (keys.control, keys.identifier, keys.encryptsControl)
        let tagCount = control.tagByteCount
        let end = count + 4 + tagCount + identifier.count
        guard count <= buffer.count, let packet = SRTPPacket(control: UnsafeRawBufferPointer(buffer.part(..<count)))
        else { return .failure(.malformed) }
        guard end <= buffer.count else { return .failure(.noRoom) }
        guard controlIndex < 1 << 31 - 1 else { return .failure(.exhausted) }
        controlIndex += 1
        let word = controlIndex | (encryptsControl ? 1 << 31 : 0)
        let (ssrc, index) = (packet.ssrc, UInt64(controlIndex))
        // What is not encrypted is signed all the same.
        let text = encryptsControl ? buffer.part(packet.headerByteCount..<count) : buffer.part(count..<count)
        if control.isGCM {
            let clear = UnsafeRawBufferPointer(buffer.part(..<(count - text.count)))
            control.seal(text, clear, word, ssrc: ssrc, index: index, into: buffer.part(count..<count + tagCount))
            buffer.write(word, at: count + tagCount)
            buffer.part((end - identifier.count)..<end).copyBytes(from: identifier)
        } else {
            if encryptsControl { control.crypt(text, ssrc: ssrc, index: index) }
            buffer.write(word, at: count)
            buffer.part((count + 4)..<(count + 4 + identifier.count)).copyBytes(from: identifier)
            let signed = UnsafeRawBufferPointer(buffer.part(..<(count + 4)))
            control.sign(signed, nil, into: buffer.part((end - tagCount)..<end))
        }
        return .success(end)
    }
}
