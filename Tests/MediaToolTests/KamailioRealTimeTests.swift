import Foundation
import Glibc
import TestSupport
import Testing

/// Phones of the tool behind Kamailio on 127.0.0.1: registrations, and calls through it with Record-Route.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: KamailioRun.isThere, "needs Kamailio with TLS (Debian: kamailio, kamailio-tls-modules)")
)
struct KamailioRealTimeTests {
    @Test(arguments: ["MD5", "SHA-256"], ["udp", "tcp", "tls"])
    func `a phone registers, refreshes, and takes its binding away`(algorithm: String, transport: String) throws {
        let kamailio = try KamailioRun(algorithm: algorithm, longestBinding: 2)
        let options = ["--seconds", "3", "--json"]
        let run = try ToolRun(["sip", "register"] + kamailio.account("alice", by: transport) + options)
        #expect(run.wait() == 0, "\(run.errors)")
        let events = try run.jsonLines().compactMap { $0["event"] as? String }
        #expect(events.first == "registering" && events.last == "unregistered", "\(events)")
        #expect(events.count { $0 == "registered" } >= 2, "\(events)")
        #expect(kamailio.prints("saved alice 3600") && kamailio.prints("saved alice 0"), "\(kamailio.errors)")
    }

    @Test func `a wrong password is told`() throws {
        let kamailio = try KamailioRun()
        var account = try kamailio.account("alice", by: "udp")
        account += ["--user", "bob"]
        let run = try ToolRun(["sip", "register", "--once", "--json"] + account)
        #expect(run.wait() == 1)
        #expect(run.errors.contains("another password (401)"), "\(run.errors)")
    }

    @Test(arguments: ["udp", "tcp", "tls"])
    func `a call goes through it both ways: tone and keys, and either side hangs up`(transport: String) throws {
        let scratch = try Scratch()
        let kamailio = try KamailioRun()
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16000)
        for side in ["us", "them"] {
            var called = ["--echo", "--calls", "1", "--json"]
            if side == "them" { called += ["--seconds", "3"] }
            let answering = try ToolRun(["sip", "answer"] + kamailio.account("bob", by: transport) + called)
            try #require(answering.printed(#""event":"registered""#), "\(answering.errors)")
            let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav"), "--dtmf", "159#"]
            let talk = side == "us" ? ["--seconds", "2"] : []
            let account = try kamailio.account("alice", by: transport)
            let call = try ToolRun(["sip", "call", "sip:bob@example.test", "--json"] + account + files + talk)
            #expect(call.wait() == 0, "\(call.errors)")
            #expect(answering.wait() == 0, "\(answering.errors)")
            #expect(try call.json()["endedBy"] as? String == side)
            let report = try #require(try answering.jsonLines().last)
            #expect(report["status"] as? String == "ok" && report["dtmf"] as? String == "159#", "\(report)")
            // What comes back was heard there.
            #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 } >= 5)
        }
        #expect(kamailio.output.contains("in a call: ACK") && kamailio.output.contains("in a call: BYE"))
    }

    @Test func `a call that rings there is taken back, and one to nobody is told`() throws {
        let kamailio = try KamailioRun()
        let ringing = ["--policy", "ring", "--calls", "1", "--json"]
        let answering = try ToolRun(["sip", "answer"] + kamailio.account("bob", by: "udp") + ringing)
        try #require(answering.printed(#""event":"registered""#), "\(answering.errors)")
        let account = try kamailio.account("alice", by: "udp")
        let call = try ToolRun(["sip", "call", "sip:bob@example.test", "--json", "--events"] + account)
        try #require(call.printed(#""code":180"#), "\(call.errors)")
        call.interrupt()
        #expect(call.wait() == 0, "\(call.errors)")
        #expect(answering.wait() == 0, "\(answering.errors)")
        #expect(try answering.jsonLines().last?["status"] as? String == "cancelled")
        let nobody = try ToolRun(["sip", "call", "sip:carol@example.test", "--json"] + account)
        #expect(nobody.wait() == 1)
        #expect(try nobody.json()["code"] as? Int == 404)
    }

    @Test func `where the first server of the domain is dead, the second one is asked`() throws {
        let kamailio = try KamailioRun()
        let dead = try FreePort.pair()
        let account = try kamailio.account("alice", by: "tcp", behind: dead)
        let run = try ToolRun(["sip", "register", "--once", "--json"] + account)
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try run.jsonLines().last?["event"] as? String == "registered")
    }
}

/// A run of Kamailio as registrar and proxy of example.test, which stays on the way of calls.
private final class KamailioRun {
    private static let program = "/usr/sbin/kamailio"
    private static let modules = "/usr/lib/\(machine)-linux-gnu/kamailio/modules/"

    static var isThere: Bool {
        [program, modules + "tls.so"].allSatisfy(FileManager.default.fileExists)
    }

    private static var machine: String {
        var name = utsname()
        uname(&name)
        return withUnsafeBytes(of: &name.machine) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    private let run: ProgramRun
    private let folder: Scratch
    private let port: UInt16
    private let securePort: UInt16

    /// Starts it, and waits until it answers.
    init(algorithm: String = "MD5", longestBinding: Int = 3600) throws {
        folder = try Scratch()
        (port, securePort) = (try FreePort.pair(), try FreePort.pair())
        let certificate = TestCertificates.of("domain")
        let values = [
            "PORT": "\(port)", "SECURE": "\(securePort)", "ALGORITHM": algorithm,
            "LONGEST": "\(longestBinding)", "CERTIFICATE": certificate.path, "KEY": certificate.keyPath,
        ]
        let text = values.reduce(Self.configuration) { $0.replacing("<\($1.key)>", with: $1.value) }
        try text.write(toFile: folder.file("kamailio.cfg"), atomically: true, encoding: .utf8)
        // It closes what it inherits, by which Foundation knows that a process lives; and it ends by itself, should nobody end it.
        run = try ProgramRun(
            "/usr/bin/timeout",
            ["120", Self.program, "-DD", "-E", "-f", folder.file("kamailio.cfg"), "-m", "32", "-M", "8"]
                + ["-w", folder.path, "-Y", folder.path]
        )
        let probe = try ToolRun(["sip", "options", "sip:127.0.0.1:\(port)"])
        guard probe.wait() == 0 else {
            stop()
            throw ProgramFailure(output: run.output + run.errors)
        }
    }

    deinit { stop() }

    /// Its processes end with the first.
    private func stop() {
        run.send(SIGTERM)
        run.wait()
    }

    var output: String { run.output + run.errors }
    var errors: String { output }

    /// Waits until it has told `text`.
    func prints(_ text: String) -> Bool {
        ProgramRun.wait(.seconds(5)) { self.output.contains(text) || !self.run.isRunning } && output.contains(text)
    }

    /// The options of a phone of its domain; `behind` is a port that nobody listens on, and that the domain names first.
    func account(_ user: String, by transport: String, behind dead: UInt16? = nil) throws -> [String] {
        let zone = folder.file("zone")
        var records = ["a.example.test A 127.0.0.1", "example.test A 127.0.0.1"]
        for (name, port) in [("_sip._udp", port), ("_sip._tcp", port), ("_sips._tcp", securePort)] {
            if let dead { records.append("\(name).example.test SRV 10 60 \(dead) a.example.test") }
            records.append("\(name).example.test SRV 20 60 \(port) a.example.test")
        }
        try records.map { $0 + "\n" }.joined().write(toFile: zone, atomically: true, encoding: .utf8)
        let password = folder.file(user)
        try "\(user)-secret".write(toFile: password, atomically: true, encoding: .utf8)
        chmod(password, 0o600)
        return [
            "--account", "sip:\(user)@example.test", "--password-file", password, "--hosts", zone,
            "--transport", transport, "--tls-ca", TestCertificates.authority,
        ]
    }

    private struct ProgramFailure: Error { let output: String }

    private static let configuration = """
        #!KAMAILIO
        debug=1
        log_stderror=yes
        children=2
        tcp_children=2
        auto_aliases=no
        enable_tls=yes
        alias="example.test"
        listen=udp:127.0.0.1:<PORT>
        listen=tcp:127.0.0.1:<PORT>
        listen=tls:127.0.0.1:<SECURE>
        mpath="\(modules)"
        loadmodule "tls.so"
        loadmodule "tm.so"
        loadmodule "sl.so"
        loadmodule "rr.so"
        loadmodule "pv.so"
        loadmodule "maxfwd.so"
        loadmodule "textops.so"
        loadmodule "siputils.so"
        loadmodule "xlog.so"
        loadmodule "usrloc.so"
        loadmodule "registrar.so"
        loadmodule "nathelper.so"
        loadmodule "auth.so"
        modparam("tls", "tls_method", "TLSv1.2+")
        modparam("tls", "certificate", "<CERTIFICATE>")
        modparam("tls", "private_key", "<KEY>")
        modparam("usrloc", "db_mode", 0)
        modparam("registrar", "min_expires", 1)
        modparam("registrar", "max_expires", <LONGEST>)
        modparam("registrar", "received_avp", "$avp(source)")
        modparam("nathelper", "received_avp", "$avp(source)")
        modparam("auth", "algorithm", "<ALGORITHM>")
        modparam("auth", "qop", "auth")

        request_route {
            if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
            if (is_method("CANCEL")) { if (t_check_trans()) t_relay(); exit; }
            t_check_trans();
            if (is_method("OPTIONS") && uri == myself) { sl_send_reply("200", "OK"); exit; }
            force_rport();
            if (has_totag()) {
                if (loose_route()) {
                    xlog("L_ALERT", "in a call: $rm\\n");
                    t_relay();
                    exit;
                }
                if (is_method("ACK")) { if (t_check_trans()) t_relay(); exit; }
                sl_send_reply("404", "Not Here");
                exit;
            }
            if (is_method("ACK")) exit;
            $var(password) = $au + "-secret";
            if (is_method("REGISTER")) {
                # The name that proves itself has to be the one that registers.
                if ($au != $tU || !pv_auth_check("example.test", "$var(password)", "0", "0")) {
                    auth_challenge("example.test", "1");
                    exit;
                }
                fix_nated_register();
                if (!save("location")) sl_reply_error();
                xlog("L_ALERT", "saved $tU $hdr(Expires)\\n");
                exit;
            }
            if (from_uri == myself) {
                if (!pv_auth_check("example.test", "$var(password)", "0", "0")) {
                    proxy_challenge("example.test", "1");
                    exit;
                }
                consume_credentials();
            }
            record_route();
            if (!lookup("location")) { sl_send_reply("404", "Not Found"); exit; }
            t_relay();
        }

        """
}
