import ArgumentParser
import MediaEngine
import Testing

@testable import media_tool

/// What the receivers in a capture say of its streams.
@Suite struct CapturedReportsTests {
    /// A receiver report about `ssrc`, as RFC 3550, section 6.4.2 lays it out.
    private func report(about ssrc: UInt8, fraction: UInt8, lost: UInt8, jitter: UInt8) -> [UInt8] {
        [0x81, 201, 0, 7] + [0, 0, 0, 99]
            + [0, 0, 0, ssrc, fraction, 0, 0, lost, 0, 0, 1, 0, 0, 0, 0, jitter, 0, 0, 0, 0, 0, 0, 0, 0]
    }

    /// An extended report with VoIP metrics of `ssrc`, as RFC 3611, section 4.7 lays it out.
    private func metrics(of ssrc: UInt8, rFactor: UInt8, listening: UInt8, conversational: UInt8) -> [UInt8] {
        [0x80, 207, 0, 10] + [0, 0, 0, 99] + [7, 0, 0, 8] + [0, 0, 0, ssrc] + [5, 2, 0, 5, 0, 0, 0, 200, 0, 40, 0, 60]
            + [127, 127, 127, 16, rFactor, 127, listening, conversational, 0x30, 0, 0, 40, 0, 60, 0, 120]
    }

    @Test func `what a receiver reports of a stream stands beside what is heard of it`() async throws {
        var capture = CaptureBuilder()
        capture.stream(300, type: 0, ssrc: 1)
        capture.stream(300, type: 0, ssrc: 2, isBack: true)
        capture.add(report(about: 1, fraction: 64, lost: 3, jitter: 40), at: 1000, isBack: true)
        capture.add(
            report(about: 1, fraction: 0, lost: 4, jitter: 80)
                + metrics(of: 1, rFactor: 85, listening: 41, conversational: 40),
            at: 2000,
            isBack: true
        )
        // Of another's stream, from the side that sends this one.
        capture.add(report(about: 1, fraction: 255, lost: 200, jitter: 255), at: 3000)
        let scratch = try Scratch()
        let path = scratch.file("c.pcap")
        try capture.write(to: path)
        let content = try InputContent(path: path, limit: 1 << 24) { false }
        let selection = try StreamSelection.parse(["--ssrc", "1"])
        let legs = try await CaptureDirections.heard(selection, path, content)
        let figures = legs[0].figures
        #expect(figures.number("receiver reports count") == 2 && figures.number("receiver reports lost") == 4)
        #expect(figures.number("receiver reports worst loss percent") == 25)
        #expect(figures.number("receiver reports jitter ms") == 10)
        #expect(figures.number("receiver reports r factor") == 85)
        #expect(figures.number("receiver reports mos listening") == 4.1)
        #expect(figures.number("receiver reports mos conversational") == 4)
        let page = ReportPage(title: "c.pcap", legs: legs).html
        #expect(page.ranges(of: "What its receiver reports").count == 1)
        #expect(legs[1].figures.number("receiver reports count") == nil)
    }

    @Test func `any bytes are read without a trap, and streams that nobody sends take no more memory than streams do`()
    {
        var generator = SeededGenerator(seed: 5)
        var reports = CapturedReports()
        for index in 0..<6000 {
            var bytes = report(about: 0, fraction: 1, lost: 1, jitter: 1)
            if index % 3 == 0 { bytes[Int(generator.next() % 32)] = UInt8(truncatingIfNeeded: generator.next()) }
            if index % 7 == 0 { bytes = Array(bytes.prefix(Int(generator.next() % 33))) }
            if bytes.count == 32 {
                bytes[9] = UInt8(truncatingIfNeeded: index >> 8)
                bytes[10] = UInt8(truncatingIfNeeded: index)
            }
            var capture = CaptureBuilder()
            capture.add(bytes, isBack: true)
            for datagram in capture.datagrams { reports.add(datagram) }
        }
        #expect(reports.count <= CapturedStreams.maximumStreamCount && reports.count > 3000)
    }
}
