import Testing

@testable import MediaEngine

@Suite struct OpusPacketTests {
    /// RFC 6716, section 3.1 (table 2) for the first byte, 3.2 for the frames, 4.2.3 for the bits.
    static let rows: [(bytes: [UInt8], carriesFEC: Bool?)] = [
        ([], nil),
        // SILK wideband 20 ms mono: voice activity, then LBRR.
        ([0x48, 0x40], true), ([0x48, 0xBF], false), ([0x48], false),
        // SILK wideband 10 ms mono: as 20 ms.
        ([0x40, 0x40], true), ([0x40, 0x80], false),
        // 20 ms stereo: two flags of the middle channel, then two of the side channel.
        ([0x4C, 0x40], true), ([0x4C, 0x10], true), ([0x4C, 0xA0], false),
        // 40 ms mono: two voice activity flags before LBRR.
        ([0x50, 0x20], true), ([0x50, 0xDF], false),
        // 60 ms stereo: the eight flags fill the byte.
        ([0x5C, 0x10], true), ([0x5C, 0x01], true), ([0x5C, 0xEE], false),
        // Hybrid 20 ms mono, and 10 ms, whose number is even.
        ([0x78, 0x40], true), ([0x70, 0x40], true), ([0x78, 0x3F], false),
        // CELT has none.
        ([0xE0, 0xFF], false), ([0x80, 0xFF], false),
        // Two equal frames; an odd rest is no packet.
        ([0x49, 0x40, 0x00], true), ([0x49, 0x00, 0x40], false), ([0x49, 0x40], nil),
        // Two frames, the first with a length of one or two bytes, or of none.
        ([0x4A, 1, 0x40, 0x00], true), ([0x4A, 2, 0x40], nil), ([0x4A], nil), ([0x4A, 252], nil),
        ([0x4A, 252, 1, 0x40], nil), ([0x4A, 252, 0, 0x40] + [UInt8](repeating: 0, count: 251), true),
        ([0x4A, 0, 0x40], false),
        // Many frames: constant and variable bitrate, with and without padding.
        ([0x4B], nil), ([0x4B, 0], nil), ([0x4B, 49, 0x40], nil), ([0x4B, 2, 0x40, 0], true), ([0x4B, 2, 0x40], nil),
        ([0x4B, 0x82, 1, 0x40, 0], true), ([0x4B, 0x82, 9, 0x40, 0], nil), ([0x4B, 0x81, 0x40], true),
        ([0x4B, 0x41, 2, 0x40, 0, 0], true), ([0x4B, 0x41, 9, 0x40], nil), ([0x4B, 0x41, 255], nil),
        ([0x4B, 0x41, 255, 0, 0x40] + [UInt8](repeating: 0, count: 254), true),
    ]

    @Test(arguments: rows) func `the copy is seen where the flags say`(bytes: [UInt8], carriesFEC: Bool?) {
        #expect(OpusPacket(parsing: bytes.span)?.carriesFEC == carriesFEC)
    }

    // RFC 6716, table 2: configuration, frames, and so the length in units of 48 kHz.
    @Test(
        arguments: [
            ([0x00], 480), ([0x08], 960), ([0x10], 1920), ([0x18], 2880), ([0x48, 1, 2], 960),
            ([0x60], 480), ([0x68], 960), ([0x70], 480), ([0x78], 960), ([0x80], 120), ([0x88], 240), ([0x90], 480),
            ([0x98], 960), ([0xF8], 960), ([0x49], 1920), ([0x4A], 1920), ([0x4B, 3], 2880), ([0x83, 48], 5760),
            ([0x4B, 0xC2], 1920), ([], nil), ([0x4B], nil), ([0x4B, 0], nil), ([0x4B, 7], nil), ([0x83, 49], nil),
        ] as [([UInt8], UInt32?)]
    ) func `the first bytes say how long it lasts`(bytes: [UInt8], units: UInt32?) {
        #expect(OpusPacket.timestampUnits(of: bytes.span) == units)
    }

    @Test func `no bytes make it trap`() {
        var random = CodecTestRandom(seed: 17)
        for _ in 0..<20000 {
            var bytes = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if bytes.count > 1, Bool.random(using: &random) { bytes[1] |= 0x40 }
            _ = OpusPacket(parsing: bytes.span)
        }
    }
}
