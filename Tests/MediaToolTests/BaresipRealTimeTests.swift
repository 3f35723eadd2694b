import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// Calls between the tool and baresip on 127.0.0.1: tones and keys both ways, hold, busy, transfer.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: BaresipRun.program != nil, "needs baresip (Debian: baresip-core)")
)
struct BaresipRealTimeTests {
    // MARK: baresip is called

    @Test(arguments: ["opus", "PCMU"])
    func `baresip answers: both hear the other's tone, and baresip our keys`(codec: String) throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun(codec: codec)
        let run = try call(baresip, scratch, ["--dtmf", "159#", "--seconds", "2.5"])
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try events(run) == ["calling", "connected"])
        let connected = try #require(try run.jsonLines().first { $0["event"] as? String == "connected" })
        #expect(connected["codec"] as? String == codec)
        let report = try expectEnd(run, by: "us")
        #expect(try receivedPackets(report) > 50)
        #expect(baresip.prints("terminated (duration"), "\(baresip.errors)")
        #expect(baresip.keys == "159#", "\(baresip.output)")
        #expect(try Tone.baresip.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        // Keys by RTP take the place of the tone.
        #expect(try Tone.ours.tenths(of: baresip.endedRecording()).count { $0 } >= 5)
    }

    @Test func `baresip is held and resumed: its tone stops, and comes back`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun()
        let run = try call(baresip, scratch, ["--hold-after", "0.8", "--resume-after", "1.8", "--seconds", "3"])
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try events(run) == ["calling", "connected", "held", "resumed"])
        #expect(try run.jsonLines().compactMap { $0["by"] as? String } == ["us", "us"])
        try expectEnd(run, by: "us")
        let heard = try Tone.baresip.tenths(of: scratch.file("heard.wav"))
        // Of 0.8 s before, 1 s while it was held, and 1.2 s after.
        #expect(heard.prefix(10).count { $0 } >= 3, "\(heard)")
        #expect(heard.count { !$0 } >= 5, "\(heard)")
        #expect(heard.suffix(10).count { $0 } >= 3, "\(heard)")
    }

    @Test func `baresip takes one call: the second is told that it is busy`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun()
        let first = try call(baresip, scratch)
        try #require(first.printed(#""event":"connected""#), "\(first.errors)")
        let second = try ToolRun.finished("sip", "call", baresip.uri, "--seconds", "1", "--json")
        #expect(second.status == 1)
        #expect(try second.json()["status"] as? String == "busy")
        #expect(try second.json()["code"] as? Int == 486)
        #expect(second.errors.contains("486"), "\(second.errors)")
        first.interrupt()
        #expect(first.wait() == 0, "\(first.errors)")
        try expectEnd(first, by: "us")
    }

    @Test func `a call that rings at baresip is taken back`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun(answersByItself: false)
        let run = try call(baresip, scratch)
        try #require(run.printed(#""code":180"#), "\(run.errors)")
        run.interrupt()
        #expect(run.wait() == 0, "\(run.errors)")
        let report = try #require(try run.jsonLines().last)
        #expect(report["status"] as? String == "cancelled" && report["code"] as? Int == 487, "\(report)")
        #expect(baresip.prints("Incoming call from"), "\(baresip.errors)")
        #expect(baresip.prints("session closed"), "\(baresip.output)")
    }

    @Test func `baresip goes where it is transferred to, and we leave`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun()
        let target = try answer()
        let uri = "sip:carol@\(try address(of: target))"
        // It names its recordings by the second.
        let run = try call(baresip, scratch, ["--transfer-to", uri, "--transfer-after", "1.1"])
        #expect(run.wait() == 0, "\(run.errors)")
        let transfers = try run.jsonLines().filter { $0["event"] as? String == "transfer" }
        #expect(transfers.last?["state"] as? String == "done", "\(transfers)")
        #expect(transfers.last?["code"] as? Int == 200, "\(transfers)")
        #expect(target.printed(#""event":"connected""#), "\(target.errors)")
        #expect(baresip.records(.seconds(1), ofCall: 2), "\(baresip.output)")
        try baresip.command("hangup")
        #expect(target.wait() == 0, "\(target.errors)")
        #expect(try receivedPackets(expectEnd(target, by: "them")) > 20)
        // What came back from there is what baresip sent.
        #expect(try Tone.baresip.tenths(of: baresip.endedRecording(ofCall: 2)).count { $0 } >= 3)
    }

    // MARK: baresip calls

    @Test(arguments: ["udp", "tcp"])
    func `baresip calls: it hears itself, its keys arrive, and it hangs up`(transport: String) throws {
        let baresip = try BaresipRun()
        let run = try answer()
        try baresip.command("dial", "sip:alice@\(try address(of: run));transport=\(transport)")
        try #require(run.printed(#""event":"connected""#), "\(run.errors)")
        #expect(baresip.records(.seconds(1), ofCall: 1), "\(baresip.output)")
        for (index, key) in "159#".enumerated() {
            try baresip.command("sndcode", String(key))
            let keys = try run.wait { try events(run).count { $0 == "digit" } > index }
            try #require(keys, "\(run.output)")
        }
        try baresip.command("hangup")
        #expect(run.wait() == 0, "\(run.errors)")
        let told = try events(run).filter { $0 != "digit" }
        #expect(told == ["listening", "incoming", "connected", "ended"])
        let report = try expectEnd(run, by: "them")
        #expect(report["dtmf"] as? String == "159#")
        #expect(try receivedPackets(report) > 20)
        #expect(try Tone.baresip.tenths(of: baresip.endedRecording()).count { $0 } >= 3)
    }

    // MARK: Runs, and what they say

    /// Calls `baresip` with our tone, and writes down what is heard.
    private func call(_ baresip: BaresipRun, _ scratch: Scratch, _ options: [String] = []) throws -> ToolRun {
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16000)
        let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav")]
        return try ToolRun(["sip", "call", baresip.uri, "--json", "--events"] + files + options)
    }

    /// Gives back what it hears, for one call.
    private func answer() throws -> ToolRun {
        try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--json"])
    }

    /// Where a run listens, as it says itself.
    private func address(of run: ToolRun) throws -> String {
        try #require(run.printed(#""event":"listening""#), "\(run.errors)")
        let local = try #require(try run.jsonLines().first?["local"] as? String)
        return try #require(local.split(separator: " ").last.map(String.init))
    }

    /// All but how it rang, which baresip tells or not.
    private func events(_ run: ToolRun) throws -> [String] {
        try run.jsonLines().compactMap { $0["event"] as? String }.filter { $0 != "progress" }
    }

    /// Checks that the call was well, and gives its report.
    @discardableResult
    private func expectEnd(_ run: ToolRun, by side: String) throws -> [String: Any] {
        let report = try #require(try run.jsonLines().last)
        #expect(report["status"] as? String == "ok" && report["code"] as? Int == 200, "\(report)")
        #expect(report["endedBy"] as? String == side)
        return report
    }

    private func receivedPackets(_ report: [String: Any]) throws -> Int {
        let leg = try #require((report["legs"] as? [[String: Any]])?.first)
        return try #require((leg["received"] as? [String: Any])?["packets"] as? Int)
    }
}

/// A run of baresip that takes one call at a time, sends a tone, and writes down what it hears.
private final class BaresipRun {
    static let program = Program.path("baresip")

    private let run: ProgramRun
    private let folder: Scratch
    private let port: UInt16
    private let control: ControlSocket

    /// Starts it with one codec, and waits until it listens.
    init(codec: String = "opus", answersByItself: Bool = true) throws {
        folder = try Scratch()
        port = try FreePort.pair()
        let controlPort = try FreePort.pair()
        var source = "ausine,440"
        if codec != "opus" {
            // Module ausine knows 48000 Hz only.
            try Tone.baresip.write(to: folder.file("tone.wav"), rate: 8000)
            source = "aufile,\(folder.file("tone.wav"))"
        }
        let modules = ["opus", "g711", "ausine", "aufile", "aubridge", "sndfile"].map { "module \($0).so" }
        let settings = [
            "sip_listen 127.0.0.1:\(port)", "net_interface 127.0.0.1", "call_max_calls 1", "call_local_timeout 60",
            "audio_source \(source)", "audio_player aubridge,nil", "audio_alert aubridge,nil",
            "ausrc_format s16", "auplay_format s16", "auenc_format s16", "audec_format s16",
            "snd_path \(folder.path)", "module_path /usr/lib/baresip/modules",
        ]
        let applications = [
            "module_tmp uuid.so", "module_tmp account.so", "module_app menu.so", "module_app ctrl_tcp.so",
            "ctrl_tcp_listen 127.0.0.1:\(controlPort)",
        ]
        let account =
            "<sip:bob@127.0.0.1:\(port)>;regint=0;answermode=\(answersByItself ? "auto" : "manual")"
            + ";audio_codecs=\(codec == "opus" ? "opus/48000/2" : codec.lowercased())"
        for (name, lines) in [
            ("config", settings + modules + applications), ("accounts", [account]), ("contacts", []),
        ] {
            try lines.map { $0 + "\n" }.joined()
                .write(toFile: folder.file(name), atomically: true, encoding: .utf8)
        }
        // It ends by itself, should nobody end it.
        run = try ProgramRun(
            try #require(Self.program),
            ["-f", folder.path, "-t", "60"],
            environment: ["HOME": folder.path],
            directory: URL(fileURLWithPath: folder.path)
        )
        guard run.prints("baresip is ready.") else {
            run.send(SIGKILL)
            throw ProgramFailure(output: run.output + run.errors)
        }
        control = try ControlSocket(port: controlPort)
    }

    deinit { run.send(SIGKILL) }

    /// Whom to call.
    var uri: String { "sip:bob@127.0.0.1:\(port)" }

    var output: String { run.output }
    var errors: String { run.output + run.errors }

    /// Waits until it has printed `text`.
    func prints(_ text: String) -> Bool { run.prints(text) }

    /// Has it do something: `dial`, `hangup`, `sndcode`.
    func command(_ name: String, _ parameters: String? = nil) throws {
        var command = ["command": name]
        command["params"] = parameters
        try control.send(JSONEncoder().encode(command))
    }

    /// The keys that it received as events of RTP.
    var keys: String {
        let mark = "received event: '"
        return run.output.split(separator: "\n").filter { $0.contains("(end=1)") }.compactMap { line in
            line.range(of: mark).map { String(line[$0.upperBound...].prefix(1)) }
        }
        .joined()
    }

    /// Waits until it has written down so much of what it hears in its call `number`.
    func records(_ duration: Duration, ofCall number: Int) -> Bool {
        ProgramRun.wait { recordings.count >= number || !run.isRunning }
        guard recordings.count >= number else { return false }
        // 16 bits in stereo.
        let byteCount = 4 * AudioFormat(sampleRate: 48000).frameCount(in: duration)
        return FileWatch.wait(for: recordings[number - 1], byteCount: byteCount)
    }

    /// Ends it; gives the file with what it heard in its call `number`, whole then.
    func endedRecording(ofCall number: Int = 1) throws -> String {
        run.send(SIGTERM)
        run.wait()
        try #require(recordings.count >= number, "\(errors)")
        return recordings[number - 1]
    }

    /// The files with what it hears, one for each call.
    private var recordings: [String] {
        let mark = "dumping decode audio to "
        // A line that is whole ends.
        return run.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap { line in
            line.range(of: mark).map { String(line[$0.upperBound...]) }
        }
    }

    private struct ProgramFailure: Error { let output: String }
}

/// The connection by which baresip takes commands: JSON in netstrings.
private final class ControlSocket {
    private let descriptor: CInt

    init(port: UInt16) throws {
        descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    deinit { close(descriptor) }

    func send(_ message: Data) throws {
        let netstring = Data("\(message.count):".utf8) + message + Data(",".utf8)
        let count = netstring.withUnsafeBytes {
            Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
        }
        guard count == netstring.count else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }
}
