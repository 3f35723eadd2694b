import CallCore
import MediaEngine

let engine = try CallEngine()
let phone = try await Phone(engine)
let uri = CommandLine.arguments.dropFirst().first ?? "sip:127.0.0.1:5070"
let call = try await phone.call(uri) { sound in
    sound.source = .silence  // without these two it speaks into and is heard on the call card
    sound.sink = .file("heard.wav")
}
try await call.answered()
try await call.sendDTMF("159#")
try await Task.sleep(for: .seconds(3))
await call.hangUp()
print(await call.ended(), "\(await call.report?.legs[0].received.packets ?? 0) packets heard")
await phone.close()
await engine.shutDown()
