// A door phone: it answers who calls it, one at a time, and opens the door on a key.
//
//     door-phone ACCOUNT [PROXY]       door-phone sip:door@example.org 'sip:192.0.2.1;lr'
//
// In the environment: PASSWORD of the account, OPEN_KEY (5), OPEN, a command that opens the door, ALLOWED, the addresses that
// may open it, all where it is not there. Without an account, `door-phone 127.0.0.1:5060`, it is called by its address.
import CallCore
import Glibc
import MediaEngine

/// A variable of the environment.
func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

guard let name = CommandLine.arguments.dropFirst().first else {
    print("Usage: door-phone ACCOUNT|HOST:PORT [PROXY]")
    exit(64)
}
let key = variable("OPEN_KEY")?.first ?? "5"
let allowed = variable("ALLOWED").map { Set($0.split(separator: " ").map(String.init)) }

/// Prints a line at once, also where nobody sits.
func say(_ text: Any) {
    print(text)
    fflush(nil)
}

/// Opens the door; the command goes on by itself.
func openDoor() {
    say("The door opens.")
    guard let command = variable("OPEN") else { return }
    if system("(\(command)) &") != 0 { say("The door does not open: there is no shell.") }
}

/// One call, to its end: the microphone at the door and its loudspeaker are the call card.
func talk(_ call: PhoneCall) async {
    for await event in call.events {
        switch event {
        case .answered: say("\(call.remote) is at the door.")
        case .key(key):
            if allowed?.contains(call.remote) ?? true { openDoor() } else { say("\(call.remote) may not open it.") }
        default: break
        }
    }
    say(await call.ended())
}

let start = ContinuousClock.now
let engine = try CallEngine()
var configuration = PhoneConfiguration()
configuration.codecs = ["G722", "PCMU", "PCMA"]
let account = name.hasPrefix("sip:") || name.hasPrefix("sips:")
if !account {
    let parts = name.split(separator: ":").map(String.init)
    configuration.local = SocketAddress(host: parts[0], port: parts.count > 1 ? UInt16(parts[1]) ?? 5060 : 5060)
}
let phone = try await Phone(engine, configuration)
say("The door is at \(phone.localAddress).")
if account {
    var own = try PhoneAccount(name, password: variable("PASSWORD"))
    own.proxies = Array(CommandLine.arguments.dropFirst(2))
    // One that is refused, or not answered, is tried again.
    do { try await phone.register(own) } catch { say("\(name): \(error)") }
    say("Registered after \(ContinuousClock.now - start).")
}

var callCount = 0
for await event in phone.events {
    switch event {
    case .incoming(let call) where callCount > 0: await call.reject(status: 486)
    case .incoming(let call):
        callCount += 1
        Task {
            do { try await call.answer() } catch { say("\(call.remote): \(error)") }
            await talk(call)
            callCount -= 1
        }
    case .replaced(_, let call):
        // Who was at the door has handed the call over.
        callCount += 1
        Task {
            await talk(call)
            callCount -= 1
        }
    default: break
    }
}
