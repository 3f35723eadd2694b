import MediaEngine

let engine = try CallEngine()
var answering = CallConfiguration(network: .udp(local: .loopback(port: 0)))
answering.source = .silence
answering.sink = .playout("heard.wav")
let callee = try await engine.makeCall(answering)

var calling = CallConfiguration(network: .udp(local: .loopback(port: 0)))
calling.agreement.remote = callee.localAddress  // speaks into and is heard on the call card, "AU: Audio Unit Receiver"
let caller = try await engine.makeCall(calling)

try caller.sendDTMF("159#")
try await Task.sleep(for: .seconds(2))
print("heard.wav holds what B heard, its keys were \(callee.receivedKeys); \(callee.report(hearing: caller).received)")
await engine.shutDown()
