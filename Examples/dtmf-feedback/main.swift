// Key feedback: the sound that a softphone makes while its user dials, without the half second that a cold card takes.
//
//     dtmf-feedback [DIGITS] [DEVICE]        swift run dtmf-feedback '159#' null
//
// A tone stream stays warm from `startDTMFStream` to `stopDTMFStream`: the card is open and plays silence, so a key
// sounds within one tick of 5 ms. The engine measures, for each key, the time from the call to the hand-over of the
// key's first sample to the card.
import Foundation
import MediaEngine

let arguments = CommandLine.arguments
let digits = arguments.count > 1 ? arguments[1] : "159#"

// The ringer card, "AQ: Audio Queue Device", is the PCM that MEDIA_ENGINE_AQ names, or `default`.
var configuration = CallEngineConfiguration()
configuration.cardBindings = try CardBindings(environment: ProcessInfo.processInfo.environment)
let engine = try CallEngine(configuration)
if arguments.count > 2 { try await engine.setRinger(named: arguments[2]) }

// What an application does when the keypad appears. Each `start` needs its `stop`: holders are counted.
try await engine.startDTMFStream()
try await Task.sleep(for: .milliseconds(100))

for character in digits {
    guard let digit = DTMFDigit(character) else {
        print("\(character) is no key. Use 0-9 * # A-D.")
        exit(64)
    }
    // A key goes down and, a while later, up again. A short touch still sounds for a minimum that people notice.
    try await engine.playDTMF(digit, for: nil)
    try await Task.sleep(for: .milliseconds(80))
    try engine.stopDTMF()
    try await Task.sleep(for: .milliseconds(60))
}

for (character, delay) in zip(digits, engine.keyToSample) {
    let milliseconds = delay / .milliseconds(1)
    print("key \(character): first sample at the card after \((milliseconds * 10).rounded() / 10) ms")
}

// What it does when the keypad disappears: the last holder's call closes the card.
await engine.stopDTMFStream()
await engine.shutDown()
