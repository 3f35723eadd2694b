import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// GStreamer as the other side of secured sound: SRTP by keys that are given, and webrtcbin; a tone each way, scored.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct GStreamerRealTimeTests {
    // MARK: Keys that are given

    @Test(
        .enabled(if: GStreamerRun.hasSRTP, "needs srtpenc (Debian: gstreamer1.0-plugins-bad)"),
        arguments: thorough(suites, quick: [suites[0]])
    )
    func `what GStreamer sends is received by the key of the description`(suite: Protection) throws {
        let (scratch, port) = (try Scratch(), try FreePort.pair())
        let key = (0..<suite.keyByteCount).map { _ in UInt8.random(in: .min ... .max) }
        let description = suite.description(at: port, key: key, direction: "sendonly")
        try description.write(toFile: scratch.file("x.sdp"), atomically: true, encoding: .utf8)
        let receiver = try ToolRun([
            "receive", "--sdp", scratch.file("x.sdp"), "--output", scratch.file("heard.wav"), "--json",
        ])
        FreePort.waitUntilTaken(port)
        let sender = try GStreamerRun.sends(to: port, by: suite, key)
        FileWatch.wait(for: scratch.file("heard.wav"), byteCount: 2 * 8000)
        receiver.interrupt()
        sender.interrupt()
        #expect(receiver.wait() == 0, "\(receiver.errors)")
        sender.wait()
        let report = try receiver.json()
        let security = try #require(report["srtp"] as? [String: Any], "\(report)")
        #expect(security["suite"] as? String == suite.name, "\(security)")
        let refused = try #require(security["refused"] as? [String: Int])
        #expect(refused.values.allSatisfy { $0 == 0 }, "\(refused)")
        let leg = try #require((report["legs"] as? [[String: Any]])?.first)
        #expect((leg["received"] as? [String: Any])?["lost"] as? Int == 0, "\(leg)")
        let tone = try GStreamerRun.tone.tenths(of: scratch.file("heard.wav"))
        #expect(tone.count { $0 } >= 8, "\(tone) \(sender.errors)")
    }

    @Test(
        .enabled(if: GStreamerRun.hasSRTP, "needs srtpdec (Debian: gstreamer1.0-plugins-bad)"),
        arguments: thorough(suites, quick: [suites[0]])
    )
    func `GStreamer hears a call by the key of the answer`(suite: Protection) throws {
        let (scratch, port) = (try Scratch(), try FreePort.pair())
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 8000)
        let run = try SecuredRuns.answer(["--input", scratch.file("tone.wav"), "--codec", "PCMU", "--calls", "1"])
        let call = try PlainCall(to: run.address(), offering: suite, at: port)
        let player = try GStreamerRun.plays(from: port, by: suite, call.key, into: scratch)
        FileWatch.wait(for: scratch.file("heard.raw"), byteCount: 2 * 8000)
        try call.end()
        #expect(run.wait() == 0, "\(run.errors)")
        try expectHeard(scratch, by: player)
        let security = try #require(try run.jsonLines().last?["srtp"] as? [String: Any])
        #expect(security["suite"] as? String == suite.name && security["unsent"] as? Int == 0, "\(security)")
    }

    @Test(.enabled(if: GStreamerRun.hasSRTP, "needs srtpdec (Debian: gstreamer1.0-plugins-bad)"))
    func `GStreamer plays what is sent by the key of the description`() throws {
        let (scratch, port) = (try Scratch(), try FreePort.pair())
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 8000)
        let sender = try ToolRun([
            "send", "--to", "127.0.0.1:\(port)", "--codec", "PCMU", "--input", scratch.file("tone.wav"), "--srtp",
            "sdes", "--sdp", scratch.file("x.sdp"),
        ])
        FileWatch.wait(for: scratch.file("x.sdp"))
        let description = try String(contentsOfFile: scratch.file("x.sdp"), encoding: .utf8)
        let suite = try #require(Self.suites.first { description.contains(" \($0.name) ") }, "\(description)")
        let player = try GStreamerRun.plays(from: port, by: suite, suite.key(in: description), into: scratch)
        FileWatch.wait(for: scratch.file("heard.raw"), byteCount: 2 * 8000)
        sender.interrupt()
        #expect(sender.wait() == 0, "\(sender.errors)")
        try expectHeard(scratch, by: player)
    }

    /// Checks that `player` has heard our tone, and read our RTCP: a report of the sender first.
    private func expectHeard(_ scratch: Scratch, by player: ToolRun) throws {
        #expect(FileWatch.wait(for: scratch.file("heard.rtcp")), "\(player.errors)")
        player.interrupt()
        player.wait()
        let tone = try Tone.ours.tenths(of: GStreamerRun.samples(scratch.bytes("heard.raw")), rate: 8000)
        #expect(tone.count { $0 } >= 8, "\(tone) \(player.errors)")
        // RFC 3550, section 6.4.1: version 2, type 200, 6 words behind the first where there are no reports.
        #expect(try scratch.bytes("heard.rtcp").prefix(4) == [0x80, 200, 0, 6])
    }

    // MARK: Keys by DTLS

    @Test(
        .namespaces,
        .enabled(
            if: GStreamerRun.hasWebRTC,
            "needs webrtcbin (Debian: gstreamer1.0-plugins-bad, gstreamer1.0-nice, python3-gst-1.0 and its gir1.2)"
        ),
        arguments: thorough(WebRTCCase.all, quick: [WebRTCCase.all[0], WebRTCCase.all[3]])
    )
    func `webrtcbin hears our tone, and is heard`(call: WebRTCCase) async throws {
        let (network, scratch) = (try await NetworkNamespace.make(), try Scratch())
        // An address that a way may lead from: libnice leaves out 127.0.0.1.
        try network.ip("link add a0 type veth peer name b0; link set a0 up; link set b0 up")
        try network.ip("address add 192.0.2.1/24 dev a0; route add default via 192.0.2.9 dev a0")
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16_000)
        for name in ["offer", "answer"] { try #require(mkfifo(scratch.file(name), 0o600) == 0) }
        let descriptions = ["--offer", scratch.file("offer"), "--answer", scratch.file("answer")]
        let sound = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav")]
        let options = sound + ["--ice", call.ice, "--json"] + (call.isOfferedByUs ? ["--codec", call.codec] : [])
        let run = try ToolRun(
            network.command.dropFirst()
                + [ToolRun.path, "webrtc", call.isOfferedByUs ? "offer" : "answer"] + descriptions + options,
            program: network.command[0]
        )
        let other = try GStreamerRun.calls(call, in: network, scratch)
        #expect(run.printed(#""event":"secured""#), "\(run.output) \(run.errors) \(other.errors)")
        FileWatch.wait(for: scratch.file("heard.wav"), byteCount: 2 * call.rate * 3 / 2)
        FileWatch.wait(for: scratch.file("heard.raw"), byteCount: 2 * 16_000)
        run.interrupt()
        #expect(run.wait() == 0, "\(run.errors)")
        other.interrupt()
        other.wait()
        let report = try #require(run.jsonLines().last { $0["event"] as? String == "ended" }, "\(run.output)")
        let security = try #require(report["srtp"] as? [String: Any], "\(report)")
        #expect(security["keying"] as? String == "dtls" && security["unsent"] as? Int == 0, "\(security)")
        let refused = try #require(security["refused"] as? [String: Int])
        // Sound that is sent at once with the end of the handshake comes before that has been read.
        #expect(refused.allSatisfy { $0.key == "early" || $0.value == 0 }, "\(refused)")
        #expect(try GStreamerRun.tone.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10, "\(other.errors)")
        let heard = try GStreamerRun.samples(scratch.bytes("heard.raw"))
        #expect(Tone.ours.tenths(of: heard, rate: 16_000).count { $0 } >= 8, "\(other.errors)")
    }
}

// MARK: Cases

extension GStreamerRealTimeTests {
    /// What secures a stream, in the words of SDP (RFC 4568) and of GStreamer.
    struct Protection: CustomTestStringConvertible, Sendable {
        let name: String
        let cipher: String
        let tag: String
        /// The one of RTCP, which is never short (RFC 4568, section 6.2.2).
        let controlTag: String
        /// Bytes of the master key and of the master salt behind it.
        let keyByteCount: Int

        var testDescription: String { name }

        /// The description of PCMU that comes to a port.
        func description(at port: UInt16, key: [UInt8], direction: String) -> String {
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio \(port) RTP/SAVP 0\r\n"
                + "a=crypto:1 \(name) inline:\(Data(key).base64EncodedString())\r\na=\(direction)\r\n"
        }

        /// The key of the line that names this suite.
        func key(in description: String) throws -> [UInt8] {
            let line = try #require(description.split(separator: "\r\n").first { $0.contains(" \(name) inline:") })
            let text = try #require(line.split(separator: " ").last { $0.hasPrefix("inline:") }).dropFirst(7)
            return [UInt8](try #require(Data(base64Encoded: String(text))))
        }
    }

    /// The tag of AEAD is the cipher's (RFC 7714): GStreamer has no name for it.
    static let suites = [
        Protection(
            name: "AES_CM_128_HMAC_SHA1_80",
            cipher: "aes-128-icm",
            tag: "hmac-sha1-80",
            controlTag: "hmac-sha1-80",
            keyByteCount: 30
        ),
        Protection(
            name: "AES_CM_128_HMAC_SHA1_32",
            cipher: "aes-128-icm",
            tag: "hmac-sha1-32",
            controlTag: "hmac-sha1-80",
            keyByteCount: 30
        ),
        Protection(name: "AEAD_AES_128_GCM", cipher: "aes-128-gcm", tag: "null", controlTag: "null", keyByteCount: 28),
        Protection(name: "AEAD_AES_256_GCM", cipher: "aes-256-gcm", tag: "null", controlTag: "null", keyByteCount: 44),
    ]

    /// A call with webrtcbin.
    struct WebRTCCase: CustomTestStringConvertible, Sendable {
        let isOfferedByUs: Bool
        let codec: String
        /// Our side of ICE.
        let ice: String

        /// Samples a second of what we write down.
        var rate: Int { codec == "opus" ? 48_000 : 8000 }
        var testDescription: String { "\(codec), offered by \(isOfferedByUs ? "us" : "webrtcbin"), ICE \(ice)" }

        static let all = [
            WebRTCCase(isOfferedByUs: false, codec: "opus", ice: "lite"),
            WebRTCCase(isOfferedByUs: false, codec: "PCMU", ice: "full"),
            WebRTCCase(isOfferedByUs: true, codec: "opus", ice: "lite"),
            WebRTCCase(isOfferedByUs: true, codec: "PCMU", ice: "full"),
        ]
    }
}

// MARK: The other side

/// Runs of GStreamer, which goes on until it is interrupted.
private enum GStreamerRun {
    /// What it sends.
    static let tone = Tone(frequency: 550)
    static let hasSRTP = has("srtpenc") && has("srtpdec")
    static let hasWebRTC = ["webrtcbin", "nicesrc", "dtlssrtpenc", "opusenc"].allSatisfy(has) && hasPython

    /// Whether there is an element; `--exists` takes none whose version is below GStreamer's own, as libnice's is.
    private static func has(_ element: String) -> Bool { succeeds("gst-inspect-1.0", [element]) }

    private static var hasPython: Bool {
        succeeds("python3", ["-c", "import gi; gi.require_version('GstWebRTC', '1.0')"])
    }

    private static func succeeds(_ name: String, _ arguments: [String]) -> Bool {
        guard let program = Program.path(name), let run = try? ProgramRun(program, arguments) else { return false }
        return run.wait() == 0
    }

    /// Sends a tone to `port`, and RTCP to the next one.
    ///
    /// After half a second the sequence numbers begin again, and the rollover counter is 1 (RFC 3711, section 3.3.1).
    static func sends(to port: UInt16, by suite: GStreamerRealTimeTests.Protection, _ key: [UInt8]) throws -> ToolRun {
        let ciphers = [
            "key=\(hexadecimal(key))", "rtp-cipher=\(suite.cipher)", "rtp-auth=\(suite.tag)",
            "rtcp-cipher=\(suite.cipher)", "rtcp-auth=\(suite.controlTag)",
        ]
        return try launch(
            """
            rtpbin name=rtp srtpenc name=srtp \(ciphers.joined(separator: " "))
            audiotestsrc is-live=true freq=550 volume=0.3 samplesperbuffer=160 ! audio/x-raw,rate=8000,channels=1
            ! mulawenc ! rtppcmupay seqnum-offset=65510 ! rtp.send_rtp_sink_0
            rtp.send_rtp_src_0 ! srtp.rtp_sink_0 srtp.rtp_src_0 ! udpsink host=127.0.0.1 port=\(port)
            rtp.send_rtcp_src_0 ! srtp.rtcp_sink_0
            srtp.rtcp_src_0 ! udpsink host=127.0.0.1 port=\(port + 1) sync=false async=false
            """
        )
    }

    /// Plays what comes to `port` into heard.raw of `scratch`, and writes RTCP of the next port into heard.rtcp.
    ///
    /// One decoder for both may crash when their first packets come at once (GStreamer 1.22).
    static func plays(
        from port: UInt16,
        by suite: GStreamerRealTimeTests.Protection,
        _ key: [UInt8],
        into scratch: Scratch
    ) throws -> ToolRun {
        let secret = [
            "ssrc=(uint)\(try source(at: port))", "srtp-key=(buffer)\(hexadecimal(key))",
            "srtp-cipher=(string)\(suite.cipher)", "srtp-auth=(string)\(suite.tag)",
            "srtcp-cipher=(string)\(suite.cipher)", "srtcp-auth=(string)\(suite.controlTag)",
        ].joined(separator: ",")
        let sound = "application/x-srtp,media=audio,clock-rate=8000,encoding-name=PCMU,payload=0,\(secret)"
        let file = "buffer-mode=2 async=false location=\(scratch.path)"
        let run = try launch(
            """
            srtpdec name=sound udpsrc address=127.0.0.1 port=\(port) caps=\(sound) ! sound.rtp_sink
            sound.rtp_src ! rtppcmudepay ! mulawdec ! filesink \(file)/heard.raw
            srtpdec name=control udpsrc address=127.0.0.1 port=\(port + 1) caps=application/x-srtcp,\(secret)
            ! control.rtcp_sink control.rtcp_src ! filesink \(file)/heard.rtcp
            """
        )
        FreePort.waitUntilTaken(port + 1)
        return run
    }

    /// The SSRC of what comes to `port`, which is free again then: the decoder takes a key for that alone.
    private static func source(at port: UInt16) throws -> UInt32 {
        let socket = try UDPSocket(bind: .loopback(port: port))
        let packet = try socket.next()
        try #require(packet.count >= 12)
        return packet[8..<12].reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Calls by webrtcbin.
    static func calls(
        _ call: GStreamerRealTimeTests.WebRTCCase,
        in network: NetworkNamespace,
        _ scratch: Scratch
    ) throws -> ToolRun {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "GStreamer/webrtc.py")
        let files = [scratch.file("offer"), scratch.file("answer"), call.codec, scratch.file("heard.raw")]
        return try ToolRun(
            network.command.dropFirst()
                + [try #require(Program.path("python3")), script.path, call.isOfferedByUs ? "answer" : "offer"] + files,
            program: network.command[0]
        )
    }

    /// Starts a pipeline, in the words of the shell.
    private static func launch(_ pipeline: String) throws -> ToolRun {
        let words = pipeline.split { $0 == " " || $0 == "\n" }.map(String.init)
        return try ToolRun(["-q"] + words, program: try #require(Program.path("gst-launch-1.0")))
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { String(format: "%02x", $0) }.joined()
    }

    /// The samples of a file without a header.
    static func samples(_ bytes: [UInt8]) -> [Int16] {
        stride(from: 0, to: bytes.count - 1, by: 2).map { index in
            Int16(bitPattern: UInt16(bytes[index]) | UInt16(bytes[index + 1]) << 8)
        }
    }
}

/// A call by SIP that only listens: GStreamer, which has no SIP, plays it.
private struct PlainCall {
    private let socket: UDPSocket
    private let own: String
    private let host: String
    private let address: SocketAddress
    private let to: String
    /// What the other side sends by.
    let key: [UInt8]

    /// Calls the tool at `host`, and acknowledges its answer.
    init(to host: String, offering suite: GStreamerRealTimeTests.Protection, at port: UInt16) throws {
        socket = try UDPSocket(bind: .loopback(port: 0))
        own = "127.0.0.1:\(socket.localAddress.port)"
        self.host = host
        address = .loopback(port: try #require(host.split(separator: ":").last.flatMap { UInt16($0) }))
        let offered = (0..<suite.keyByteCount).map { _ in UInt8.random(in: .min ... .max) }
        let body = suite.description(at: port, key: offered, direction: "recvonly")
        let invitation = Self.request("INVITE 1", host, from: own, to: "<sip:bob@\(host)>", body)
        socket.send(invitation.span, to: address, at: .zero)
        let answer = try Self.answer(on: socket)
        let line = try #require(answer.split(separator: "\r\n").first { $0.hasPrefix("To: ") }, "\(answer)")
        to = String(line.dropFirst(4))
        key = try suite.key(in: answer)
        socket.send(Self.request("ACK 1", host, from: own, to: to).span, to: address, at: .zero)
    }

    /// Hangs up.
    func end() throws {
        socket.send(Self.request("BYE 2", host, from: own, to: to).span, to: address, at: .zero)
        _ = try Self.answer(on: socket)
    }

    /// The next answer that is final, and good.
    private static func answer(on socket: UDPSocket) throws -> String {
        while true {
            let text = String(decoding: try socket.next(), as: UTF8.self)
            if text.hasPrefix("SIP/2.0 1") { continue }
            try #require(text.hasPrefix("SIP/2.0 200 "), "\(text)")
            return text
        }
    }

    /// A request; `command` is its method and its number.
    private static func request(
        _ command: String,
        _ host: String,
        from own: String,
        to: String,
        _ body: String = ""
    ) -> [UInt8] {
        let (method, number) = (command.dropLast(2), command.suffix(1))
        return Array(
            """
            \(method) sip:bob@\(host) SIP/2.0
            Via: SIP/2.0/UDP \(own);branch=z9hG4bK\(method)\(number)
            Max-Forwards: 70
            From: <sip:gstreamer@\(own)>;tag=1
            To: \(to)
            Call-ID: \(own)
            CSeq: \(number) \(method)
            Contact: <sip:gstreamer@\(own)>
            Content-Type: application/sdp
            Content-Length: \(body.utf8.count)


            """.replacing("\n", with: "\r\n").utf8
        ) + Array(body.utf8)
    }
}

extension UDPSocket {
    /// The next datagram that comes.
    fileprivate func next() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 4096)
        var count = 0
        let hasCome = Polling.wait {
            var span = bytes.mutableSpan
            guard let datagram = receive(into: &span, at: .zero) else { return false }
            count = datagram.byteCount
            return true
        }
        try #require(hasCome)
        return Array(bytes.prefix(count))
    }
}
