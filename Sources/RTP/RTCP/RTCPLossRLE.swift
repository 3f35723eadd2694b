import CallBasics

/// Which packets of a source came and which were lost, by runs and bits (Loss RLE).
///
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |     BT=1      | rsvd. |   T   |         block length          |
///    |                        SSRC of source                         |
///    |          begin_seq            |             end_seq           |
///    |          chunk 1              |             chunk 2           |
///    :                              ...                              :
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///
/// A chunk is a run, `0 R length(14)`, of packets that came (R = 1) or did not; or `1 vector(15)`, a bit for each packet,
/// the earliest on the left; or nothing, all zero, which ends the chunks. Chunks stay where they were read.
/// Source: RFC 3611, section 4.1
package struct RTCPLossRLE: Hashable, Sendable, BitwiseCopyable {
    /// Bytes before the first chunk.
    package static let fixedByteCount = 12

    /// The source that the block is about.
    package let ssrc: UInt32
    /// T: only numbers that are multiples of 2 to this power are reported on.
    package let thinning: Int
    /// The first number that is reported on.
    package let beginSequence: UInt16
    /// The number after the last one that is reported on.
    package let endSequence: UInt16

    private let firstChunk: Int
    private let chunkCount: Int

    /// Reads the block of `byteCount` bytes at `offset`, which must be there: a multiple of 4, at least `fixedByteCount`.
    init(parsing bytes: Span<UInt8>, at offset: Int, byteCount: Int) {
        thinning = Int(bytes[offset &+ 1] & 0x0F)
        ssrc = bytes.uint32(at: offset &+ 4)
        beginSequence = bytes.uint16(at: offset &+ 8)
        endSequence = bytes.uint16(at: offset &+ 10)
        firstChunk = offset &+ Self.fixedByteCount
        chunkCount = (byteCount &- Self.fixedByteCount) / 2
    }

    /// The runs of losses in the block, of which `bytes` must be those that it was read from.
    ///
    /// Answers nil when the chunks do not cover the range just so, the range is none, or numbers are left out (`thinning`).
    package func runs(in bytes: Span<UInt8>) -> LossRuns? {
        var open = Int(endSequence &- beginSequence)
        guard thinning == 0, open > 0, open < Self.rangeLimit, bytes.count >= firstChunk &+ 2 &* chunkCount else {
            return nil
        }
        var runs = LossRuns()
        for index in 0..<chunkCount {
            let chunk = bytes.uint16(at: firstChunk &+ 2 &* index)
            if chunk == 0 { break }
            if chunk & Self.vectorFlag != 0 {
                guard open > 0 else { return nil }
                let bitCount = min(open, Self.vectorBitCount)
                for bit in 0..<bitCount { runs.count(1, areLost: chunk & (Self.firstBit >> UInt16(bit)) == 0) }
                open &-= bitCount
            } else {
                let length = Int(chunk & Self.longestRun)
                guard length > 0, length <= open else { return nil }
                runs.count(length, areLost: chunk & Self.cameFlag == 0)
                open &-= length
            }
        }
        return open == 0 ? runs : nil
    }

    /// A range of as many numbers or more could not be told from one that wraps.
    private static var rangeLimit: Int { 65_534 }
    private static var vectorFlag: UInt16 { 0x8000 }
    private static var cameFlag: UInt16 { 0x4000 }
    private static var firstBit: UInt16 { 0x4000 }
    private static var longestRun: UInt16 { 0x3FFF }
    private static var vectorBitCount: Int { 15 }

    // MARK: Writing

    /// Bytes of the block that says what `trace` does.
    static func byteCount(of trace: LossTrace) -> Int {
        var chunks = Chunks(trace)
        var count = 0
        while chunks.next() != nil { count &+= 1 }
        return fixedByteCount &+ (count &+ 1) / 2 * 4
    }

    /// The most bytes of a block: every chunk a vector, and one to fill the last word.
    static var maximumByteCount: Int {
        fixedByteCount &+ ((ReceptionRecord.capacity &+ vectorBitCount &- 1) / vectorBitCount &+ 1) / 2 * 4
    }

    /// Writes all but the first 4 bytes of the block about `ssrc` at `offset`; `byteCount(of:)` bytes must be there.
    static func serialize(_ trace: LossTrace, ssrc: UInt32, into bytes: inout MutableSpan<UInt8>, at offset: Int) {
        bytes.store(ssrc, at: offset &+ 4)
        bytes.store(trace.beginSequence, at: offset &+ 8)
        bytes.store(trace.endSequence, at: offset &+ 10)
        var position = offset &+ fixedByteCount
        var chunks = Chunks(trace)
        while let chunk = chunks.next() {
            bytes.store(chunk, at: position)
            position &+= 2
        }
        if (position &- offset) & 3 != 0 { bytes.store(UInt16(0), at: position) }
    }

    /// Cuts a trace into chunks: a run where it is longer than a vector or the last, else a vector.
    private struct Chunks {
        private let trace: LossTrace
        private var index = 0

        init(_ trace: LossTrace) {
            self.trace = trace
        }

        mutating func next() -> UInt16? {
            guard index < trace.count else { return nil }
            let came = trace.hasCome(index)
            var end = index &+ 1
            while end < trace.count, trace.hasCome(end) == came { end &+= 1 }
            let length = end &- index
            if length > RTCPLossRLE.vectorBitCount || end == trace.count {
                index = end
                return (came ? RTCPLossRLE.cameFlag : 0) | UInt16(truncatingIfNeeded: length)
            }
            var chunk = RTCPLossRLE.vectorFlag
            for bit in 0..<min(RTCPLossRLE.vectorBitCount, trace.count &- index) where trace.hasCome(index &+ bit) {
                chunk |= RTCPLossRLE.firstBit >> UInt16(bit)
            }
            index &+= RTCPLossRLE.vectorBitCount
            return chunk
        }
    }
}
