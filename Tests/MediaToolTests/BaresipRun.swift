import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// A run of baresip that takes one call at a time, sends a tone, and writes down what it hears.
final class BaresipRun {
    static let program = Program.path("baresip")

    private let run: ProgramRun
    private let folder: Scratch
    private let port: UInt16
    private let control: ControlSocket

    /// Starts it with one codec, and waits until it listens, by UDP, TCP and TLS.
    ///
    /// `server` is the proxy of example.test that Bob registers at, nil where
    /// he is called by his address. `encryption` is what secures its sound, such as srtp-mand and dtls_srtp.
    init(
        codec: String = "opus",
        answersByItself: Bool = true,
        at server: String? = nil,
        encryption: String? = nil
    ) throws {
        folder = try Scratch()
        port = try FreePort.pair()
        let controlPort = try FreePort.pair()
        var source = "ausine,440"
        if codec != "opus" {
            // Module ausine knows 48000 Hz only.
            try Tone.baresip.write(to: folder.file("tone.wav"), rate: 8000)
            source = "aufile,\(folder.file("tone.wav"))"
        }
        let modules = ["opus", "g711", "ausine", "aufile", "aubridge", "sndfile", "srtp", "dtls_srtp"].map {
            "module \($0).so"
        }
        // It wants its certificate and the key in one file.
        let identity = TestCertificates.of("loopback")
        let identityText = try [identity.path, identity.keyPath].map { try String(contentsOfFile: $0, encoding: .utf8) }
        try identityText.joined().write(toFile: folder.file("identity.pem"), atomically: true, encoding: .utf8)
        let settings = [
            "sip_listen 127.0.0.1:\(port)", "net_interface 127.0.0.1", "call_max_calls 1", "call_local_timeout 60",
            "sip_certificate \(folder.file("identity.pem"))", "sip_cafile \(TestCertificates.authority)",
            "audio_source \(source)", "audio_player aubridge,nil", "audio_alert aubridge,nil",
            "ausrc_format s16", "auplay_format s16", "auenc_format s16", "audec_format s16",
            "snd_path \(folder.path)", "module_path /usr/lib/baresip/modules",
        ]
        let applications = [
            "module_tmp uuid.so", "module_tmp account.so", "module_app menu.so", "module_app ctrl_tcp.so",
            "ctrl_tcp_listen 127.0.0.1:\(controlPort)",
        ]
        let name =
            server.map { "<sip:bob@example.test>;auth_pass=bob-secret;outbound=\"sip:\($0);transport=udp\";regint=60" }
            ?? "<sip:bob@127.0.0.1:\(port)>;regint=0"
        let account =
            "\(name);answermode=\(answersByItself ? "auto" : "manual")"
            + ";audio_codecs=\(codec == "opus" ? "opus/48000/2" : codec.lowercased())"
            + (encryption.map { ";mediaenc=\($0)" } ?? "")
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
        guard run.prints("baresip is ready."), server == nil || run.prints("200 OK") else {
            run.send(SIGKILL)
            throw ProgramFailure(output: run.output + run.errors)
        }
        control = try ControlSocket(port: controlPort)
    }

    deinit { run.send(SIGKILL) }

    /// Whom to call.
    var uri: String { "sip:bob@127.0.0.1:\(port)" }
    /// Whom to call by TLS, which has the port behind.
    var secureURI: String { "sip:bob@127.0.0.1:\(port + 1);transport=tls" }

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
