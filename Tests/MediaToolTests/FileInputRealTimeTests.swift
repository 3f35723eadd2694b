import Foundation
import MediaEngine
import TestSupport
import Testing

/// WAV files that are not what they should be.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct FileInputRealTimeTests {
    private static func wav(samples: Int) throws -> [UInt8] {
        let scratch = try Scratch()
        let signal = TestSignal.samples(1, AudioFormat(sampleRate: 8000))
        try WAVFile.write(
            scratch.file("a.wav"),
            format: AudioFormat(sampleRate: 8000),
            samples: Array(signal.prefix(samples))
        )
        return try scratch.bytes("a.wav")
    }

    @Test(arguments: ["detect", "play", "loopback"]) func `what is no WAV is refused`(command: String) throws {
        let scratch = try Scratch()
        let whole = try Self.wav(samples: 100)
        let cases: [(String, [UInt8])] = [
            ("empty", []), ("text", Array("This is not a WAV file, but some text.".utf8)),
            ("header", Array(whole.prefix(30))), ("riff", Array(whole.prefix(12))),
        ]
        for (name, bytes) in cases {
            let path = scratch.file(name)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            let run = try ToolRun(
                command == "loopback"
                    ? ["loopback", "--virtual", "--input", path]
                    : command == "play" ? ["play", path, "--device", "null"] : ["detect", path]
            )
            #expect(run.wait() == 1, "\(name)")
            #expect(run.errors.contains(path), "\(run.errors)")
            #expect(run.errors.split(separator: "\n").count == 1)
        }
    }

    @Test func `a truncated file is sent as far as it goes`() throws {
        let scratch = try Scratch()
        let path = scratch.file("short.wav")
        try Data(try Self.wav(samples: 8000).prefix(4044)).write(to: URL(fileURLWithPath: path))
        let run = try ToolRun.finished("loopback", "--virtual", "--codec", "PCMU", "--input", path, "--json")
        #expect(run.status == 0)
        #expect(run.errors.contains("shorter than its header"))
        #expect(try #require(try run.json()["seconds"] as? Double) < 1)
    }

    @Test func `a ring comes from standard input, a pipe into a file alone`() throws {
        let scratch = try Scratch()
        try Data(try Self.wav(samples: 4000)).write(to: URL(fileURLWithPath: scratch.file("a.wav")))
        func ring(_ redirection: String, _ options: String) throws -> ToolRun {
            let command = "\(redirection) \"$2\" ring --file - --seconds 0.5 \(options)"
            let arguments = ["-c", command, "sh", scratch.file("a.wav"), ToolRun.path, scratch.file("o.wav")]
            let run = try ToolRun(arguments, program: "/bin/sh")
            run.wait()
            return run
        }
        let file = try ring("<\"$1\"", "--device null")
        #expect(file.status == 0 && file.output.contains("rang with standard input"), "\(file.errors)")
        let written = try ring("cat \"$1\" |", "--output \"$3\"")
        #expect(written.status == 0, "\(written.errors)")
        #expect(try WAVFile.read(scratch.file("o.wav")).1.contains { abs(Int($0)) > 500 })
        let refused = try ring("cat \"$1\" |", "--device null")
        #expect(refused.status == 64 && refused.errors.contains("--file"), "\(refused.errors)")
    }

    @Test func `24-bit and float files are taken`() throws {
        let scratch = try Scratch()
        let keys = scratch.file("keys.wav")
        _ = try ToolRun.finished("dtmf", "159", "--output", keys, "--rate", "8000")
        let samples = try WAVFile.read(keys).1
        func header(tag: UInt8, bits: UInt8, bytes: Int) -> [UInt8] {
            func four(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(value >> ($0 * 8) & 0xFF) } }
            var result = Array("RIFF".utf8) + four(36 + bytes)
            result += Array("WAVEfmt ".utf8) + four(16)
            result += [tag, 0, 1, 0] + four(8000)
            result += four(8000 * Int(bits) / 8) + [bits / 8, 0, bits, 0]
            return result + Array("data".utf8) + four(bytes)
        }
        let long = samples.flatMap { sample -> [UInt8] in
            [0, UInt8(truncatingIfNeeded: sample), UInt8(truncatingIfNeeded: sample >> 8)]
        }
        let floats = samples.flatMap { sample -> [UInt8] in
            let bits = (Float(sample) / 32768).bitPattern
            return (0..<4).map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) }
        }
        let files = [
            header(tag: 1, bits: 24, bytes: long.count) + long, header(tag: 3, bits: 32, bytes: floats.count) + floats,
        ]
        for file in files {
            try Data(file).write(to: URL(fileURLWithPath: scratch.file("x.wav")))
            #expect(
                try ToolRun.finished("detect", scratch.file("x.wav"), "--json").json()["digits"] as? String == "159"
            )
        }
    }
}
