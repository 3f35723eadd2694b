import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// The loopback call, over a simulated network and over sockets.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct LoopbackCommandRealTimeTests {
    @Test func `the report has the keys that scripts rely on`() throws {
        let run = try ToolRun.finished("loopback", "--virtual", "--seconds", "2", "--dtmf", "1#", "--json")
        #expect(run.status == 0 && run.errors.isEmpty)
        let json = try run.json()
        #expect(json["codec"] as? String == "opus" && json["mode"] as? String == "virtual")
        #expect(json["seconds"] as? Double == 2)
        let ticks = try #require(json["ticks"] as? [String: Any])
        #expect(Set(ticks.keys) == ["count", "late", "p99LatenessMs", "lostEvents"] && ticks["count"] as? Int == 200)
        let legs = try #require(json["legs"] as? [[String: Any]])
        #expect(legs.map { $0["name"] as? String } == ["A", "B"])
        #expect(legs[1]["dtmf"] as? String == "1#")
        for leg in legs {
            let sent = try #require(leg["sent"] as? [String: Any])
            #expect(sent["packets"] is Int && sent["bytes"] is Int)
            let received = try #require(leg["received"] as? [String: Any])
            for key in [
                "packets", "lost", "late", "duplicate", "reordered", "concealedMs", "fecRecovered", "redundant",
                "codecChanges", "comfortNoise", "discarded", "rejected", "socketDrops",
            ] {
                #expect(received[key] is NSNumber, "\(key)")
            }
            #expect(
                Set(try #require(received["refused"] as? [String: Int]).keys) == [
                    "otherAddress", "unnamedHost", "formerSource", "otherControl", "otherProtocol",
                ]
            )
            for key in ["jitterMs", "playoutDelayMs", "mouthToEarMs"] { #expect(leg[key] is NSNumber, "\(key)") }
            let protection = try #require(leg["lossProtection"] as? [String: Any])
            #expect(Set(protection.keys) == ["mode", "reason", "changes"] && protection["mode"] as? String == "none")
            #expect(
                Set(try #require(leg["rtcp"] as? [String: Any]).keys) == ["roundTripMs", "fractionLost", "lossRuns"]
            )
            let quality = try #require(leg["quality"] as? [String: Any])
            for key in ["rFactor", "mosListening", "burstLossPercent", "gapLossPercent"] {
                #expect(quality[key] is NSNumber, "\(key)")
            }
            for key in ["mosConversational", "oneWayDelayMs", "remote"] { #expect(quality[key] != nil, "\(key)") }
        }
    }

    @Test(
        arguments: thorough(
            [
                (["--red"], "red"), ([], "fec"), (["--red", "--fec", "off"], "none"),
                (["--red", "--fec", "on"], "fec"),
            ],
            quick: [(["--red"], "red")]
        )
    )
    func `heavy loss is answered by RED only where it was offered`(options: [String], mode: String) throws {
        let network = ["--virtual", "--seconds", "25", "--loss", "30", "--burst", "2", "--seed", "3", "--json"]
        let run = try ToolRun(["loopback"] + network + options)
        run.wait()
        let json = try run.json()
        let legs = try #require(json["legs"] as? [[String: Any]])
        for leg in legs {
            let protection = try #require(leg["lossProtection"] as? [String: Any])
            #expect(protection["mode"] as? String == mode)
            #expect((protection["reason"] as? String)?.isEmpty == false)
            let received = try #require(leg["received"] as? [String: Any])
            #expect(((received["redundant"] as? Int ?? 0) > 50) == (mode == "red"))
        }
    }

    @Test func `both sides of B are recorded in one file`() throws {
        let scratch = try Scratch()
        let format = AudioFormat(sampleRate: 8000)
        try WAVFile.write(scratch.file("in.wav"), format: format, samples: [Int16](repeating: 8000, count: 16_000))
        let paths = ["--input", scratch.file("in.wav"), "--record", scratch.file("both.wav")]
        let run = try ToolRun(["loopback", "--virtual", "--codec", "PCMU", "--seconds", "2"] + paths)
        run.wait()
        #expect(run.status == 0 && run.errors.isEmpty)
        let (recorded, samples) = try WAVFile.read(scratch.file("both.wav"))
        #expect(recorded == AudioFormat(sampleRate: 8000, channelCount: 2) && samples.count == 32_000)
        // B says the file from its first sample on, and hears A a little later.
        #expect(samples[0] == 8000 && samples[1] == 0)
        #expect(samples[31_000] == 8000 && (7500...8500).contains(samples[31_001]))
    }

    @Test func `the metrics go to a file, beside the report`() throws {
        let scratch = try Scratch()
        let path = scratch.file("call.prom")
        let run = try ToolRun.finished("loopback", "--virtual", "--seconds", "8", "--loss", "5", "--metrics", path)
        #expect(run.status == 0 && run.output.contains("R factor, estimated"))
        let text = String(decoding: try scratch.bytes("call.prom"), as: UTF8.self)
        #expect(text.hasSuffix("\n") && !text.contains("# EOF"))
        #expect(text.contains("# TYPE media_lost_packets_total counter\n"))
        #expect(text.contains("# TYPE media_call_info gauge\nmedia_call_info{leg=\"A\",codec=\"opus\","))
        #expect(text.contains("media_mos_listening{leg=\"B\",codec=\"opus\"} "))
        let refused = try ToolRun.finished(
            "loopback",
            "--virtual",
            "--seconds",
            "1",
            "--metrics",
            scratch.file("none/call.prom")
        )
        #expect(refused.status == 1 && refused.errors.contains("cannot be written"))
    }

    @Test func `the same seed gives the same files and report, byte for byte`() throws {
        let scratch = try Scratch()
        let network = [
            "--loss", "8", "--burst", "2", "--delay", "20", "--jitter", "40", "--reorder", "3", "--duplicate", "3",
        ]
        // They know no real time: beside each other.
        let runs = try [("7", "a"), ("7", "b"), ("8", "c")].map { seed, name in
            let files = ["--output", scratch.file("\(name).wav"), "--pcap", scratch.file("\(name).pcap")]
            return try ToolRun(
                ["loopback", "--virtual", "--seconds", "4", "--seed", seed, "--dtmf", "12", "--json"] + network + files
            )
        }
        for run in runs { #expect(run.wait() == 0, "\(run.errors)") }
        #expect(runs[1].output == runs[0].output)
        #expect(try scratch.bytes("a.wav") == scratch.bytes("b.wav"))
        #expect(try scratch.bytes("a.pcap") == scratch.bytes("b.pcap"))
        #expect(runs[2].output != runs[0].output)
        #expect(try scratch.bytes("c.wav") != scratch.bytes("a.wav"))
    }

    @Test(arguments: thorough(["PCMU", "opus", "G722"], quick: ["PCMU"]))
    func `the output shows the delay from mouth to ear`(codec: String) throws {
        let scratch = try Scratch()
        let rate = codec == "opus" ? 48000 : codec == "G722" ? 16000 : 8000
        let format = AudioFormat(sampleRate: rate)
        let spoken = TestSignal.samples(2, format)
        try WAVFile.write(scratch.file("in.wav"), format: format, samples: spoken)
        let run = try ToolRun.finished(
            "loopback",
            "--virtual",
            "--codec",
            codec,
            "--input",
            scratch.file("in.wav"),
            "--output",
            scratch.file("out.wav"),
            "--delay",
            "30",
            "--json"
        )
        let legs = try #require(try run.json()["legs"] as? [[String: Any]])
        let told = try #require(legs[1]["mouthToEarMs"] as? Double)
        let (heardFormat, heard) = try WAVFile.read(scratch.file("out.wav"))
        #expect(heardFormat == format)
        #expect(heard.count > spoken.count + Int(told) * rate / 1000)
        func correlation(_ lag: Int) -> Int {
            var sum = 0
            // The second chirp: by then the delay has settled.
            for index in stride(from: rate, to: rate * 5 / 4, by: 3) {
                sum += Int(spoken[index]) * Int(heard[index + lag])
            }
            return sum
        }
        let around: Range<Int> = (Int(told - 20) * rate / 1000)..<(Int(told + 20) * rate / 1000)
        let found = around.max { correlation($0) < correlation($1) } ?? 0
        #expect(abs(Double(found) * 1000 / Double(rate) - told) <= 1.5)
        #expect(heard[..<(found - rate / 100)].allSatisfy { abs($0) < 20 })
    }

    @Test func `a call over sockets works`() throws {
        let scratch = try Scratch()
        let run = try ToolRun.finished(
            "loopback",
            "--seconds",
            "1.5",
            "--dtmf",
            "42",
            "--loss",
            "5",
            "--output",
            scratch.file("o.wav"),
            "--json"
        )
        #expect(run.status == 0)
        let json = try run.json()
        #expect(json["mode"] as? String == "udp")
        let legs = try #require(json["legs"] as? [[String: Any]])
        #expect(legs[1]["dtmf"] as? String == "42")
        // 75 packets where no tick is late.
        #expect(try #require((legs[0]["sent"] as? [String: Any])?["packets"] as? Int) >= 30)
        let ticks = try #require((json["ticks"] as? [String: Any])?["count"] as? Int)
        let frames = try WAVFile.read(scratch.file("o.wav")).1.count
        #expect(abs(frames - ticks * 480) < 4800, "\(frames) frames of \(ticks) ticks")
    }

    @Test func `a relay stands between A and B on one way only`() throws {
        let (input, output) = (try FreePort.pair(), try FreePort.pair())
        let relay = try Relay(from: input, to: output, droppingEvery: 10)
        defer { relay.stop() }
        let run = try ToolRun.finished(
            "loopback",
            "--codec",
            "PCMU",
            "--relay",
            "\(input):\(output)",
            "--seconds",
            "2",
            "--json"
        )
        #expect(run.status == 0)
        let legs = try #require(try run.json()["legs"] as? [[String: Any]])
        let (a, b) = (
            try #require(legs[0]["received"] as? [String: Any]), try #require(legs[1]["received"] as? [String: Any])
        )
        // What was dropped last leaves no gap, and RTCP is among it; a busy machine sends less, and all of it comes.
        let lost = try #require(b["lost"] as? Int)
        #expect(relay.passedCount > 20 && abs(lost - relay.droppedCount) <= 2, "\(lost) of \(relay.droppedCount)")
        let sent = try #require((legs[1]["sent"] as? [String: Any])?["packets"] as? Int)
        #expect(a["lost"] as? Int == 0 && abs((a["packets"] as? Int ?? 0) - sent) <= 2)
    }
}

/// Passes datagrams from one port on 127.0.0.1 to another, but every so many.
private final class Relay: @unchecked Sendable {
    private let lock = NSLock()
    private let descriptor: CInt
    private let input: UInt16
    private var isStopping = false
    private var counts = (passed: 0, dropped: 0)

    init(from input: UInt16, to output: UInt16, droppingEvery interval: Int) throws {
        self.input = input
        descriptor = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
        let isBound = Self.withAddress(input) { bind(descriptor, $0, $1) == 0 }
        try #require(isBound)
        Thread.detachNewThread { [self] in
            var buffer = [UInt8](repeating: 0, count: 2048)
            var seen = 0
            while case let count = recv(descriptor, &buffer, buffer.count, 0), !lock.withLock({ isStopping }) {
                seen += 1
                let isPassed = seen % interval != 0
                if isPassed { Self.withAddress(output) { _ = sendto(descriptor, buffer, count, 0, $0, $1) } }
                lock.withLock { if isPassed { counts.passed += 1 } else { counts.dropped += 1 } }
            }
            close(descriptor)
        }
    }

    var passedCount: Int { lock.withLock { counts.passed } }
    var droppedCount: Int { lock.withLock { counts.dropped } }

    /// Ends it, by a datagram of its own.
    func stop() {
        lock.withLock { isStopping = true }
        Self.withAddress(input) { _ = sendto(descriptor, [0], 1, 0, $0, $1) }
    }

    private static func withAddress<Result>(
        _ port: UInt16,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
