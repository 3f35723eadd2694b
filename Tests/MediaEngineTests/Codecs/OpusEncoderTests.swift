import COpus
import Testing

@testable import MediaEngine

@Suite struct OpusEncoderTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var parameters: String
        var request: Int32
        var value: Int
        var change: @Sendable (inout EncoderConfiguration) -> Void = { _ in }
        var testDescription: String { "\(parameters) → \(request) = \(value)" }
    }

    /// RFC 7587, section 6.1: the parameters and what they ask of a sender.
    static let rows = [
        Row(parameters: "", request: OPUS_GET_COMPLEXITY_REQUEST, value: 5),
        Row(parameters: "", request: OPUS_GET_BITRATE_REQUEST, value: 32000),
        Row(parameters: "", request: OPUS_GET_VBR_REQUEST, value: 1),
        Row(parameters: "cbr=1", request: OPUS_GET_VBR_REQUEST, value: 0),
        Row(parameters: "cbr=0", request: OPUS_GET_VBR_REQUEST, value: 1),
        Row(parameters: "maxaveragebitrate=20000", request: OPUS_GET_BITRATE_REQUEST, value: 20000),
        Row(
            parameters: "maxaveragebitrate=20000",
            request: OPUS_GET_BITRATE_REQUEST,
            value: 16000,
            change: { $0.bitrate = 16000 }
        ),
        Row(parameters: "maxaveragebitrate=5", request: OPUS_GET_BITRATE_REQUEST, value: 32000),
        Row(
            parameters: "maxplaybackrate=8000",
            request: OPUS_GET_MAX_BANDWIDTH_REQUEST,
            value: Int(OPUS_BANDWIDTH_NARROWBAND)
        ),
        Row(
            parameters: "MaxPlaybackRate = 16000 ; x",
            request: OPUS_GET_MAX_BANDWIDTH_REQUEST,
            value: Int(OPUS_BANDWIDTH_WIDEBAND)
        ),
        Row(
            parameters: "maxplaybackrate=48000",
            request: OPUS_GET_MAX_BANDWIDTH_REQUEST,
            value: Int(OPUS_BANDWIDTH_FULLBAND)
        ),
        Row(
            parameters: "useinbandfec=1",
            request: OPUS_GET_INBAND_FEC_REQUEST,
            value: 1,
            change: { $0.usesFEC = true }
        ),
        Row(
            parameters: "useinbandfec=0",
            request: OPUS_GET_INBAND_FEC_REQUEST,
            value: 0,
            change: { $0.usesFEC = true }
        ),
        Row(parameters: "stereo=1", request: OPUS_GET_INBAND_FEC_REQUEST, value: 0, change: { $0.usesFEC = true }),
        Row(parameters: "", request: OPUS_GET_INBAND_FEC_REQUEST, value: 1, change: { $0.usesFEC = true }),
        Row(parameters: "usedtx=1", request: OPUS_GET_DTX_REQUEST, value: 1),
        Row(parameters: "usedtx=0", request: OPUS_GET_DTX_REQUEST, value: 0, change: { $0.usesDTX = true }),
        Row(parameters: "cbr=0", request: OPUS_GET_DTX_REQUEST, value: 1, change: { $0.usesDTX = true }),
        Row(
            parameters: "",
            request: OPUS_GET_PACKET_LOSS_PERC_REQUEST,
            value: 7,
            change: {
                $0.usesFEC = true
                $0.expectedLossPercent = 7
            }
        ),
        Row(
            parameters: "",
            request: OPUS_GET_PACKET_LOSS_PERC_REQUEST,
            value: 0,
            change: { $0.expectedLossPercent = 7 }
        ),
        Row(
            parameters: "useinbandfec=1",
            request: OPUS_GET_FORCE_CHANNELS_REQUEST,
            value: 1,
            change: { $0.channelCount = 2 }
        ),
        Row(
            parameters: "stereo=1",
            request: OPUS_GET_FORCE_CHANNELS_REQUEST,
            value: Int(OPUS_AUTO),
            change: { $0.channelCount = 2 }
        ),
    ]

    @Test(arguments: rows) func `the receiver's parameters are obeyed`(row: Row) throws {
        var configuration = EncoderConfiguration()
        row.change(&configuration)
        let remote = OpusParameters(parsing: row.parameters)
        #expect(try OpusEncoder(configuration, remote: remote).setting(row.request) == row.value)
    }

    @Test func `a later change stays within the receiver's limits`() throws {
        let remote = OpusParameters(parsing: "maxaveragebitrate=20000")
        let encoder = try OpusEncoder(EncoderConfiguration(), remote: remote)
        encoder.adapt(bitrate: 90000, usesFEC: true, expectedLossPercent: 300)
        #expect(encoder.setting(OPUS_GET_BITRATE_REQUEST) == 20000)
        #expect(encoder.setting(OPUS_GET_INBAND_FEC_REQUEST) == 0)
        #expect(encoder.setting(OPUS_GET_PACKET_LOSS_PERC_REQUEST) == 100)
    }

    @Test(
        arguments: [
            ("", nil, 20), ("ptime=40", nil, 40), ("ptime=40", 10, 10), ("minptime=40", nil, 40),
            ("minptime=30", nil, 40),
            ("maxptime=10", nil, 10), ("maxptime=30", 60, 20), ("minptime=60;maxptime=20", nil, 60),
            ("maxptime=3", nil, 10),
            ("maxptime=120", 120, 120), ("ptime=999", nil, 20),
        ] as [(String, Int?, Int)]
    )
    func `the packet length is the nearest within the receiver's limits`(text: String, wish: Int?, ptime: Int) {
        #expect(OpusParameters(parsing: text).ptime(wish: wish) == ptime)
    }

    @Test func `parameters of any bytes parse`() {
        var random = CodecTestRandom(seed: 5)
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            _ = OpusParameters(parsing: String(decoding: bytes, as: UTF8.self))
        }
        #expect(!OpusParameters(parsing: ";;").isKnown)
        #expect(OpusParameters(parsing: "=;stereo=01").prefersStereo == true)
        #expect(OpusParameters(parsing: "stereo=99999999999999999999").prefersStereo == nil)
    }
}
