import Foundation
import Glibc
import TestSupport

/// A run of Kamailio as registrar and proxy of example.test, which stays on the way of calls.
final class KamailioRun {
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
    /// Where it answers 503 to everything, by UDP and TCP.
    let fullPort: UInt16

    /// Starts it, and waits until it answers.
    init(algorithm: String = "MD5", longestBinding: Int = 3600) throws {
        folder = try Scratch()
        (port, securePort, fullPort) = (try FreePort.pair(), try FreePort.pair(), try FreePort.pair())
        let certificate = TestCertificates.of("domain")
        let values = [
            "PORT": "\(port)", "SECURE": "\(securePort)", "FULL": "\(fullPort)", "ALGORITHM": algorithm,
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

    /// Kills it: after SIGTERM while it works, Kamailio may hang for a minute.
    ///
    /// `timeout` leads the group of its processes.
    private func stop() {
        if run.isRunning { kill(-run.processIdentifier, SIGKILL) }
        run.wait()
    }

    var output: String { run.output + run.errors }
    var errors: String { output }

    /// Waits until it has told `text`.
    func prints(_ text: String) -> Bool {
        ProgramRun.wait { self.output.contains(text) || !self.run.isRunning } && output.contains(text)
    }

    /// The options of a phone of its domain; `behind` is a port where nobody serves, and that the domain names first.
    func account(_ user: String, by transport: String, behind dead: UInt16? = nil) throws -> [String] {
        let zone = folder.file("\(user).zone")
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

    /// Where it is, by UDP and TCP.
    var address: String { "127.0.0.1:\(port)" }
    /// Where it is by TLS.
    var secureAddress: String { "127.0.0.1:\(securePort)" }

    private struct ProgramFailure: Error { let output: String }

    /// One process reads all connections: with two, one of two TLS handshakes at once was cut off in one of some 30 runs (5.6).
    private static let configuration = """
        #!KAMAILIO
        debug=1
        log_stderror=yes
        children=2
        tcp_children=1
        auto_aliases=no
        enable_tls=yes
        alias="example.test"
        listen=udp:127.0.0.1:<PORT>
        listen=tcp:127.0.0.1:<PORT>
        listen=tls:127.0.0.1:<SECURE>
        listen=udp:127.0.0.1:<FULL>
        listen=tcp:127.0.0.1:<FULL>
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
            if ($Rp == <FULL>) {
                if (is_method("ACK")) exit;
                xlog("L_ALERT", "no room: $rm $hdr(CSeq)\\n");
                append_to_reply("Retry-After: 5\\r\\n");
                sl_send_reply("503", "Service Unavailable");
                exit;
            }
            t_check_trans();
            if (is_method("OPTIONS") && uri == myself) { sl_send_reply("200", "OK"); exit; }
            force_rport();
            if (has_totag()) {
                if (loose_route()) {
                    // The Contact of linphonec is its public GRUU (RFC 5627), which leads here.
                    if (uri == myself && is_gruu() && !lookup("location")) {
                        if (!is_method("ACK")) sl_send_reply("404", "Not Here");
                        exit;
                    }
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
