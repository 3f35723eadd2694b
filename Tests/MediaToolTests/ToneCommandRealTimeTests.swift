import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// Digits and rings, into files and onto cards.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct ToneCommandRealTimeTests {
    @Test(arguments: [8000, 11025, 16000, 44100, 48000]) func `digits are where they belong, to the frame`(rate: Int)
        throws
    {
        let scratch = try Scratch()
        let path = scratch.file("keys.wav")
        let run = try ToolRun.finished(
            "dtmf",
            "1 5,9#",
            "--output",
            path,
            "--rate",
            "\(rate)",
            "--duration",
            "80",
            "--gap",
            "60",
            "--json"
        )
        #expect(run.status == 0)
        let json = try run.json()
        #expect(json["digits"] as? String == "159#" && json["xruns"] as? Int == 0)
        #expect(json["device"] as? String == path)
        #expect((json["keyToSampleMs"] as? [Double])?.count == 4)
        let (format, samples) = try WAVFile.read(path)
        #expect(format == AudioFormat(sampleRate: rate))
        let (digit, gap) = (rate * 80 / 1000, rate * 60 / 1000)
        #expect(samples.count == 4 * (digit + gap) + 2 * rate)
        for start in [0, digit + gap, 2 * (digit + gap) + 2 * rate] {
            #expect(samples[start..<start + digit].contains { $0 != 0 })
            #expect(samples[start + digit..<start + digit + gap].allSatisfy { $0 == 0 })
        }
        let found = try ToolRun.finished("detect", path, "--json").json()
        #expect(found["digits"] as? String == "159#")
        let events = try #require(found["events"] as? [[String: Any]])
        let starts = events.compactMap { $0["startMs"] as? Double }
        for (start, expected) in zip(starts, [0.0, 140, 2280, 2420]) { #expect(abs(start - expected) < 10) }
        for event in events { #expect(abs(try #require(event["durationMs"] as? Double) - 80) < 15) }
    }

    @Test(.enabled(if: Program.path("multimon-ng") != nil, "needs multimon-ng"))
    func `multimon-ng hears all sixteen keys`() throws {
        let scratch = try Scratch()
        let path = scratch.file("keys.wav")
        _ = try ToolRun.finished("dtmf", "0123456789*#ABCD", "--output", path, "--rate", "22050")
        let program = try #require(Program.path("multimon-ng"))
        // The samples behind the header: for whole files it needs sox.
        try Data(scratch.bytes("keys.wav").dropFirst(44)).write(to: URL(fileURLWithPath: scratch.file("keys.raw")))
        let run = try ToolRun(["-q", "-a", "DTMF", "-t", "raw", scratch.file("keys.raw")], program: program)
        run.wait()
        let keys = run.output.split(separator: "\n").compactMap { $0.hasPrefix("DTMF: ") ? $0.last : nil }
        #expect(String(keys) == "0123456789*#ABCD")
    }

    @Test func `the level is obeyed`() throws {
        let scratch = try Scratch()
        func peak(_ level: String) throws -> Double {
            _ = try ToolRun.finished("dtmf", "5", "--level=\(level)", "--output", scratch.file("k.wav"))
            return Double(try WAVFile.read(scratch.file("k.wav")).1.map { abs(Int($0)) }.max() ?? 0)
        }
        #expect(abs(try peak("-4") / peak("-10") - 1.995) < 0.03)
    }

    @Test func `a country's ring has its cadence`() throws {
        let scratch = try Scratch()
        let path = scratch.file("ring.wav")
        let run = try ToolRun.finished("ring", "--country", "FR", "--seconds", "5.5", "--output", path, "--json")
        #expect(run.status == 0)
        #expect(try run.json()["country"] as? String == "FR")
        let samples = try WAVFile.read(path).1
        #expect(samples.count == 264_000)
        // France: 1.5 s of 440 Hz, 3.5 s of silence.
        #expect(samples[..<71_000].contains { $0 > 1000 })
        #expect(samples[72_000..<240_000].allSatisfy { $0 == 0 })
        #expect(samples[241_000...].contains { $0 > 1000 })
        #expect(samples.last == 0)
    }

    @Test(arguments: ["ring", "dtmf"])
    func `a signal ends a file that takes long to write, which is whole`(command: String) throws {
        let scratch = try Scratch()
        let path = scratch.file("long.wav")
        // 11 hours.
        let wanted = command == "ring" ? ["--seconds", "40000"] : ["1" + String(repeating: ",", count: 20_000) + "2"]
        let run = try ToolRun([command] + wanted + ["--output", path, "--json"])
        defer { if run.isRunning { run.killAtOnce() } }
        #expect(FileWatch.wait(for: path, byteCount: 100_000))
        run.signal(SIGHUP)
        try #require(run.ends(within: .seconds(3)))
        #expect(run.status == 0, "\(run.errors)")
        let reader = try WAVReader(path: path)
        let frameCount = try #require(reader.frameCount)
        #expect(!reader.isTruncated && frameCount > 40_000)
        if command == "ring" {
            let seconds = try #require(try run.json()["seconds"] as? Double)
            #expect(abs(seconds - Double(frameCount) / 48_000) < 0.002)
        } else {
            #expect(try run.json()["digits"] as? String == "1")
        }
    }

    @Test func `a ring file starts over after two seconds`() throws {
        let scratch = try Scratch()
        let format = AudioFormat(sampleRate: 11025)
        try WAVFile.write(scratch.file("bell.wav"), format: format, samples: [Int16](repeating: 500, count: 11025))
        _ = try ToolRun.finished(
            "ring",
            "--file",
            scratch.file("bell.wav"),
            "--seconds",
            "4",
            "--output",
            scratch.file("ring.wav")
        )
        let (written, samples) = try WAVFile.read(scratch.file("ring.wav"))
        #expect(written == format && samples.count == 44100)
        #expect(samples[11025..<33075].allSatisfy { $0 == 0 } && samples[33075] == 500)
    }

    @Test(arguments: [false, true]) func `keys sound on a card`(isCold: Bool) throws {
        let run = try ToolRun(["dtmf", "15", "--device", "null", "--json"] + (isCold ? ["--cold"] : []))
        #expect(run.wait() == 0)
        let json = try run.json()
        #expect(json["digits"] as? String == "15" && json["device"] as? String == "null")
        let delays = try #require(json["keyToSampleMs"] as? [Double])
        // A cold card is opened meanwhile, from a disk that may be slow; the figure itself is a benchmark's.
        #expect(delays.count == 2 && delays.allSatisfy { $0 >= 0 && $0 < 1000 }, "\(delays)")
    }

    @Test func `a role without a card is silent and says so, and a card that was named must open`() throws {
        let unbound = ["MEDIA_ENGINE_AQ": "", "ALSA_CONFIG_PATH": "/dev/null"]
        let role = try ToolRun.finished("dtmf", "1", "--json", environment: unbound)
        #expect(role.status == 0, "\(role.errors)")
        #expect(try role.json()["device"] as? String == "AQ: Audio Queue Device")
        #expect(role.errors.hasPrefix("Note: AQ: Audio Queue Device uses the built-in null card"), "\(role.errors)")
        let bound = try ToolRun.finished("dtmf", "1", environment: ["MEDIA_ENGINE_AQ": "alsa:no-such-pcm"])
        #expect(bound.status == 1 && bound.errors.contains("no-such-pcm"), "\(bound.errors)")
        let named = try ToolRun.finished("dtmf", "1", "--device", "alsa:no-such-pcm")
        #expect(named.status == 1 && named.errors.contains("no-such-pcm"), "\(named.errors)")
    }

    @Test func `a file of any rate and channels is heard`() throws {
        let scratch = try Scratch()
        let generator = ToneGenerator(format: AudioFormat(sampleRate: 6000, channelCount: 2))
        let digit = try #require(DTMFDigit("7"))
        generator.play(digit, for: .milliseconds(100), gap: .milliseconds(100))
        var samples = [Int16](repeating: 0, count: 4800)
        var span = samples.mutableSpan
        generator.render(into: &span)
        try WAVFile.write(scratch.file("k.wav"), format: generator.format, samples: samples)
        #expect(try ToolRun.finished("detect", scratch.file("k.wav"), "--json").json()["digits"] as? String == "7")
    }
}
