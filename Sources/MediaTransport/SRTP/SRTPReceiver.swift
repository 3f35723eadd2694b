/// Checks and decrypts what the other side sends; `SRTPSender` has the shapes.
///
/// Nothing of it changes before a packet is known to be authentic: a forger moves neither indexes nor windows, and makes no
/// source.
/// Thread: any, one at a time; allocates nothing.
/// Source: RFC 3711, sections 3.3 and 3.4; RFC 7714, sections 8 and 9.
package struct SRTPReceiver: ~Copyable {
    private struct Source {
        var ssrc: UInt32 = 0
        /// Index of the newest, and which of those before it have come.
        var media = ReplayWindow()
        var control = ReplayWindow()
        /// Index of the newest under the key before this one; nil where there was none.
        var former: UInt64?
    }

    private var keys: HeldKeys
    /// The first `sourceCount` are known; the one that was heard last is the last of them.
    private var sources = InlineArray<8, Source>(repeating: Source())
    private var sourceCount = 0
    /// Where the counts of cycles begin.
    private let firstCycles: UInt64

    /// One that takes nothing until there are keys.
    package init(_ keys: SRTPKeys? = nil) { self.init(keys, cycles: 0) }

    /// One that goes on where another was.
    init(_ keys: SRTPKeys?, cycles: UInt32) {
        self.keys = HeldKeys(keys)
        firstCycles = UInt64(cycles)
    }

    var hasKeys: Bool { keys.reference != nil }

    /// Goes on with other keys; those of the same master key change nothing.
    ///
    /// The RFC keeps the counts of cycles over that, and many peers begin at 0: until a source's first packet both are tried.
    /// - Returns: Those that are to be freed, off the media thread; nil when there were none.
    package mutating func exchange(_ next: SRTPKeys) -> SRTPKeys? {
        if keys.areOfMasterKey(of: next) { return next }
        for place in 0..<sourceCount {
            let source = sources[place]
            let former = source.media.isEmpty ? source.former : source.media.highest
            sources[place] = Source(ssrc: source.ssrc, former: former)
        }
        return keys.exchange(next)
    }

    /// Checks and decrypts a packet of RTP in place.
    ///
    /// - Parameters:
    ///   - buffer: The packet.
    ///   - count: Its bytes.
    /// - Returns: Bytes of the packet that is left; or `noKey`, `malformed`, `otherKey`, `replayed`, `old`,
    ///   `unauthentic`: the buffer's bytes are worth nothing then.
    package mutating func unprotect(
        _ buffer: inout MutableSpan<UInt8>,
        count: Int
    ) -> Result<Int, SRTPRefusal> {
        guard let keys = keys.reference else { return .failure(.noKey) }
        return keys._withUnsafeGuaranteedRef { keys in
            buffer.withUnsafeMutableBytes { bytes in
                count <= bytes.count ? unprotect(bytes.part(..<count), by: keys) : .failure(.malformed)
            }
        }
    }

    /// Checks and decrypts compound RTCP in place, as `unprotect(_:count:)` does RTP.
    ///
    /// - Returns: Also `unencrypted`.
    package mutating func unprotectControl(
        _ buffer: inout MutableSpan<UInt8>,
        count: Int
    ) -> Result<Int, SRTPRefusal> {
        guard let keys = keys.reference else { return .failure(.noKey) }
        return keys._withUnsafeGuaranteedRef { keys in
            buffer.withUnsafeMutableBytes { bytes in
                count <= bytes.count ? unprotectControl(bytes.part(..<count), by: keys) : .failure(.malformed)
            }
        }
    }

    // MARK: RTP

    private mutating func unprotect(
        _ bytes: UnsafeMutableRawBufferPointer,
        by keys: SRTPKeys
    ) -> Result<Int, SRTPRefusal> {
        let textEnd = bytes.count - keys.mediaTrailer.byteCount
        guard textEnd >= 12, let packet = SRTPPacket(media: UnsafeRawBufferPointer(bytes.part(..<textEnd))) else {
            return .failure(.malformed)
        }
        let trailer = SRTPTrailer(behind: textEnd, keys.mediaTrailer)
        guard keys.areNamed(in: bytes, at: trailer.identifier) else { return .failure(.otherKey) }
        let place = place(of: packet.ssrc)
        let window = place.map { sources[$0].media } ?? ReplayWindow()
        let former = place.flatMap { window.isEmpty ? sources[$0].former : nil }
        let first = firstCycles << 16 | UInt64(packet.sequence)
        let start = window.isEmpty ? former ?? first : window.highest
        let guess = PacketIndex.nearest(packet.sequence, to: start)
        guard var index = guess ?? (window.isEmpty ? first : nil), index <= PacketIndex.last else {
            return .failure(.old)
        }
        if let refusal = window.refusal(of: index) { return .failure(refusal) }
        func open(_ index: UInt64) -> Bool {
            keys.media.unprotect(
                bytes.part(packet.headerByteCount..<textEnd),
                UnsafeRawBufferPointer(bytes.part(..<packet.headerByteCount)),
                nil,
                ssrc: packet.ssrc,
                index: index,
                tag: bytes.part(trailer.tag)
            )
        }
        if !open(index) {
            guard former != nil, index > 0xFFFF else { return .failure(.unauthentic) }
            // GCM has decrypted what it refused, and once more makes it what it was.
            _ = open(index)
            index = UInt64(packet.sequence)
            guard open(index) else { return .failure(.unauthentic) }
        }
        note(packet.ssrc, place) { $0.media.note(index) }
        return .success(textEnd)
    }

    // MARK: RTCP

    private mutating func unprotectControl(
        _ bytes: UnsafeMutableRawBufferPointer,
        by keys: SRTPKeys
    ) -> Result<Int, SRTPRefusal> {
        let textEnd = bytes.count - keys.controlTrailer.byteCount
        guard textEnd >= 8, let packet = SRTPPacket(control: UnsafeRawBufferPointer(bytes)) else {
            return .failure(.malformed)
        }
        let trailer = SRTPTrailer(behind: textEnd, keys.controlTrailer)
        guard keys.areNamed(in: bytes, at: trailer.identifier) else { return .failure(.otherKey) }
        let word = UnsafeRawBufferPointer(bytes).word(at: trailer.word)
        let (isEncrypted, index) = (word >> 31 == 1, UInt64(word & 0x7FFF_FFFF))
        guard isEncrypted || !keys.encryptsControl else { return .failure(.unencrypted) }
        let place = place(of: packet.ssrc)
        let window = place.map { sources[$0].control } ?? ReplayWindow()
        if let refusal = window.refusal(of: index) { return .failure(refusal) }
        let textStart = isEncrypted ? packet.headerByteCount : textEnd
        let isAuthentic = keys.control.unprotect(
            bytes.part(textStart..<textEnd),
            UnsafeRawBufferPointer(bytes.part(..<textStart)),
            word,
            ssrc: packet.ssrc,
            index: index,
            tag: bytes.part(trailer.tag)
        )
        guard isAuthentic else { return .failure(.unauthentic) }
        note(packet.ssrc, place) { $0.control.note(index) }
        return .success(textEnd)
    }

    // MARK: Sources

    private func place(of ssrc: UInt32) -> Int? {
        for place in 0..<sourceCount where sources[place].ssrc == ssrc { return place }
        return nil
    }

    /// Notes an authentic packet of the source that was at `place`, or is new: then the one that was quiet longest may go.
    private mutating func note(_ ssrc: UInt32, _ place: Int?, _ change: (inout Source) -> Void) {
        guard place == nil || place != sourceCount - 1 else { return change(&sources[sourceCount - 1]) }
        let source = place.map { sources[$0] } ?? Source(ssrc: ssrc)
        if place == nil, sourceCount < sources.count {
            sourceCount += 1
        } else {
            for later in (place ?? 0) + 1..<sourceCount { sources[later - 1] = sources[later] }
        }
        sources[sourceCount - 1] = source
        change(&sources[sourceCount - 1])
    }
}

extension SRTPKeys {
    /// Whether the identifier in a packet is that of these keys.
    fileprivate func areNamed(in bytes: UnsafeMutableRawBufferPointer, at places: Range<Int>) -> Bool {
        places.isEmpty || bytes.part(places).elementsEqual(identifier)
    }
}

extension ReplayWindow {
    fileprivate func refusal(of index: UInt64) -> SRTPRefusal? {
        switch judge(index) {
        case .new: nil
        case .replayed: .replayed
        case .old: .old
        }
    }
}
