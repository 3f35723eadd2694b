// A softphone at a terminal: it registers an account, rings, calls, holds, mutes, sends keys, and takes texts.
//
//     softphone [ACCOUNT [PROXY]]      softphone sip:alice@example.org 'sip:192.0.2.1;lr'
//
// PASSWORD in the environment is that of the account. Lines: c URI, a(nswer), e(nd), h(old), r(esume), m(ute), u(nmute),
// k KEYS, t URI WORDS, q(uit); those about a call mean the last one that is on.
import CallCore
import Foundation
import MediaEngine

/// Prints a line at once, also where nobody sits.
func say(_ text: Any) { FileHandle.standardOutput.write(Data("\(text)\n".utf8)) }

/// What is on; who talks is held before another begins to.
@MainActor final class Softphone {
    let (engine, phone): (CallEngine, Phone)
    private var (calls, ringing): ([PhoneCall], [PhoneCall]) = ([], [])
    private let ring = try? CallProgressTones.of(country: "US")[.ringback]

    init(_ engine: CallEngine, _ phone: Phone) { (self.engine, self.phone) = (engine, phone) }

    func listen() async {
        for await event in phone.events {
            switch event {
            case .incoming(let call):
                ringing.append(call)
                say("\(call.remoteName ?? call.remote) calls. Say a, or e.")
                follow(call)
                try? await call.ring()
                if let ring { try? await engine.startRinging(ring) }
            case .replaced(_, let call):
                calls.append(call)
                follow(call)
            case .registered(let address): say("\(address) is registered.")
            case .unregistered(let address, let error): say("\(address): \(error)")
            case .text(let text): say("\(text.sender): \(text.text)")
            case .logged(let entry): say("\(entry.remote): \(entry.outcome.rawValue), \(entry.talkSeconds) s")
            default: break
            }
        }
    }

    private func follow(_ call: PhoneCall) {
        Task {
            for await event in call.events {
                switch event {
                case .answered: say("\(call.remote) is on.")
                case .held(by: let side): say(side == .us ? "You hold." : "You are held.")
                case .resumed: say("You talk.")
                default: break
                }
            }
            say(await call.ended())
            calls.removeAll { $0 === call }
            await stopRinging(call)
        }
    }

    private func stopRinging(_ call: PhoneCall) async {
        ringing.removeAll { $0 === call }
        if ringing.isEmpty { try? await engine.stopRinging() }
    }

    private func hold(but call: PhoneCall?) async {
        for other in calls where other !== call { await other.setHeld(true) }
    }

    /// Does what a line says; false for the last one.
    func obey(_ line: String) async -> Bool {
        let words = line.split(separator: " ", maxSplits: 2).map(String.init)
        do {
            switch words.first {
            case "c" where words.count == 2:
                await hold(but: nil)
                let call = try await phone.call(words[1])
                calls.append(call)
                follow(call)
            case "a":
                guard let call = ringing.last else { return true }
                await stopRinging(call)
                await hold(but: call)
                try await call.answer()
                calls.append(call)
            case "e": if let call = ringing.last { await call.reject() } else { await calls.last?.hangUp() }
            case "h", "r":
                if words[0] == "r" { await hold(but: calls.last) }
                await calls.last?.setHeld(words[0] == "h")
            case "m", "u": await calls.last?.setMuted(words[0] == "m")
            case "k" where words.count == 2: try await calls.last?.sendDTMF(words[1])
            case "t" where words.count == 3: try await phone.sendText(words[2], to: words[1])
            case "q": return false
            default: say("c URI, a, e, h, r, m, u, k KEYS, t URI WORDS, q")
            }
        } catch {
            say(error)
        }
        return true
    }
}

let engine = try CallEngine()
let phone = try await Phone(engine)
say("The phone is at \(phone.localAddress).")
if let name = CommandLine.arguments.dropFirst().first {
    var account = try PhoneAccount(name, password: ProcessInfo.processInfo.environment["PASSWORD"])
    account.proxies = Array(CommandLine.arguments.dropFirst(2))
    do { try await phone.register(account) } catch { say("\(name): \(error)") }
}
let softphone = Softphone(engine, phone)
let listening = Task { await softphone.listen() }
let lines = AsyncStream<String> { lines in
    Thread.detachNewThread {
        while let line = readLine() { lines.yield(line) }
        lines.finish()
    }
}
for await line in lines where await !softphone.obey(line) { break }
await phone.close()
await listening.value
await engine.shutDown()
