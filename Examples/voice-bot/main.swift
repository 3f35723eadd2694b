// A voice bot: it answers a call, greets, stops speaking when it is spoken to, and repeats what it has heard.
//
//     voice-bot [SPEECH.wav]        swift run voice-bot Examples/Resources/speech.wav
//
// `AgentPort` is the other end of the call: what the bot says waits there, pauses as soon as somebody speaks into it, and is
// thrown away when the bot says so. Where this bot repeats, another would recognise speech, think and synthesise.
import AgentSockets
import MediaEngine

/// One call, until it ends.
func converse(_ agent: AgentPort, greeting: [Int16]) async {
    let memory = Memory()
    agent.say(greeting)
    agent.mark("greeting")
    async let hearing: Void = { for await samples in agent.hearing { await memory.hear(samples) } }()
    var start = Duration.zero
    for await event in agent.events {
        switch event {
        case .speechStarted(let time):
            start = max(time - .milliseconds(200), .zero)
            agent.clear()
        case .speechStopped(let time):
            print("repeats \(time - start)")
            agent.say(await memory.piece(from: start, to: time))
        case .cleared(let unheard) where unheard > .zero: print("interrupted, \(unheard) were not heard")
        case .marked(let name, let isPlayed, let position):
            print("\(name) \(isPlayed ? "was heard" : "was cut off") at \(position)")
        default: break
        }
    }
    await hearing
}

/// What was heard, so that a piece of it can be said again.
actor Memory {
    private var samples: [Int16] = []

    func hear(_ block: [Int16]) { samples += block }

    func piece(from start: Duration, to end: Duration) -> [Int16] {
        let frames = [start, end].map { Int($0 / .seconds(1) * 16_000) }
        return Array(samples[(frames[0]..<frames[1]).clamped(to: samples.indices)])
    }
}

let engine = try CallEngine()
let agent = AgentPort(sampleRate: 16_000)
var answering = CallConfiguration(network: .udp(local: .loopback(port: 0)))
(answering.source, answering.sink) = (.stream(agent.voice), .stream(agent.ears))
let bot = try await engine.makeCall(answering)

// In place of a caller from outside: silent for a second, then two seconds of speech, then the time to hear them again.
let path = CommandLine.arguments.dropFirst().first ?? "Examples/Resources/speech.wav"
let (_, speech) = try WAVFile.read(path)
var calling = CallConfiguration(network: .udp(local: .loopback(port: 0)))
calling.agreement.remote = bot.localAddress
calling.source = .samples([Int16](repeating: 0, count: 16000) + speech.prefix(32000), AudioFormat(sampleRate: 16_000))
calling.sink = .playout("voice-bot.wav")
let caller = try await engine.makeCall(calling)

let conversation = Task { await converse(agent, greeting: Array(speech.suffix(64000))) }
try await Task.sleep(for: .seconds(6))
try await caller.end()

for await event in bot.events where event == .goodbye { break }
try await bot.end()
await conversation.value
print("voice-bot.wav holds what the caller heard, \(caller.report().received.lost) packets lost")
await engine.shutDown()
