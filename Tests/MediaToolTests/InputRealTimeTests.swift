import Foundation
import Glibc
import TestSupport
import Testing

/// What commands read by pipes and sockets, and for how long they wait for it.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct InputRealTimeTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Runs the tool with a socket as its standard input, as Node starts programs: one that does not wait, and by which the file comes.
    private func run(_ arguments: [String], bySocket file: String) throws -> ToolRun {
        let script = #"""
            socketpair(my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die $!;
            open(my $file, '<:raw', shift) or die $!;
            if (fork) {
                close $ours;
                $theirs->blocking(0);
                open(STDIN, '<&', $theirs) or die $!;
                exec { $ARGV[0] } @ARGV;
            }
            close $theirs;
            local $/;
            print {$ours} <$file>;
            """#
        let perl = ["-MSocket", "-MIO::Handle", "-e", script, file]
        return try ToolRun(perl + [ToolRun.path] + arguments, program: "/usr/bin/perl")
    }

    /// Runs a program with the file or the pipe at `path` as its standard input.
    private func run(_ command: [String], reading path: String) throws -> ToolRun {
        try ToolRun(["-c", #"input="$1"; shift; exec "$@" <"$input""#, "sh", path] + command, program: "/bin/sh")
    }

    /// A pipe that has no end while its handle is open.
    private func pipe(_ name: String) throws -> FileHandle {
        try #require(mkfifo(scratch.file(name), 0o600) == 0)
        return try #require(FileHandle(forUpdatingAtPath: scratch.file(name)))
    }

    /// Whether the process has a handler for a signal.
    private static func catches(_ signal: Int32, _ run: ToolRun) -> Bool {
        let status = try? String(contentsOfFile: "/proc/\(run.processIdentifier)/status", encoding: .utf8)
        let line = status?.split(separator: "\n").first { $0.hasPrefix("SigCgt:") }
        let caught = line?.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) }
        return (caught ?? 0) & 1 << UInt64(signal - 1) != 0
    }

    @Test func `standard input may be a socket`() throws {
        let call = ["--virtual", "--codec", "PCMU", "--seconds", "3", "--pcap", scratch.file("c.pcap")]
        #expect(try ToolRun(["loopback"] + call).wait() == 0)
        #expect(try ToolRun.finished("dtmf", "15", "--output", scratch.file("k.wav")).status == 0)
        for (name, command) in [("k.wav", "detect"), ("c.pcap", "replay")] {
            let socket = try run([command, "-", "--json"], bySocket: scratch.file(name))
            let file = try run([ToolRun.path, command, "-", "--json"], reading: scratch.file(name))
            #expect(socket.wait() == 0 && file.wait() == 0, "\(socket.errors)\(file.errors)")
            #expect(!socket.output.isEmpty && socket.output == file.output, "\(socket.output)")
        }
        let played = try run(["play", "-", "--device", "null", "--json"], bySocket: scratch.file("k.wav"))
        #expect(played.wait() == 0, "\(played.errors)")
        #expect(try #require(try played.json()["seconds"] as? Double) > 0.3)
    }

    @Test func `what is sent may come by a socket`() throws {
        let place = ["--group", scratch.file("group"), "--name", "n"]
        let server = try ToolRun(["group", "serve", "--echo"] + place)
        defer { server.killAtOnce() }
        server.wait { server.errors.contains("Serving") }
        try Data(#"{"a":[1,2]}"#.utf8).write(to: URL(fileURLWithPath: scratch.file("body")))
        let sent = try run(["group", "send", "--body", "-", "--request"] + place, bySocket: scratch.file("body"))
        #expect(sent.wait() == 0, "\(sent.errors)")
        #expect(sent.output == #"{"a":[1,2]}"# + "\n")
    }

    @Test(arguments: [
        ["detect", "-"],
        ["detect", "FOLDER/pipe"],
        ["play", "-", "--device", "null"],
        ["send", "--to", "127.0.0.1:5004", "--input", "-"],
        ["ring", "--file", "-", "--output", "FOLDER/o.wav"],
        ["group", "send", "--group", "FOLDER/group", "--name", "n", "--body", "-"],
        ["core", "mailbox", "--port", "0", "--messages", "/dev/stdin"],
        ["receive", "--sdp", "/dev/stdin", "--output", "FOLDER/o.wav"],
        [
            "phone", "--local", "127.0.0.1:0", "--account", "sip:alice@127.0.0.1",
            "--password-file", "FOLDER/pipe",
        ],
    ])
    func `a signal ends the wait for input that does not come`(arguments: [String]) throws {
        let input = try pipe("input")
        defer { try? input.close() }
        // Not even its writer is there.
        try #require(mkfifo(scratch.file("pipe"), 0o600) == 0)
        let words = arguments.map { $0.replacingOccurrences(of: "FOLDER", with: scratch.path) }
        let run = try run([ToolRun.path] + words, reading: scratch.file("input"))
        defer { if run.isRunning { run.killAtOnce() } }
        try #require(Polling.wait { Self.catches(SIGHUP, run) || !run.isRunning })
        run.signal(SIGHUP)
        try #require(run.ends(within: .seconds(10)))
        #expect(run.status == 1 && run.errors.contains("Interrupted before"), "\(run.errors)")
    }

    @Test func `what of a recording had come before a signal is heard`() throws {
        let keys = ["15", "--rate", "8000", "--output", scratch.file("k.wav")]
        #expect(try ToolRun(["dtmf"] + keys).wait() == 0)
        let input = try pipe("input")
        defer { try? input.close() }
        let run = try run([ToolRun.path, "detect", "-", "--json"], reading: scratch.file("input"))
        defer { if run.isRunning { run.killAtOnce() } }
        // All but the end of the silence behind the last key.
        try input.write(contentsOf: Data(scratch.bytes("k.wav").dropLast(100)))
        let isRead = Polling.wait {
            var waiting: CInt = 0
            return ioctl(input.fileDescriptor, UInt(FIONREAD), &waiting) == 0 && waiting == 0 || !run.isRunning
        }
        #expect(isRead)
        run.signal(SIGHUP)
        try #require(run.ends(within: .seconds(10)))
        #expect(run.status == 0 && run.errors.contains("shorter than its header"), "\(run.errors)")
        #expect(try run.json()["digits"] as? String == "15")
    }

    @Test func `a phone takes lines by a pipe that does not wait for them`() throws {
        let lines = try pipe("lines")
        defer { try? lines.close() }
        let script = "fcntl(STDIN, F_SETFL, O_NONBLOCK) or die $!; exec { $ARGV[0] } @ARGV"
        let phone = [ToolRun.path, "phone", "--local", "127.0.0.1:0", "--json"]
        let run = try run(["/usr/bin/perl", "-MFcntl", "-e", script] + phone, reading: scratch.file("lines"))
        try #require(run.printed(#""event":"listening""#), "\(run.errors)")
        for number in 1...2 {
            try lines.write(contentsOf: Data("{\"action\":\"calls\",\"id\":\(number)}\n".utf8))
            try #require(run.printed(#""event":"performed","id":\#(number)"#), "\(run.output)\(run.errors)")
        }
        try lines.write(contentsOf: Data("quit\n".utf8))
        #expect(run.wait() == 0, "\(run.errors)")
    }
}
