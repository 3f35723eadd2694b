import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// RTP to and from the tool itself, FFmpeg and GStreamer, on 127.0.0.1.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SendReceiveRealTimeTests {
    private func leg(_ run: ToolRun) throws -> [String: Any] {
        try #require((try run.json()["legs"] as? [[String: Any]])?.first)
    }

    private func received(_ run: ToolRun) throws -> [String: Any] {
        try #require(try leg(run)["received"] as? [String: Any])
    }

    /// Seconds of each chirp of the test signal that are there.
    private func loudSeconds(_ path: String) throws -> Double {
        let (format, samples) = try WAVFile.read(path)
        let block = format.sampleRate / 100 * format.channelCount
        let loud = stride(from: 0, to: samples.count, by: block).filter { start in
            samples[start..<min(start + block, samples.count)].contains { abs(Int($0)) > 1000 }
        }
        return Double(loud.count) / 100
    }

    @Test(arguments: thorough(["opus", "PCMU", "L16/44100/2"], quick: ["opus"]))
    func `what is sent is received, to the frame`(codec: String)
        throws
    {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let receiver = try ToolRun(
            [
                "receive", "--port", "\(port)", "--codec", codec, "--playout-delay", "60", "--output",
                scratch.file("heard.wav"), "--json",
            ]
        )
        FreePort.waitUntilTaken(port)
        let sender = try ToolRun.finished(
            "send",
            "--to",
            "localhost:\(port)",
            "--codec",
            codec,
            "--seconds",
            "1",
            "--json"
        )
        #expect(sender.status == 0)
        #expect(receiver.wait() == 0)
        let sent = try #require(try leg(sender)["sent"] as? [String: Any])
        let packets = try #require(sent["packets"] as? Int)
        #expect(try received(receiver)["packets"] as? Int == packets)
        let (format, samples) = try WAVFile.read(scratch.file("heard.wav"))
        #expect(format.sampleRate == (codec == "opus" ? 48000 : codec == "PCMU" ? 8000 : 44100))
        let perPacket = codec.hasPrefix("L16") ? 100 : 50
        #expect(samples.count == packets * format.sampleRate * format.channelCount / perPacket)
    }

    @Test(arguments: thorough([[], ["--red"]], quick: [["--red"]]))
    func `keys and a described stream are received`(options: [String]) throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let words = ["send", "--to", "127.0.0.1:\(port)", "--codec", "PCMA", "--payload-type", "97"] + options
        // The description first; nobody listens yet.
        #expect(try ToolRun(words + ["--seconds", "0.1", "--sdp", scratch.file("x.sdp")]).wait() == 0)
        let described = try String(contentsOfFile: scratch.file("x.sdp"), encoding: .utf8)
        #expect(described.contains("a=fmtp:121 97/97") == !options.isEmpty)
        let receiver = try ToolRun(["receive", "--sdp", scratch.file("x.sdp"), "--device", "null", "--json"])
        FreePort.waitUntilTaken(port)
        #expect(try ToolRun(words + ["--dtmf", "19*", "--seconds", "2"]).wait() == 0)
        // The sender has said that it leaves: silence alone would last for 2 s.
        #expect(receiver.ends(within: .seconds(1)))
        #expect(receiver.wait() == 0)
        #expect(try receiver.json()["codec"] as? String == "PCMA")
        #expect(try leg(receiver)["dtmf"] as? String == "19*")
        #expect(try (leg(receiver)["received"] as? [String: Any])?["rejected"] as? Int == 0)
    }

    @Test(arguments: [101, 121])
    func `a description has a number of its own for each, whatever the codec's is, and the sound has them, too`(
        payloadType: Int
    ) throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let words = [
            "send", "--to", "127.0.0.1:\(port)", "--codec", "PCMU", "--payload-type", "\(payloadType)", "--red",
        ]
        // The description first; nobody listens yet.
        #expect(try ToolRun(words + ["--seconds", "0.1", "--sdp", scratch.file("x.sdp")]).wait() == 0)
        let receiver = try ToolRun(["receive", "--sdp", scratch.file("x.sdp"), "--device", "null", "--json"])
        FreePort.waitUntilTaken(port)
        let sender = try ToolRun(words + ["--dtmf", "7", "--seconds", "1"])
        #expect(sender.wait() == 0 && receiver.wait() == 0, "\(sender.errors)\(receiver.errors)")
        let (events, redundant) = (payloadType == 101 ? 102 : 101, payloadType == 121 ? 122 : 121)
        let described = try String(contentsOfFile: scratch.file("x.sdp"), encoding: .utf8)
        #expect(described.contains("RTP/AVP \(payloadType) \(events) \(redundant)\r\n"), "\(described)")
        #expect(try leg(receiver)["dtmf"] as? String == "7")
        #expect(try received(receiver)["rejected"] as? Int == 0)
    }

    @Test func `a stream to the address of many is described by it`() throws {
        let scratch = try Scratch()
        let sender = try ToolRun.finished(
            "send",
            "--to",
            "239.255.7.7:\(try FreePort.pair())",
            "--seconds",
            "0.2",
            "--sdp",
            scratch.file("x.sdp")
        )
        #expect(sender.status == 0, "\(sender.errors)")
        let described = try String(contentsOfFile: scratch.file("x.sdp"), encoding: .utf8)
        #expect(described.contains("c=IN IP4 239.255.7.7"), "\(described)")
    }

    @Test func `a description is taken as an offer: the first codec that is here is heard`() throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        func describe(_ formats: String, _ lines: String) throws -> String {
            let text =
                "v=0\r\no=- 1 1 IN IP4 door.example\r\ns=-\r\nc=IN IP4 door.example\r\nt=0 0\r\n"
                + "m=audio \(port) RTP/AVP \(formats)\r\n\(lines)"
            try Data(text.utf8).write(to: URL(fileURLWithPath: scratch.file("x.sdp")))
            return scratch.file("x.sdp")
        }
        let both = try describe("98 8", "a=rtpmap:98 EVS/16000\r\na=inactive\r\n")
        let receiver = try ToolRun(["receive", "--sdp", both, "--device", "null", "--json"])
        FreePort.waitUntilTaken(port)
        let sent = try ToolRun.finished("send", "--to", "127.0.0.1:\(port)", "--codec", "PCMA", "--seconds", "0.5")
        #expect(sent.status == 0)
        #expect(receiver.wait() == 0, "\(receiver.errors)")
        #expect(try receiver.json()["codec"] as? String == "PCMA")
        #expect(try #require(try received(receiver)["packets"] as? Int) >= 20)
        let asked = try ToolRun.finished("receive", "--sdp", both, "--codec", "opus", "--device", "null")
        #expect(asked.status == 1 && asked.errors.contains("has no codec opus"), "\(asked.errors)")
        let foreign = try describe("98", "a=rtpmap:98 EVS/16000\r\n")
        let refused = try ToolRun.finished("receive", "--sdp", foreign, "--seconds", "0.1", "--device", "null")
        #expect(refused.status == 1 && refused.errors.contains("EVS/16000 as 98"), "\(refused.errors)")
    }

    @Test func `junk, a foreign source and an unknown payload type are counted`() throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let receiver = try ToolRun(
            // Held back for longer than all of it lasts, so that a sender who oversleeps makes no gap.
            [
                "receive", "--port", "\(port)", "--codec", "PCMU", "--playout-delay", "1000", "--output",
                scratch.file("h.wav"), "--json",
            ]
        )
        FreePort.waitUntilTaken(port)
        let socket = try UDPSocket(bind: .loopback(port: 0))
        func packet(_ sequence: Int, type: UInt8 = 0, ssrc: UInt8 = 1) -> [UInt8] {
            let timestamp = sequence * 160
            let header: [UInt8] = [
                0x80, type, UInt8(sequence >> 8), UInt8(sequence & 0xFF), 0, 0, UInt8(timestamp >> 8 & 0xFF),
                UInt8(timestamp & 0xFF), 0, 0, 0, ssrc,
            ]
            return header + [UInt8](repeating: 0x7F, count: 160)
        }
        let foreign = try UDPSocket(bind: .loopback(port: 0))
        func send(_ bytes: [UInt8], from sender: UDPSocket) {
            sender.send(bytes.span, to: .loopback(port: port), at: .zero)
        }
        func send(_ bytes: [UInt8]) { send(bytes, from: socket) }
        for sequence in 1...20 {
            send(packet(sequence))
            pass(.milliseconds(20))
            if sequence == 5 { for length in 0..<12 { send(Array(packet(6).prefix(length))) } }
            if sequence == 7 { send(packet(41, ssrc: 9), from: foreign) }
            if sequence == 8 { send([UInt8](repeating: 0xFF, count: 1400)) }
        }
        // It came, and is not lost, though nobody knows what it is.
        send(packet(21, type: 96))
        #expect(receiver.wait() == 0)
        let counters = try received(receiver)
        #expect(counters["packets"] as? Int == 21 && counters["lost"] as? Int == 0)
        // 12 pieces, the long one, the foreign one, and the one of no known type.
        #expect(try #require(counters["rejected"] as? Int) >= 15)
        #expect(try #require(counters["refused"] as? [String: Int])["otherAddress"] == 1)
        #expect(try WAVFile.read(scratch.file("h.wav")).1.count == 20 * 160)
    }

    @Test func `a receiver that stood still for longer than it waits reads what came meanwhile`() throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let receiver = try ToolRun(
            ["receive", "--port", "\(port)", "--codec", "PCMU", "--output", scratch.file("h.wav"), "--json"]
        )
        FreePort.waitUntilTaken(port)
        let sender = try ToolRun(["send", "--to", "127.0.0.1:\(port)", "--codec", "PCMU", "--seconds", "4", "--json"])
        FileWatch.wait(for: scratch.file("h.wav"), byteCount: 4000)
        receiver.signal(SIGSTOP)
        // It waits for 2 s.
        pass(.milliseconds(2500))
        receiver.signal(SIGCONT)
        #expect(sender.wait() == 0 && receiver.wait() == 0)
        let sent = try #require(try leg(sender)["sent"] as? [String: Any])
        let packets = try #require(sent["packets"] as? Int)
        #expect(try received(receiver)["packets"] as? Int == packets)
    }

    @Test func `keys give way to the number of redundant audio`() throws {
        let port = try FreePort.pair()
        let scratch = try Scratch()
        let run = try ToolRun.finished(
            "receive",
            "--port",
            "\(port)",
            "--red-payload-type",
            "101",
            "--seconds",
            "0.1",
            "--output",
            scratch.file("o.wav")
        )
        #expect(run.status == 0, "\(run.errors)")
    }

    @Test func `that nobody listens is told, and that nothing came`() throws {
        let port = try FreePort.pair()
        let run = try ToolRun.finished("send", "--to", "127.0.0.1:\(port)", "--seconds", "1.5", "--json")
        #expect(run.status == 0 && run.errors.contains("did not arrive"), "\(run.errors)")
        let sent = try #require(try leg(run)["sent"] as? [String: Any])
        #expect(try #require(sent["unreachable"] as? Int) > 5)
        #expect(try #require(sent["packets"] as? Int) >= 25)
        let waiting = try ToolRun.finished("receive", "--port", "\(port)", "--seconds", "0.2", "--device", "null")
        #expect(waiting.status == 0 && waiting.errors.contains("nothing came"), "\(waiting.errors)")
    }

    @Test func `a port in use is told`() throws {
        let port = try FreePort.pair()
        let socket = try UDPSocket(bind: SocketAddress(ipv4: 0, port: port))
        let run = try ToolRun.finished("receive", "--port", "\(port)", "--device", "null")
        #expect(run.status == 1 && run.errors.contains("\(port)") && run.errors.contains("in use"))
        _ = socket.localAddress
    }

    @Test(arguments: ["receive", "record", "send", "loopback"])
    func `Ctrl-C ends cleanly with a report and valid files`(command: String) throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let file = scratch.file("x.wav")
        let arguments = [
            "receive": ["receive", "--port", "\(port)", "--output", file],
            "record": ["record", file, "--seconds", "60", "--device", "null"],
            "send": ["send", "--to", "127.0.0.1:\(port)", "--seconds", "60"],
            "loopback": ["loopback", "--seconds", "60", "--output", file],
        ]
        let listener = command == "send" ? try UDPSocket(bind: .loopback(port: port)) : nil
        let run = try ToolRun(try #require(arguments[command]) + ["--json"])
        var sender: ToolRun?
        if command == "receive" {
            FreePort.waitUntilTaken(port)
            sender = try ToolRun(["send", "--to", "127.0.0.1:\(port)", "--seconds", "60"])
        }
        if let listener {
            var bytes = [UInt8](repeating: 0, count: 2048)
            // At the first packet the report's `seconds` are still 0.
            var count = 0
            let hasSent = Polling.wait {
                var span = bytes.mutableSpan
                if listener.receive(into: &span, at: .zero) != nil { count += 1 }
                return count == 10
            }
            #expect(hasSent)
        } else {
            FileWatch.wait(for: file, byteCount: 20_000)
        }
        #expect(run.isRunning)
        run.interrupt()
        #expect(run.wait() == 0)
        #expect(try #require(try run.json()["seconds"] as? Double) > 0)
        if command != "send" { #expect(try WAVFile.read(file).1.count > 4800) }
        sender?.interrupt()
        sender?.wait()
    }

    @Test func `a terminal that is closed, which is told twice, leaves whole files`() throws {
        let scratch = try Scratch()
        let files = ["--output", scratch.file("x.wav"), "--trace", scratch.file("x.json")]
        let run = try ToolRun(["loopback", "--seconds", "60", "--json"] + files)
        FileWatch.wait(for: scratch.file("x.wav"), byteCount: 20_000)
        // More than two: those that come at once are one.
        while run.isRunning {
            run.signal(SIGHUP)
            pass(.milliseconds(1))
        }
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try WAVFile.read(scratch.file("x.wav")).1.count > 4800)
        let trace = try Data(contentsOf: URL(fileURLWithPath: scratch.file("x.json")))
        #expect(try JSONSerialization.jsonObject(with: trace) is [String: Any])
    }

    // MARK: Others

    @Test(
        .enabled(if: Program.path("ffmpeg") != nil, "needs ffmpeg"),
        arguments: thorough(["opus", "PCMU"], quick: ["opus"])
    )
    func `ffmpeg plays what is sent`(codec: String) throws {
        let scratch = try Scratch()
        let errors = try FFmpegRun.plays(["--codec", codec], into: scratch.file("heard.wav"))
        #expect(try loudSeconds(scratch.file("heard.wav")) > 0.4, "\(errors)")
    }

    @Test(
        .enabled(if: Program.path("ffmpeg") != nil, "needs ffmpeg"),
        arguments: thorough(["libopus", "pcm_mulaw"], quick: ["libopus"])
    )
    func `what ffmpeg sends is received by its description`(encoder: String) throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let rate = encoder == "libopus" ? 48000 : 8000
        try WAVFile.write(
            scratch.file("in.wav"),
            format: AudioFormat(sampleRate: rate),
            samples: TestSignal.samples(2, AudioFormat(sampleRate: rate))
        )
        // The description first, without sending: ffmpeg writes it when it opens its output.
        let ffmpeg = try #require(Program.path("ffmpeg"))
        func arguments(_ seconds: String, _ sdp: String) -> [String] {
            [
                "-loglevel", "error", "-re", "-i", scratch.file("in.wav"), "-t", seconds, "-c:a", encoder, "-f", "rtp",
                "-sdp_file", sdp, "rtp://127.0.0.1:\(port)",
            ]
        }
        try ToolRun(arguments("0.1", scratch.file("x.sdp")), program: ffmpeg).wait()
        let receiver = try ToolRun([
            "receive", "--sdp", scratch.file("x.sdp"), "--output", scratch.file("h.wav"), "--json",
        ])
        FreePort.waitUntilTaken(port)
        try ToolRun(arguments("2", scratch.file("y.sdp")), program: ffmpeg).wait()
        #expect(receiver.wait() == 0, "\(receiver.errors)")
        let counters = try received(receiver)
        #expect(counters["lost"] as? Int == 0 && (counters["packets"] as? Int ?? 0) > 10)
        #expect(try WAVFile.read(scratch.file("h.wav")).0.sampleRate == rate)
        #expect(try loudSeconds(scratch.file("h.wav")) > 0.8)
    }

    @Test(.enabled(if: Program.path("gst-launch-1.0") != nil, "needs GStreamer"))
    func `GStreamer plays what is sent`() throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let player = try ToolRun(
            [
                "-e", "udpsrc", "port=\(port)", "caps=application/x-rtp,media=audio,clock-rate=8000,encoding-name=PCMU",
                "!", "rtppcmudepay", "!", "mulawdec", "!", "wavenc", "!", "filesink",
                "location=\(scratch.file("heard.wav"))",
            ],
            program: try #require(Program.path("gst-launch-1.0"))
        )
        FreePort.waitUntilTaken(port)
        _ = try ToolRun.finished("send", "--to", "127.0.0.1:\(port)", "--codec", "PCMU", "--seconds", "1.5")
        player.interrupt()
        player.wait()
        #expect(try loudSeconds(scratch.file("heard.wav")) > 0.4, "\(player.errors)")
    }
}
