import Foundation
import Glibc
import TestSupport
import Testing

/// A run of linphonec that sends a tone, writes down what it hears, and takes commands.
final class LinphoneRun {
    static let program = Program.path("linphonec")

    private let run: ProgramRun
    private let folder: Scratch
    private let port: UInt16
    private let host: String
    private let network: NetworkNamespace?
    private let commands: FileHandle

    /// Starts it, and waits until it takes commands.
    ///
    /// `server` is the proxy of example.test that Carol registers at, by a `transport`, nil where she
    /// is called by her address. `suite` is what secures all its calls, by SDES; `usesDTLS` has
    /// them secured by keys that DTLS makes. In a `network`
    /// it is at an address of that, and finds the way by ICE. `callCount` is how many calls it has at once.
    init(
        answersByItself: Bool = true,
        at server: String? = nil,
        by transport: String = "udp",
        suite: String? = nil,
        usesDTLS: Bool = false,
        callCount: Int = 10,
        withICEIn network: NetworkNamespace? = nil,
        host: String = "127.0.0.1"
    ) throws {
        (folder, self.network, self.host) = (try Scratch(), network, host)
        port = try FreePort.pair()
        for name in [".local/share/linphone", ".config/linphone", "certificates"] {
            try FileManager.default.createDirectory(
                atPath: folder.file(name),
                withIntermediateDirectories: true
            )
        }
        try Tone.linphone.write(to: folder.file("tone.wav"), rate: 16000)
        let settings = """
            [sip]
            sip_port=\(port)
            sip_tcp_port=\(port)
            sip_tls_port=\(port + 1)
            root_ca=\(TestCertificates.authority)
            verify_server_cn=0
            bind_address=\(host)
            guess_hostname=0
            contact=<sip:bob@\(host)>
            use_ipv6=0
            ipv6_migration_done=1
            use_rfc2833=1
            default_proxy=-1
            \(suite.map { "srtp_crypto_suites=\($0)\nmedia_encryption=srtp\nmedia_encryption_mandatory=1" } ?? "")
            \(usesDTLS ? "media_encryption=dtls\nmedia_encryption_mandatory=1" : "")
            [misc]
            max_calls=\(callCount)
            user_certificates_path=\(folder.file("certificates"))
            uuid=\(UUID().uuidString.lowercased())
            [net]
            \(network == nil ? "firewall_policy=0" : "nat_policy_ref=way\n[nat_policy_0]\nref=way\nprotocols=ice")
            [rtp]
            audio_rtp_port=\(try FreePort.pair())
            bind_address=\(host)
            [video]
            display=0
            capture=0
            automatically_initiate=0
            automatically_accept=0

            """
        try settings.write(toFile: folder.file("rc"), atomically: true, encoding: .utf8)
        guard mkfifo(folder.file("commands"), 0o600) == 0 else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
        // The shell keeps the pipe open, so that its end never comes; it ends by itself, should nobody end it.
        let line =
            "exec 9<>\"$1\"; exec timeout -k 5 60 \"$2\" \(answersByItself ? "-a" : "") -S -d 1 -l \"$3\" -c \"$4\" <&9"
        let shell = (network?.command ?? []) + ["/bin/sh"]
        run = try ProgramRun(
            shell[0],
            shell.dropFirst() + [
                "-c", line, "sh", folder.file("commands"), try #require(Self.program), folder.file("log"),
                folder.file("rc"),
            ],
            environment: ["HOME": folder.path],
            directory: URL(fileURLWithPath: folder.path)
        )
        commands = try #require(FileHandle(forUpdatingAtPath: folder.file("commands")))
        try command("soundcard use files")
        try command("record \(folder.file("heard.wav"))")
        try command("play \(folder.file("tone.wav"))")
        if let server {
            try command("register sip:carol@example.test <sip:\(server);transport=\(transport)> carol-secret")
        }
        guard prints("play \(folder.file("tone.wav"))"), server != nil || isListening else {
            throw ProgramFailure(output: run.output + run.errors)
        }
    }

    deinit { stop() }

    /// Has it end.
    ///
    /// A signal would not do: its handler ends calls, and may wait for a lock that the interrupted code has (5.1). `timeout` leads
    /// the group of its processes.
    private func stop() {
        try? command("quit")
        if !run.ends(within: .seconds(10)) { kill(-run.processIdentifier, SIGKILL) }
        run.wait()
    }

    /// Whom to call.
    var uri: String { "sip:bob@\(host):\(port)" }

    var output: String { run.output + run.errors }

    /// Waits until it has printed `text`.
    func prints(_ text: String) -> Bool { run.prints(text) }

    /// Has it do something, such as `call`, `terminate`, `pause`.
    func command(_ text: String) throws { try commands.write(contentsOf: Data((text + "\n").utf8)) }

    /// Has it press keys, one after the other, once `run` has heard the one before.
    func press(_ keys: String, heardBy run: ToolRun) throws {
        for (index, key) in keys.enumerated() {
            try command(String(key))
            let isHeard = try run.wait { try run.jsonLines().count { $0["event"] as? String == "digit" } > index }
            try #require(isHeard, "\(run.output)")
        }
    }

    /// The keys that it received.
    var keys: String {
        run.output.split(separator: "\n").compactMap { line in
            line.range(of: "Receiving tone ").map { String(line[$0.upperBound...].prefix(1)) }
        }
        .joined()
    }

    /// For how many tenths of a second it has heard a tone; the counts in the header of its file are not to be relied on.
    func heard(_ tone: Tone) throws -> Int {
        stop()
        let bytes = try folder.bytes("heard.wav")
        try #require(bytes.count > 44)
        let samples = stride(from: 44, to: bytes.count - 1, by: 2).map { index in
            Int16(bitPattern: UInt16(bytes[index]) | UInt16(bytes[index + 1]) << 8)
        }
        let rate = bytes[24..<28].reversed().reduce(0) { $0 << 8 | Int($1) }
        return tone.tenths(of: samples, rate: rate).count { $0 }
    }

    /// Whether its port answers.
    private var isListening: Bool {
        let command = (network?.command ?? []) + [ToolRun.path, "sip", "options", "sip:\(host):\(port)"]
        guard let probe = try? ToolRun(Array(command.dropFirst()), program: command[0]) else { return false }
        return probe.wait() == 0
    }

    private struct ProgramFailure: Error { let output: String }
}
