import Foundation
import MediaEngine
import TestSupport
import Testing

@testable import media_tool

/// Traces, pages made of them, and captures that are heard again.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct ReportCommandRealTimeTests {
    private func traced(_ scratch: Scratch, _ arguments: String...) throws -> TraceFile {
        let run = try ToolRun(["loopback", "--virtual", "--trace", scratch.file("t.json")] + arguments)
        #expect(run.wait() == 0, "\(run.errors)")
        return try TraceFile(parsing: scratch.bytes("t.json"))
    }

    @Test func `a call leaves a row for each 20 ms and the report's figures`() throws {
        let scratch = try Scratch()
        let trace = try traced(scratch, "--seconds", "6", "--loss", "10", "--jitter", "30", "--seed", "3")
        #expect(trace.codec == "opus" && trace.clockRate == 48000 && trace.ptimeMs == 20)
        #expect(abs(trace.rows.count - 300) <= 1)
        #expect(zip(trace.rows, trace.rows.dropFirst()).allSatisfy { $1.time - $0.time == .milliseconds(20) })
        #expect(trace.rows.contains { $0.operation == .play && $0.level > -60 })
        #expect(trace.rows.reduce(0) { $0 + Int($1.arrivedCount) } > 200)
        #expect(trace.rows.contains { $0.missingCount > 0 })
        let lost = try #require(trace.figures.first { $0.name == "received lost" })
        let noted = trace.events.filter { $0.kind == .lost }.reduce(0) { $0 + $1.amount }
        #expect(Int(lost.value) == noted && noted > 5)
    }

    @Test func `the page is one file that loads nothing, with every plot that has something, and the gaps`() throws {
        let scratch = try Scratch()
        _ = try traced(scratch, "--seconds", "6", "--loss", "15", "--burst", "3", "--fec", "off")
        let run = try ToolRun.finished("report", scratch.file("t.json"), "--output", scratch.file("t.html"), "--json")
        #expect(run.status == 0, "\(run.errors)")
        let gaps = try #require(try run.json()["gaps"] as? [String: Any])
        let count = try #require(gaps["count"] as? Int)
        #expect(count > 0)
        #expect(((gaps["list"] as? [[String: Any]])?.first?["cause"] as? String) == "lost")
        let page = String(decoding: try scratch.bytes("t.html"), as: UTF8.self)
        #expect(page.hasPrefix("<!DOCTYPE html>") && page.hasSuffix("</html>\n"))
        for word in ["http://", "https://", "src=", "@import", "NaN", "inf"] {
            #expect(!page.contains(word), "\(word)")
        }
        let titles = [
            "Gaps and events", "Delay", "Packets", "Concealed sound", "Level of what was heard",
            "Estimated quality",
        ]
        for title in titles { #expect(page.contains("<b>\(title)</b>"), "\(title)") }
        #expect(page.contains("\(count) audible gap") && page.contains("SSRC 0x") && page.contains(" % lost"))
        let direction = try #require((try run.json()["directions"] as? [[String: Any]])?.first)
        #expect(direction["verdict"] as? String == "bad")
        #expect(try #require(direction["mos"] as? Double) < 4)
        #expect(try #require(direction["lossPercent"] as? Double) > 5)
        #expect(page.contains("rtp.seq") && page.contains("the other side hears, by its RTCP"))
        // Virtual time has no time of day.
        #expect(!page.contains("UTC</th>"))
        let text = try ToolRun.finished("report", scratch.file("t.json"), "--output", scratch.file("t.html"))
        #expect(text.output.contains("\(count) audible gaps") && text.output.contains("lost"))
        #expect(text.output.contains("t.html: Bad, MOS "))
    }

    @Test func `a clean call was not choppy`() throws {
        let scratch = try Scratch()
        _ = try traced(scratch, "--seconds", "4")
        let run = try ToolRun.finished("report", scratch.file("t.json"), "--output", scratch.file("t.html"))
        #expect(run.status == 0 && run.output.contains("no audible gap"))
        let page = String(decoding: try scratch.bytes("t.html"), as: UTF8.self)
        #expect(page.contains("There is no audible gap"))
    }

    @Test func `silence that the sender left out is no gap`() throws {
        let scratch = try Scratch()
        let trace = try traced(scratch, "--dtx", "--seconds", "\(thorough(20, quick: 8))")
        #expect(trace.rows.contains { $0.paused > 0 } && trace.rows.contains { $0.operation == .comfort })
        let run = try ToolRun.finished("report", scratch.file("t.json"), "--output", scratch.file("t.html"))
        #expect(run.status == 0 && run.output.contains("no audible gap"), "\(run.output)")
    }

    @Test func `text from the file is text on the page`() throws {
        let scratch = try Scratch()
        let evil = "<script>alert('1 & 2')</script>"
        let writer = try TraceFileWriter(
            path: scratch.file("<b>.json"),
            header: TraceFile(codec: evil, clockRate: 8000, ptimeMs: 20)
        )
        try writer.finish(droppedRows: 3, figures: [TraceFile.Figure(name: evil, value: "\"><img>")])
        let run = try ToolRun.finished("report", scratch.file("<b>.json"), "--output", scratch.file("p.html"))
        #expect(run.status == 0, "\(run.errors)")
        let page = String(decoding: try scratch.bytes("p.html"), as: UTF8.self)
        for tag in ["<script>alert", "<img", "<b>.json"] { #expect(!page.contains(tag)) }
        #expect(page.contains("&lt;script&gt;alert(&#39;1 &amp; 2&#39;)&lt;/script&gt;") && page.contains("3 rows"))
    }

    @Test(arguments: ["./talk.wav", "link.html"])
    func `the page of a call with an agent is no place of its sound, by whatever name`(name: String) throws {
        let scratch = try Scratch()
        let record = #"{"callID":"a","parameters":{},"left":"agent","right":"other side","events":[]}"#
        try Data(record.utf8).write(to: URL(fileURLWithPath: scratch.file("talk.json")))
        try Tone.ours.write(to: scratch.file("talk.wav"), rate: 8000)
        try FileManager.default.createSymbolicLink(
            atPath: scratch.file("link.html"),
            withDestinationPath: "talk.wav"
        )
        let sound = try scratch.bytes("talk.wav")
        let run = try ToolRun.finished("report", scratch.file("talk.json"), "--output", scratch.file(name))
        #expect(run.status == 64 && run.errors.contains("the call's sound"), "\(run.errors)")
        #expect(try scratch.bytes("talk.wav") == sound)
    }

    @Test func `Ctrl-C leaves a whole trace`() throws {
        let scratch = try Scratch()
        let run = try ToolRun(["loopback", "--seconds", "60", "--trace", scratch.file("t.json")])
        FileWatch.wait(for: scratch.file("t.json"), byteCount: 1500)
        run.interrupt()
        #expect(run.wait() == 0, "\(run.errors)")
        let trace = try TraceFile(parsing: scratch.bytes("t.json"))
        #expect(trace.rows.count > 10 && !trace.figures.isEmpty)
        let start = try #require(trace.stream.startUnixMs)
        #expect(abs(Date().timeIntervalSince1970 * 1000 - Double(start)) < 120_000)
        #expect(trace.stream.source?.hasPrefix("127.0.0.1:") == true && trace.stream.ssrc != nil)
    }

    @Test func `a capture is replayed, page and sound alike`() throws {
        let scratch = try Scratch()
        let call = try ToolRun.finished(
            "loopback",
            "--virtual",
            "--codec",
            "PCMU",
            "--seconds",
            "4",
            "--loss",
            "5",
            "--jitter",
            "20",
            "--pcap",
            scratch.file("c.pcap")
        )
        #expect(call.status == 0)
        func replay(_ name: String) throws -> ToolRun {
            try ToolRun.finished(
                "replay",
                scratch.file("c.pcap"),
                "--output",
                scratch.file(name),
                "--trace",
                scratch.file("c.json"),
                "--json"
            )
        }
        let run = try replay("a.wav")
        #expect(run.status == 0, "\(run.errors)")
        let json = try run.json()
        #expect(json["codec"] as? String == "PCMU" && json["codecFrom"] as? String == "payload type")
        let streams = try #require(json["streams"] as? [[String: Any]])
        #expect(streams.count == 2 && streams[0]["chosen"] as? Bool == true)
        let packets = try #require(streams[0]["packets"] as? Int)
        let received = try #require((json["report"] as? [String: Any])?["received"] as? [String: Any])
        #expect(received["packets"] as? Int == packets && packets > 180)
        _ = try replay("b.wav")
        #expect(try scratch.bytes("a.wav") == scratch.bytes("b.wav"))
        #expect(try WAVFile.read(scratch.file("a.wav")).1.contains { abs(Int($0)) > 1000 })
        #expect(try TraceFile(parsing: scratch.bytes("c.json")).rows.count > 200)

        let other = try #require(streams[1]["ssrc"] as? String)
        let chosen = try ToolRun.finished("replay", scratch.file("c.pcap"), "--ssrc", other, "--json")
        let list = try #require(try chosen.json()["streams"] as? [[String: Any]])
        #expect(list[1]["chosen"] as? Bool == true)

        let page = try ToolRun.finished("report", scratch.file("c.pcap"), "--output", scratch.file("c.html"))
        #expect(page.status == 0, "\(page.errors)")
        let html = String(decoding: try scratch.bytes("c.html"), as: UTF8.self)
        let ssrcs = try streams.map { try #require($0["ssrc"] as? String) }
        #expect(html.split(separator: "<section").count == 3 && ssrcs.allSatisfy { html.contains("SSRC \($0)") })
        #expect(!html.contains("1970-01-01") && !html.contains("UTC</th>"))
        let text = try ToolRun.finished("replay", scratch.file("c.pcap"))
        #expect(text.output.contains(other) && text.output.contains("concealed ms"))
    }

    @Test func `keys in a capture are no gaps of its sound`() throws {
        let scratch = try Scratch()
        let capture = scratch.file("c.pcap")
        let call = ["--virtual", "--codec", "PCMU", "--seconds", "6", "--dtmf", "123456", "--pcap", capture]
        #expect(try ToolRun(["loopback"] + call).wait() == 0)
        let run = try ToolRun.finished("replay", capture, "--json")
        let json = try run.json()
        #expect((json["report"] as? [String: Any])?["dtmf"] as? String == "123456")
        #expect((json["gaps"] as? [String: Any])?["count"] as? Int == 0)
    }

    @Test func `a capture that is cut off is heard as far as it goes`() throws {
        let scratch = try Scratch()
        _ = try ToolRun.finished(
            "loopback",
            "--virtual",
            "--codec",
            "PCMA",
            "--seconds",
            "3",
            "--pcap",
            scratch.file("c.pcap")
        )
        let bytes = try scratch.bytes("c.pcap")
        try Data(bytes.prefix(bytes.count / 2 + 7)).write(to: URL(fileURLWithPath: scratch.file("cut.pcap")))
        let run = try ToolRun.finished("replay", scratch.file("cut.pcap"), "--json")
        #expect(run.status == 0, "\(run.errors)")
        let json = try run.json()
        #expect(json["cutShort"] as? Bool == true)
        #expect((json["notes"] as? [String])?.contains { $0.contains("cut off") } == true)
        // Link type 113 became 105, IEEE 802.11.
        var other = bytes
        other[20] = 105
        try Data(other).write(to: URL(fileURLWithPath: scratch.file("wifi.pcap")))
        let refused = try ToolRun.finished("replay", scratch.file("wifi.pcap"))
        #expect(refused.status == 1 && refused.errors.contains("link type 105"))
    }

    @Test func `times of a capture that cannot be are told`() throws {
        let scratch = try Scratch()
        let call = ["--virtual", "--codec", "PCMA", "--seconds", "2", "--pcap", scratch.file("c.pcap")]
        #expect(try ToolRun(["loopback"] + call).wait() == 0)
        var bytes = try scratch.bytes("c.pcap")
        var (offset, number) = (24, 0)
        // A record has seconds, their fraction, bytes here and bytes on the wire, each in 4 bytes, little-endian.
        while offset + 16 <= bytes.count {
            // Two hours are missing in the middle; some packets behind it are from before.
            if number >= 50, !(80..<84 ~= number) { bytes[offset + 1] += 28 }
            offset += 16 + Int(bytes[offset + 8]) + Int(bytes[offset + 9]) << 8
            number += 1
        }
        try Data(bytes).write(to: URL(fileURLWithPath: scratch.file("c.pcap")))
        let run = try ToolRun.finished("replay", scratch.file("c.pcap"), "--json")
        let notes = try #require(try run.json()["notes"] as? [String])
        #expect(notes.contains { $0.contains("longer than an hour") }, "\(notes)")
        #expect(notes.contains { $0.contains("older than the one before") }, "\(notes)")
    }

    @Test func `captures, traces and WAV files come through a pipe`() throws {
        let scratch = try Scratch()
        let call = ["--virtual", "--codec", "PCMU", "--seconds", "3", "--pcap", scratch.file("c.pcap")]
        let files = ["--trace", scratch.file("t.json"), "--output", scratch.file("o.wav")]
        #expect(try ToolRun(["loopback"] + call + files).wait() == 0)
        #expect(try ToolRun(["dtmf", "15", "--output", scratch.file("k.wav")]).wait() == 0)
        func piped(_ name: String, _ arguments: String) throws -> ToolRun {
            let command = "cat \"$1\" | \"$2\" \(arguments)"
            let run = try ToolRun(["-c", command, "sh", scratch.file(name), ToolRun.path], program: "/bin/sh")
            #expect(run.wait() == 0, "\(arguments): \(run.errors)")
            return run
        }
        #expect(try piped("c.pcap", "replay - --json").json()["codec"] as? String == "PCMU")
        for name in ["c.pcap", "t.json"] {
            let page = try piped(name, "report - --output '\(scratch.file(name)).html' --json").json()
            #expect(try #require(page["rows"] as? Int) > 100)
        }
        #expect(try piped("k.wav", "detect - --json").json()["digits"] as? String == "15")
        let played = try piped("k.wav", "play - --device null --json").json()
        #expect(try #require(played["seconds"] as? Double) > 0.3)
    }

    @Test func `a pipe that Ctrl-C ends is heard as far as it came`() throws {
        let scratch = try Scratch()
        let call = ["--virtual", "--codec", "PCMU", "--seconds", "3", "--pcap", scratch.file("c.pcap")]
        #expect(try ToolRun(["loopback"] + call).wait() == 0)
        let pipe = scratch.file("p")
        #expect(mkfifo(pipe, 0o600) == 0)
        let run = try ToolRun(["replay", pipe, "--json"])
        // It opens once the tool does, which has asked for signals by then.
        let writer = try FileHandle(forWritingTo: URL(fileURLWithPath: pipe))
        try writer.write(contentsOf: Data(try scratch.bytes("c.pcap")))
        run.interrupt()
        #expect(run.wait() == 0, "\(run.errors)")
        try writer.close()
        let json = try run.json()
        #expect(try #require(json["seconds"] as? Double) > 2.5)
        let notes = try #require(json["notes"] as? [String])
        #expect(notes.contains { $0.contains("A signal ended the reading of") }, "\(notes)")
        #expect(!notes.contains { $0.contains("ended the run") })
    }

    @Test func `standard input is called that on the page`() throws {
        let scratch = try Scratch()
        let files = ["--seconds", "2", "--trace", scratch.file("t.json")]
        #expect(try ToolRun(["loopback", "--virtual"] + files).wait() == 0)
        let command = "cat \"$1\" | \"$2\" report - --output \"$3\" --json"
        let arguments = ["-c", command, "sh", scratch.file("t.json"), ToolRun.path, scratch.file("t.html")]
        let run = try ToolRun(arguments, program: "/bin/sh")
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try run.json()["file"] as? String == "-")
        #expect(String(decoding: try scratch.bytes("t.html"), as: UTF8.self).contains("<title>standard input: "))
    }

    @Test func `what is not heard leaves no file, and its counts are told`() throws {
        let scratch = try Scratch()
        var capture = CaptureBuilder()
        capture.stream(50, type: 0, byteCount: 170)
        try capture.write(to: scratch.file("c.pcap"))
        let run = try ToolRun.finished("replay", scratch.file("c.pcap"), "--json")
        #expect(run.status == 0, "\(run.errors)")
        let json = try run.json()
        #expect((json["encrypted"] as? String)?.contains("10 bytes longer") == true)
        #expect(json["report"] is NSNull && json["gaps"] is NSNull)
        #expect((json["notHeard"] as? String)?.contains("encrypted") == true)
        let stream = try #require((json["streams"] as? [[String: Any]])?.first)
        #expect(stream["packets"] as? Int == 50 && stream["lost"] as? Int == 0 && stream["jitterMs"] as? Double == 0)
        let text = try ToolRun.finished("replay", scratch.file("c.pcap"), "--output", scratch.file("o.wav"))
        #expect(text.status == 1 && text.output.contains("PCMU, encrypted") && text.output.contains("jitter ms"))
        #expect(text.errors.contains("encrypted") && !text.output.contains("MOS"))
        #expect(!FileManager.default.fileExists(atPath: scratch.file("o.wav")))
        let page = try ToolRun.finished("report", scratch.file("c.pcap"), "--output", scratch.file("c.html"))
        #expect(page.status == 1 && page.errors.contains("encrypted"))
        #expect(!FileManager.default.fileExists(atPath: scratch.file("c.html")))
    }

    /// A folder of captures that other programs made.
    private static let corpora: String? = {
        let checkout = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        let path = checkout.appendingPathComponent("../shared/corpora").standardizedFileURL.path
        return FileManager.default.fileExists(atPath: path + "/fetched") ? path : nil
    }()

    @Test(
        .enabled(if: corpora != nil, "needs shared/corpora/fetched"),
        arguments: [
            ("fetched/sipp-pcap/g711a.pcap", "PCMA"), ("fetched/freeswitch/milliwatt.pcmu.rtp.pcap", "PCMU"),
            ("own/captures/opus-udp-dtmf4733.pcap", "opus"), ("own/captures/pcmu-udp-dtmf4733.pcap", "PCMU"),
            ("fetched/asterisk-testsuite/opus-2013785496.pcap", "opus"),
        ]
    )
    func `captures of other programs are heard`(path: String, codec: String) throws {
        let scratch = try Scratch()
        let run = try ToolRun.finished(
            "replay",
            "\(Self.corpora ?? "")/\(path)",
            "--output",
            scratch.file("o.wav"),
            "--json"
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(try run.json()["codec"] as? String == codec)
        #expect(try WAVFile.read(scratch.file("o.wav")).1.contains { abs(Int($0)) > 500 })
    }

    @Test(
        .enabled(if: corpora != nil, "needs shared/corpora/fetched"),
        arguments: [
            "fetched/asterisk-testsuite/crash-27382.pcap", "fetched/asterisk-testsuite/ssrc1.pcap",
            "fetched/asterisk-testsuite/16_bit_48khz_60_fec_rtp.pcapng", "fetched/rtpproxy/alice_srtp.pcap",
            "fetched/sipp-pcap/dtmf_2833_0.pcap", "own/captures/stun-turn.pcap", "own/captures/chat-imdn.pcap",
        ]
    )
    func `no capture is a crash`(path: String) throws {
        let run = try ToolRun.finished("replay", "\(Self.corpora ?? "")/\(path)")
        #expect(run.status == 0 || run.status == 1)
        #expect(run.status == 0 || run.errors.split(separator: "\n").count == 1, "\(run.errors)")
    }

    @Test(arguments: ["", "hello", "{", "{\"format\":\"media-engine trace\",\"version\":1,\"rows\":[[0", "\u{1}\u{2}"])
    func `a foreign file is one line that says what is wrong`(text: String) throws {
        let scratch = try Scratch()
        try Data(text.utf8).write(to: URL(fileURLWithPath: scratch.file("x")))
        let run = try ToolRun.finished("report", scratch.file("x"), "--output", scratch.file("x.html"))
        #expect(run.status == 1 && run.output.isEmpty)
        #expect(run.errors.contains(scratch.file("x")) && run.errors.split(separator: "\n").count == 1, "\(run.errors)")
        #expect(!FileManager.default.fileExists(atPath: scratch.file("x.html")))
    }
}
