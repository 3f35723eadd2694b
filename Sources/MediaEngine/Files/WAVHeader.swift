import CallBasics

/// What the chunks before a WAV file's samples say.
///
///     0  "RIFF" (or "RF64")   4  byte count of the rest   8  "WAVE"
///     12 chunks: name (4), byte count (4), content, one pad byte where the count is odd
///        "ds64"  sizes beyond 32 bits (RF64)
///        "fmt "  format tag (2), channels (2), Hz (4), bytes per second (4), bytes per frame (2), bits (2),
///                and where the tag is 0xFFFE: size (2), valid bits (2), speakers (4), GUID that starts with the tag
///        "data"  the samples
/// Other chunks are skipped. Source: IBM and Microsoft, "Multimedia Programming Interface and Data Specifications
/// 1.0"; EBU Tech 3306 for RF64.
package struct WAVHeader: Hashable, Sendable {
    /// Rate and channels.
    package let format: AudioFormat
    /// How the samples are written.
    package let coding: WAVSampleCoding
    /// Bytes of samples that the file says it has; nil where it was streamed and says nothing.
    package let declaredByteCount: Int?
    /// Where the samples begin.
    package let dataOffset: Int

    /// Bytes of one frame.
    package var bytesPerFrame: Int { coding.byteCount * format.channelCount }

    /// The most channels that are read.
    package static var maximumChannelCount: Int { 64 }
    /// The sample rates that are read.
    package static var sampleRates: ClosedRange<Int> { 1000...768_000 }

    /// Reads `source` from its start up to its first sample.
    init(reading source: any ByteSource) throws(WAVError) {
        var cursor = ChunkCursor(source: source)
        let start = try cursor.readStart()
        var format: (AudioFormat, WAVSampleCoding)?
        var longByteCount: Int?
        while true {
            let (name, byteCount) = try cursor.readChunkStart()
            switch name {
            case "fmt ":
                let content = try cursor.readContent(byteCount, atMost: 64)
                format = try Self.parseFormat(content, in: source.name)
            case "ds64":
                let content = try cursor.readContent(byteCount, atMost: 64)
                guard content.count >= 16 else { throw cursor.truncated("its ds64 chunk") }
                longByteCount = Int(exactly: content.littleEndian64(at: 8))
            case "data":
                guard let format else {
                    throw WAVError(
                        .unsupported,
                        "\(source.name) has samples before its format chunk. Convert it to a plain 16-bit WAV."
                    )
                }
                (self.format, self.coding) = format
                dataOffset = cursor.position
                declaredByteCount = Self.declaredByteCount(
                    byteCount,
                    long: start.isLong ? longByteCount : nil,
                    riff: start.byteCount,
                    offset: cursor.position,
                    bytesPerFrame: format.1.byteCount * format.0.channelCount
                )
                return
            default:
                try cursor.skip(byteCount)
            }
        }
    }

    /// The samples' byte count, or nil where the writer left it open.
    ///
    /// A writer that cannot go back leaves 0xFFFFFFFF, 0x7FFFF000 in whole frames (SoX), or 0. A count of 0 is taken at its
    /// word only when the file's own count says that more chunks follow, or that nothing does because nothing was meant to.
    private static func declaredByteCount(
        _ byteCount: UInt32,
        long: Int?,
        riff: UInt32,
        offset: Int,
        bytesPerFrame: Int
    ) -> Int? {
        if byteCount == .max { return long }
        if Int(byteCount) == 0x7FFF_F000 / bytesPerFrame * bytesPerFrame { return nil }
        if byteCount > 0 { return Int(byteCount) }
        let isOpen = riff == 0 || riff == .max || Int(riff) + 8 <= offset
        return isOpen ? nil : 0
    }

    private static func parseFormat(_ content: [UInt8], in name: String) throws(WAVError) -> (
        AudioFormat, WAVSampleCoding
    ) {
        guard content.count >= 16 else {
            throw WAVError(.truncatedHeader, "\(name) has a format chunk of \(content.count) bytes, of 16. \(remedy)")
        }
        var tag = content.littleEndian16(at: 0)
        if tag == 0xFFFE {
            guard content.count >= 26 else {
                throw WAVError(.truncatedHeader, "\(name) has an extensible format chunk without its end. \(remedy)")
            }
            tag = content.littleEndian16(at: 24)
        }
        let channelCount = Int(content.littleEndian16(at: 2))
        let sampleRate = Int(content.littleEndian32(at: 4))
        let bytesPerFrame = Int(content.littleEndian16(at: 12))
        let bits = Int(content.littleEndian16(at: 14))
        guard (1...maximumChannelCount).contains(channelCount) else {
            throw WAVError(
                .unsupported,
                "\(name) has \(channelCount) channels, of 1 to \(maximumChannelCount). \(remedy)"
            )
        }
        guard sampleRates.contains(sampleRate) else {
            throw WAVError(.unsupported, "\(name) has a sample rate of \(sampleRate) Hz, of 1000 to 768000. \(remedy)")
        }
        guard let coding = coding(tag: tag, bits: bits, bytesPerFrame: bytesPerFrame, channelCount: channelCount) else {
            throw WAVError(
                .unsupported,
                "\(name) has samples of \(bits) bits under format tag \(tag), \(bytesPerFrame) bytes per frame, which is "
                    + "not supported. \(remedy)"
            )
        }
        return (AudioFormat(sampleRate: sampleRate, channelCount: channelCount), coding)
    }

    private static func coding(tag: UInt16, bits: Int, bytesPerFrame: Int, channelCount: Int) -> WAVSampleCoding? {
        // Some writers leave the bytes per frame out; a sample of 20 bits stands in 3 bytes, or in 4 where they say so.
        let shortest = (bits + 7) / 8
        guard bytesPerFrame % channelCount == 0 else { return nil }
        let byteCount = bytesPerFrame == 0 ? shortest : bytesPerFrame / channelCount
        guard byteCount >= shortest, bits > 0 else { return nil }
        switch (tag, byteCount) {
        case (1, 1...4): return .integer(byteCount: byteCount)
        case (3, 4), (3, 8): return bits == byteCount * 8 ? .float(byteCount: byteCount) : nil
        case (6, 1): return .aLaw
        case (7, 1): return .muLaw
        default: return nil
        }
    }

    private static var remedy: String {
        "Convert it to a plain 16-bit WAV, for example by: ffmpeg -i IN -c:a pcm_s16le OUT.wav"
    }
}

/// Walks a file from chunk to chunk, front to back, so that a pipe can be read too.
private struct ChunkCursor {
    let source: any ByteSource
    private(set) var position = 0

    init(source: any ByteSource) {
        self.source = source
    }

    mutating func readStart() throws(WAVError) -> (isLong: Bool, byteCount: UInt32) {
        let start = try read(12)
        guard !start.isEmpty else {
            throw WAVError(.empty, "\(source.name) is empty. Name a WAV file that holds sound.")
        }
        let name = start.text(at: 0)
        guard name == "RIFF".prefix(start.count) || name == "RF64".prefix(start.count) else {
            throw WAVError(.notWAV, "\(source.name) is not a WAV file: it does not start with RIFF. Convert it to WAV.")
        }
        guard start.count == 12 else { throw truncated("its first chunk") }
        guard start.text(at: 8) == "WAVE" else {
            throw WAVError(.notWAV, "\(source.name) is a RIFF file but not a WAV file. Convert it to WAV.")
        }
        return (name == "RF64", start.littleEndian32(at: 4))
    }

    mutating func readChunkStart() throws(WAVError) -> (name: String, byteCount: UInt32) {
        let start = try read(8)
        guard start.count == 8 else { throw truncated("its samples") }
        return (start.text(at: 0), start.littleEndian32(at: 4))
    }

    /// The first `limit` bytes of a chunk's content; the rest is skipped.
    mutating func readContent(_ byteCount: UInt32, atMost limit: Int) throws(WAVError) -> [UInt8] {
        let wanted = min(Int(byteCount), limit)
        let content = try read(wanted)
        guard content.count == wanted else { throw truncated("its samples") }
        try skip(Int(byteCount) + Int(byteCount & 1) - wanted)
        return content
    }

    mutating func skip(_ byteCount: UInt32) throws(WAVError) {
        try skip(Int(byteCount) + Int(byteCount & 1))
    }

    private mutating func skip(_ byteCount: Int) throws(WAVError) {
        guard byteCount > 0 else { return }
        if let all = source.byteCount {
            guard position + byteCount <= all, source.seek(to: position + byteCount) else {
                throw truncated("its samples")
            }
            position += byteCount
            return
        }
        var rest = byteCount
        while rest > 0 {
            let count = try read(min(rest, 4096)).count
            guard count > 0 else { throw truncated("its samples") }
            rest -= count
        }
    }

    private mutating func read(_ count: Int) throws(WAVError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        // The closure of withUnsafeMutableBytes cannot carry a typed error out together with a mutation of `self`.
        let result = bytes.withUnsafeMutableBytes { target in
            Result { () throws(WAVError) in try source.read(into: target) }
        }
        let got = try result.get()
        position += got
        bytes.removeLast(count - got)
        return bytes
    }

    func truncated(_ part: String) -> WAVError {
        WAVError(
            .truncatedHeader,
            "\(source.name) ends after \(position) bytes, before \(part). It was cut off: fetch or record it again."
        )
    }
}

extension [UInt8] {
    fileprivate func littleEndian16(at offset: Int) -> UInt16 { UInt16(self[offset]) | UInt16(self[offset + 1]) << 8 }

    fileprivate func littleEndian32(at offset: Int) -> UInt32 {
        UInt32(littleEndian16(at: offset)) | UInt32(littleEndian16(at: offset + 2)) << 16
    }

    fileprivate func littleEndian64(at offset: Int) -> UInt64 {
        UInt64(littleEndian32(at: offset)) | UInt64(littleEndian32(at: offset + 4)) << 32
    }

    fileprivate func text(at offset: Int) -> String {
        String(decoding: self[Swift.min(offset, count)..<Swift.min(offset + 4, count)], as: UTF8.self)
    }
}
