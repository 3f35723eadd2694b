import ArgumentParser
import MediaEngine
import Testing

@testable import media_tool

/// Which streams of a capture are on one page, and in which order.
@Suite struct CaptureDirectionsTests {
    private func heard(_ capture: CaptureBuilder, _ arguments: String...) async throws -> [ReportLeg] {
        let scratch = try Scratch()
        let path = scratch.file("c.pcap")
        try capture.write(to: path)
        let content = try InputContent(path: path, limit: 1 << 24) { false }
        return try await CaptureDirections.heard(try StreamSelection.parse(arguments), path, content)
    }

    @Test func `both sides may have chosen one SSRC`() async throws {
        var capture = CaptureBuilder()
        capture.stream(100, type: 0)
        capture.stream(90, type: 0, isBack: true)
        let legs = try await heard(capture)
        #expect(Set(legs.map(\.trace.stream.source)) == ["10.0.0.1:4000", "10.0.0.2:5000"])
        #expect(!legs.contains { $0.notes.contains { $0.contains("SSRC") } })
        let asked = try await heard(capture, "--ssrc", "1")
        #expect(asked.map(\.trace.stream.source) == ["10.0.0.1:4000", "10.0.0.2:5000"])
        let note = try #require(asked[0].notes.first { $0.contains("2 streams have SSRC 0x00000001") })
        #expect(note.contains("10.0.0.1:4000 to 10.0.0.2:5000") && note.contains("not src port 4000"))
    }

    @Test func `a picture is no other direction, and what is not on the page is named`() async throws {
        var capture = CaptureBuilder()
        let media = "m=audio %d RTP/AVP 0\r\nm=video %d RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\n"
        capture.describe(media.replacing("%d", with: "4000"))
        capture.describe(media.replacing("%d", with: "5000"), isBack: true)
        capture.stream(60, type: 0, ssrc: 1)
        capture.stream(100, type: 97, step: 1800, ssrc: 2, byteCount: 300)
        capture.stream(50, type: 0, ssrc: 3, isBack: true)
        capture.stream(100, type: 97, step: 1800, ssrc: 4, byteCount: 300, isBack: true)
        let legs = try await heard(capture, "--ssrc", "1")
        #expect(legs.map(\.trace.stream.ssrc) == [1, 3])
        let note = "The capture has 2 more streams: 0x00000002 (H264), 0x00000004 (H264). Choose one by --ssrc."
        #expect(legs[0].notes.contains(note) && !legs[1].notes.contains(note), "\(legs[0].notes)")
    }

    @Test func `of several streams that go back, the one that is there at the same time is taken`() async throws {
        var capture = CaptureBuilder()
        capture.stream(300, type: 0, ssrc: 1)
        capture.stream(250, type: 0, ssrc: 2, isBack: true, pause: 60_000)
        capture.stream(200, type: 0, ssrc: 3, isBack: true)
        #expect(try await heard(capture, "--ssrc", "1").map(\.trace.stream.ssrc) == [1, 3])
    }

    @Test func `the direction that sounds worse comes first, unless one was asked for`() async throws {
        var capture = CaptureBuilder()
        capture.stream(300, type: 0, ssrc: 1)
        capture.stream(300, type: 0, ssrc: 2, isBack: true) { $0 % 4 == 2 }
        #expect(try await heard(capture).map(\.trace.stream.ssrc) == [2, 1])
        #expect(try await heard(capture, "--ssrc", "1").map(\.trace.stream.ssrc) == [1, 2])
    }

    @Test func `a pause of more than a minute is heard whole`() async throws {
        var capture = CaptureBuilder()
        capture.stream(150, type: 0)
        capture.stream(150, type: 0, first: 150, pause: 90_000)
        let leg = try #require(try await heard(capture).first)
        #expect(leg.seconds > 95 && leg.analysis.gaps.isEmpty && leg.notes.isEmpty, "\(leg.notes)")
        #expect(leg.trace.stream.startUnixMs != nil && !leg.trace.events.contains { $0.kind == .jump })
    }

    @Test func `a pause of more than an hour is cut, and neither a gap nor a jump`() async throws {
        var capture = CaptureBuilder()
        capture.stream(150, type: 0)
        capture.stream(150, type: 0, first: 150, pause: 7_200_000)
        let leg = try #require(try await heard(capture).first)
        #expect(leg.seconds < 70 && leg.analysis.gaps.isEmpty && leg.trace.stream.startUnixMs == nil)
        #expect(!leg.trace.events.contains { $0.kind == .jump })
        #expect(leg.notes.contains { $0.contains("1 pause in") && $0.contains("longer than an hour") }, "\(leg.notes)")
    }
}
