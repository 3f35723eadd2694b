import Foundation
import MediaEngine
import TestSupport
import Testing

@testable import media_tool

/// Captures that hold more, or less, than plain sound with a decoder.
@Suite struct CaptureReplayTests {
    private func replay(
        _ capture: CaptureBuilder,
        ssrc: UInt32? = nil,
        codec: String? = nil
    ) throws -> CaptureReplay {
        let scratch = try Scratch()
        try capture.write(to: scratch.file("c.pcap"))
        return try CaptureReplay(
            path: scratch.file("c.pcap"),
            content: nil,
            choice: ssrc.map(CaptureReplay.Choice.ssrc) ?? .best,
            codec: codec,
            payloadType: nil,
            registry: .standard()
        )
    }

    private static func corpus(_ path: String) throws -> CaptureReplay {
        try CaptureReplay(
            path: CorpusFiles.fetched.deletingLastPathComponent().appendingPathComponent(path).path,
            content: nil,
            choice: .best,
            codec: nil,
            payloadType: nil,
            registry: .standard()
        )
    }

    @Test func `ciphertext is counted and never heard`() async throws {
        var capture = CaptureBuilder()
        capture.stream(50, type: 0, byteCount: 170)
        capture.stream(50, type: 0, first: 53, byteCount: 170)
        for codec in [nil, "PCMU"] {
            let replay = try replay(capture, codec: codec)
            #expect(replay.chosen.encryption?.contains("10 bytes longer") == true)
            #expect(replay.chosen.keys == nil)
            #expect(replay.chosen.codec == "PCMU")
            #expect(replay.chosen.survey.reception.lostCount == 3)
            let scratch = try Scratch()
            await #expect(throws: ToolFailure.self) {
                _ = try await replay.run(output: scratch.file("o.wav"), trace: nil)
            }
            #expect(!FileManager.default.fileExists(atPath: scratch.file("o.wav")))
        }
    }

    // RFC 3551, tables 4 and 5.
    @Test(
        arguments: [
            (4, "G723", 8000), (5, "DVI4", 8000), (6, "DVI4", 16_000), (7, "LPC", 8000), (12, "QCELP", 8000),
            (14, "MPA", 90_000), (15, "G728", 8000), (16, "DVI4", 11_025), (17, "DVI4", 22_050), (34, "H263", 90_000),
        ] as [(UInt8, String, Int)]
    )
    func `a static type without a decoder is known and counted`(type: UInt8, name: String, clockRate: Int) throws {
        var capture = CaptureBuilder()
        // Packets of 30 ms, of which two are missing and one comes twice.
        let step = UInt32(clockRate * 30 / 1000)
        for index in 0..<40 where index != 10 && index != 20 {
            for _ in 0..<(index == 15 ? 2 : 1) {
                capture.packet(
                    UInt16(index),
                    type: type,
                    timestamp: UInt32(index) * step,
                    at: Int64(index) * 30,
                    byteCount: 24
                )
            }
        }
        let chosen = try replay(capture).chosen
        guard case .undecodable(name, "payload type", let reason) = chosen.content else {
            Issue.record("\(chosen.content)")
            return
        }
        #expect(reason.contains(name) && chosen.codec == name && chosen.survey.clockRate == clockRate)
        #expect(chosen.survey.reception.lostCount == 2 && chosen.survey.reception.duplicateCount == 1)
        #expect(try #require(chosen.survey.jitter) < .milliseconds(1))
        let packetTime = try #require(chosen.survey.packetTime)
        #expect(abs(packetTime.milliseconds - 30) < 0.1)
    }

    @Test func `a dynamic type whose lengths are not those of Opus is no Opus`() throws {
        // G.723.1: 24 bytes for 30 ms at 8000 Hz.
        var other = CaptureBuilder()
        other.stream(60, type: 98, step: 240, byteCount: 24)
        guard case .unknown = try replay(other).chosen.content else {
            Issue.record("taken for something")
            return
        }
        guard case .sound(let named) = try replay(other, codec: "opus").chosen.content else {
            Issue.record("the user is not believed")
            return
        }
        #expect(named.saidBy == "option")

        // Opus of 20 ms, the longer steps being silence that was left out.
        var opus = CaptureBuilder()
        for index in 0..<60 {
            let timestamp = UInt32(index * 960 + index / 8 * 9600)
            opus.packet(
                UInt16(index),
                type: 98,
                timestamp: timestamp,
                at: Int64(timestamp / 48),
                payload: [0x48, 1, 2, 3]
            )
        }
        // Four bytes each would also be telephone events.
        opus.packet(60, type: 98, timestamp: 200_000, at: 4000, payload: [0x48, 1, 2])
        guard case .sound(let guessed) = try replay(opus).chosen.content else {
            Issue.record("not taken for Opus")
            return
        }
        #expect(guessed.codec.name == "opus" && guessed.saidBy == "guess" && guessed.ptime == .milliseconds(20))
    }

    @Test(arguments: [101, 96, 110] as [UInt8])
    func `telephone events alone give their keys`(type: UInt8) throws {
        var capture = CaptureBuilder()
        var number: UInt16 = 0
        for (key, code) in [1, 5, 11].enumerated() {
            for packet in 0..<8 {
                let isEnd: UInt8 = packet >= 5 ? 0x80 : 0
                let duration = UInt8(min(packet, 5) * 20 + 20)
                capture.packet(
                    number,
                    type: type,
                    timestamp: UInt32(key) * 4000,
                    at: Int64(key) * 500 + Int64(packet) * 20,
                    payload: [UInt8(code), isEnd | 10, 0, duration]
                )
                number += 1
            }
        }
        let replay = try replay(capture)
        guard case .keys = replay.chosen.content else {
            Issue.record("\(replay.chosen.content)")
            return
        }
        #expect(replay.chosen.survey.jitter == nil)
        #expect(replay.chosen.keys == "15#" && replay.chosen.content.notHeard?.contains("telephone events") == true)
    }

    @Test func `a codec that changes in the middle is followed`() async throws {
        var capture = CaptureBuilder()
        capture.stream(100, type: 0)
        capture.stream(100, type: 8, first: 100)
        let replay = try replay(capture)
        let result = try await replay.run(output: nil, trace: nil)
        #expect(result.report.legs[0].received.packets == 200)
        #expect(result.report.legs[0].received.codecChanges == 1)
        #expect(result.report.legs[0].received.rejected == 0)
        #expect(!replay.notes.contains { $0.contains("no decoder") })
    }

    @Test func `sound of a type without a decoder is said to be missing`() async throws {
        var capture = CaptureBuilder()
        capture.stream(100, type: 0)
        capture.stream(40, type: 4, first: 100, byteCount: 24)
        capture.stream(100, type: 0, first: 140)
        let replay = try replay(capture)
        #expect(replay.notes.contains { $0.contains("40 packets have payload type 4 (G723)") }, "\(replay.notes)")
        let leg = try await replay.run(output: nil, trace: nil).report.legs[0]
        #expect(leg.received.rejected == 40 && leg.received.lost == 0)
        let quality = leg.quality
        #expect(780...820 ~= quality.interruptedMs, "\(quality.interruptedMs) ms")
        #expect((quality.mosListening ?? 5) < 4, "\(quality)")
    }

    @Test func `a picture is not chosen, however many packets it has`() throws {
        var capture = CaptureBuilder()
        capture.describe("m=video 4002 RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\nm=audio 4000 RTP/AVP 0\r\n")
        capture.stream(100, type: 97, step: 3000, ssrc: 2, byteCount: 900)
        capture.stream(50, type: 0)
        let replay = try replay(capture)
        #expect(replay.entries.map(\.codec) == ["H264", "PCMU"] && replay.chosenIndex == 1)
        #expect(try self.replay(capture, ssrc: 2).chosenIndex == 0)
    }

    @Test func `two calls may give one number two meanings`() throws {
        var capture = CaptureBuilder()
        capture.describe("m=audio 5000 RTP/AVP 97\r\na=rtpmap:97 L16/16000\r\n", isBack: true)
        capture.describe("m=audio 7000 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\n", host: "10.9.9.9")
        capture.stream(50, type: 97, step: 320, byteCount: 640)
        #expect(try replay(capture).chosen.codec == "L16")
    }

    @Test(
        .enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"),
        arguments: [
            ("own/captures/opus-sdes-srtp.pcap", "RTP/SAVP"), ("fetched/rtpproxy/alice_srtp.pcap", "10 bytes longer"),
            ("fetched/rtpproxy/bob_srtp.pcap", "10 bytes longer"),
        ]
    )
    func `captures of SRTP calls are said to be encrypted`(path: String, sign: String) throws {
        let replay = try Self.corpus(path)
        #expect(replay.entries.allSatisfy { $0.encryption?.contains(sign) == true })
    }

    @Test(
        .enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"),
        arguments: [
            "own/captures/opus-udp-dtmf4733.pcap", "own/captures/pcmu-udp-dtmf4733.pcap", "own/captures/opus-tcp.pcap",
            "fetched/sipp-pcap/g711a.pcap", "fetched/freeswitch/milliwatt.pcmu.rtp.pcap",
            "fetched/asterisk-testsuite/ulaw-2013785496.pcap", "fetched/asterisk-testsuite/crash-27382.pcap",
        ]
    )
    func `captures of plain calls are not`(path: String) throws {
        let replay = try Self.corpus(path)
        #expect(replay.entries.allSatisfy { $0.encryption == nil })
        #expect(replay.chosen.content.notHeard == nil, "\(replay.chosen.content)")
    }

    @Test(.enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"))
    func `SIP over TCP is told`() throws {
        let notes = try Self.corpus("own/captures/opus-tcp.pcap").notes
        #expect(notes.contains { $0.contains("SIP messages travel over TCP") }, "\(notes)")
    }

    @Test(
        .enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"),
        arguments: [("0", "0"), ("5", "5"), ("pound", "#"), ("star", "*")]
    )
    func `SIPp's samples give their keys`(name: String, key: String) throws {
        #expect(try Self.corpus("fetched/sipp-pcap/dtmf_2833_\(name).pcap").chosen.keys == key)
    }
}
