// A voice bot: it answers a call, greets, stops speaking when it is spoken to, and repeats what it has heard.
//
//     voice-bot [SPEECH.wav]        swift run voice-bot Examples/Resources/speech.wav
//
// `StreamSource` is its mouth, `StreamSink` its ears: samples are written and read at the application's pace, and the media
// thread never waits for it. Where this bot repeats, another would recognise speech, think and synthesise.
import MediaEngine

let format = AudioFormat(sampleRate: 16000)

/// What was heard, so that a piece of it can be said again.
actor Memory {
    private var samples: [Int16] = []

    func hear(_ block: StreamSink.Block) {
        // What was left out, because nobody read in time, is silence here.
        samples += repeatElement(0, count: max(block.position - samples.count, 0)) + block.samples
    }

    func piece(_ range: Range<Int>) -> [Int16] { Array(samples[range.clamped(to: samples.indices)]) }
}

/// One call, until it ends.
func converse(_ mouth: StreamSource, _ ears: StreamSink, greeting: [Int16]) async {
    let memory = Memory()
    // Writing suspends while two seconds wait, so it has a task of its own, which ends early when the bot is interrupted.
    func say(_ samples: [Int16]) -> Task<Void, any Error> { Task { try await mouth.write(samples) } }
    func seconds(_ frames: Int) -> Double { (Double(frames) * 10 / Double(format.sampleRate)).rounded() / 10 }
    async let hearing: Void = { for await block in ears { await memory.hear(block) } }()
    var speaking = say(greeting)
    var start = 0
    for await event in ears.speech {
        switch event {
        case .started(let position):
            if mouth.queued > .zero { print("interrupted after \(seconds(mouth.position)) s") }
            speaking.cancel()
            mouth.flush()
            start = max(position - format.sampleRate / 5, 0)
        case .stopped(let position):
            print("repeats \(seconds(position - start)) s")
            speaking = say(await memory.piece(start..<position))
        }
    }
    await hearing
}

let engine = try CallEngine()
let (mouth, ears) = (StreamSource(format: format), StreamSink(format: format))
var answering = CallConfiguration(network: .udp(local: .loopback(port: 0)))
(answering.source, answering.sink) = (.stream(mouth), .stream(ears))
let bot = try await engine.makeCall(answering)

// In place of a caller from outside: silent for a second, then two seconds of speech, then the time to hear them again.
let path = CommandLine.arguments.dropFirst().first ?? "Examples/Resources/speech.wav"
let (_, speech) = try WAVFile.read(path)
var calling = CallConfiguration(network: .udp(local: .loopback(port: 0)))
calling.agreement.remote = bot.localAddress
calling.source = .samples([Int16](repeating: 0, count: 16000) + speech.prefix(32000), format)
calling.sink = .playout("voice-bot.wav")
let caller = try await engine.makeCall(calling)

let conversation = Task { await converse(mouth, ears, greeting: Array(speech.suffix(64000))) }
try await Task.sleep(for: .seconds(6))
try await caller.end()

for await event in bot.events where event == .goodbye { break }
try await bot.end()
await conversation.value
print("voice-bot.wav holds what the caller heard, \(caller.report().received.lost) packets lost")
await engine.shutDown()
