// Answers every call after two seconds of ringing, says its text, and records what the caller says until he hangs up, or
// presses #.
//
//     sip-answering-machine HOST:PORT TEXT.wav [FOLDER]
//
// Where CALLS=1 is in the environment, it ends after the first call.
import CallCore
import Foundation
import MediaEngine

let arguments = CommandLine.arguments
guard arguments.count >= 3, let colon = arguments[1].lastIndex(of: ":"),
    let port = UInt16(arguments[1][arguments[1].index(after: colon)...]),
    let local = SocketAddress(host: String(arguments[1][..<colon]), port: port)
else {
    print("Usage: sip-answering-machine HOST:PORT TEXT.wav [FOLDER]")
    exit(64)
}
let (text, folder) = (arguments[2], arguments.count > 3 ? arguments[3] : ".")

/// One call, from its ringing to its end.
func take(_ call: PhoneCall, number: Int) async {
    do {
        try await call.ring()
        try await Task.sleep(for: .seconds(2))
        let file = "\(folder)/message-\(number).wav"
        try await call.answer { sound in
            sound.source = .file(text)
            sound.sink = .file(file)
        }
        for await event in call.events {
            if case .key("#") = event { await call.hangUp() }
        }
        print("\(file): from \(call.remote). \(await call.ended())")
    } catch {
        // The caller may have given up while it rang.
        print("\(call.remote): \(error)")
    }
}

let engine = try CallEngine()
var configuration = PhoneConfiguration()
configuration.local = local
let phone = try await Phone(engine, configuration)
print("Listening at \(phone.localAddress).")
fflush(nil)
let calls = ProcessInfo.processInfo.environment["CALLS"].flatMap { Int($0) } ?? .max
await withTaskGroup { group in
    var count = 0
    for await event in phone.events {
        guard case .incoming(let call) = event else { continue }
        count += 1
        group.addTask { [count] in await take(call, number: count) }
        if count >= calls { break }
    }
}
await phone.close()
await engine.shutDown()
