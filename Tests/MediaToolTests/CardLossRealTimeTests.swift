import TestSupport
import Testing

/// Needs `Scripts/virtual-cards swift test --filter CardLoss`.
@Suite(
    .tags(.device, .realtime),
    .onSteadyMachine,
    .serialized,
    .timeLimit(.minutes(5)),
    .enabled(if: SoundServer.isThere, "run under Scripts/virtual-cards")
)
struct CardLossRealTimeTests {
    @Test(arguments: thorough(["play", "record"], quick: ["play"]))
    func `a card that goes is told when it goes and comes, and is a failure`(verb: String) throws {
        let scratch = try Scratch()
        let (file, isPlayed) = (scratch.file("x.wav"), verb == "play")
        if isPlayed {
            let made = try ToolRun.finished("ring", "--seconds", "5", "--output", file)
            #expect(made.status == 0, "\(made.errors)")
        }
        let device = isPlayed ? "alsa:EXTRA" : "alsa:AU_heard"
        let run = try ToolRun([verb, file, "--device", device, "--json"] + (isPlayed ? [] : ["--seconds", "5"]))
        let streams = isPlayed ? "sink-inputs" : "source-outputs"
        #expect(try Polling.wait { try !SoundServer.control("list", "short", streams).isEmpty }, "\(run.errors)")
        let sinks = try SoundServer.sinks()
        for sink in sinks { try sink.unload() }
        let isTold = run.wait { run.errors.contains("is gone") }
        for sink in sinks { try sink.load() }
        #expect(isTold, "\(run.errors)")
        #expect(run.wait() == 1)
        #expect(run.errors.contains("is back after") && run.errors.contains("are silent"), "\(run.errors)")
        #expect(try #require(try run.json()["disappearances"] as? Int) >= 1)
    }
}
