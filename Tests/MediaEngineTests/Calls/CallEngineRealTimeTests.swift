import Foundation
import MediaEngine
import TestSupport
import Testing

/// Engines with their own media thread, and programs that use them from several threads.
@Suite(.serialized, .timeLimit(.minutes(5)), .tags(.realtime)) struct CallEngineRealTimeTests {
    @Test func `real time cannot be moved by hand`() throws {
        let engine = try CallEngine()
        defer { engine.shutDown() }
        #expect(throws: EngineError.self) { try engine.advance(by: .seconds(1)) }
    }

    /// What four threads do to one engine at once, over sockets; the thread sanitizer looks on.
    @Test func `calls are made, joined, muted, held, recorded, routed, reported on and ended from four threads`()
        async throws
    {
        let engine = try Self.engine()
        let folder = FileManager.default.temporaryDirectory.appending(path: "calls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let rounds = thorough(8, quick: 3)
        try await onThreads(4) { thread in
            for round in 0..<rounds {
                try Self.makeAndEndCalls(on: engine, folder.path + "/\(thread)-\(round)", thread: thread)
            }
        }
        #expect(engine.calls.isEmpty)
        let recordings = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(recordings.count == 4 * rounds * 2)
        for name in recordings {
            let samples = try WAVFile.read(folder.path + "/" + name).1
            #expect(!samples.isEmpty, "\(name)")
        }
        engine.shutDown()
        #expect(throws: EngineError.self) { try engine.makeCall(Self.onCard("late", "PCMU")) }
    }

    @Test func `an engine that is shut down while calls are made and ended leaves none`() async throws {
        for _ in 0..<thorough(10, quick: 4) {
            let engine = try Self.engine()
            try await onThreads(4) { thread in
                guard thread > 0 else {
                    pass(.milliseconds(30))
                    return engine.shutDown()
                }
                do {
                    while true {
                        let call = try engine.makeCall(Self.onCard("call", "PCMU"))
                        _ = call.report()
                        try call.end()
                    }
                } catch is EngineError {
                    // It has been shut down.
                }
            }
            engine.shutDown()
            #expect(engine.calls.isEmpty)
        }
    }

    /// Two legs that hear each other and both cards, and what a program does with them and with the calls of others.
    private static func makeAndEndCalls(on engine: CallEngine, _ path: String, thread: Int) throws {
        let codec = ["PCMU", "opus", "G722", "L16"][thread]
        let callee = try engine.makeCall(onCard("B", codec))
        var calling = onCard("A", codec)
        calling.remote = callee.localAddress
        let caller = try engine.makeCall(calling)
        try callee.startRecording(near: path + ".near.wav", far: path + ".far.wav")
        #expect(Polling.wait { callee.report(hearing: caller).received.packets > 5 })
        caller.isMuted = true
        caller.setVolume(Decibels(-6))
        caller.isOnHold = true
        try caller.sendDTMF("5", duration: .milliseconds(40), gap: .zero)
        switch thread {
        case 0: try engine.setPlaybackCard(NullCard(name: path))
        case 1: try engine.setCaptureCard(NullCard(name: path))
        case 2:
            try engine.playDTMF(DTMFDigit.all[7])
            try engine.startDTMFStream()
            engine.stopDTMFStream()
        default:
            engine.beginInterruption()
            _ = try engine.drawing(asDOT: false)
            engine.endInterruption()
        }
        caller.isOnHold = false
        caller.isMuted = false
        // Those of the other threads are among them.
        for call in engine.calls {
            call.setVolume(Decibels(-3))
            call.isMuted = false
            _ = (call.report(), call.sentLevel, call.heardLevel, call.receivedKeys)
        }
        _ = (engine.tickStatistics, engine.scheduling, engine.playbackStatistics, engine.captureStatistics)
        _ = (engine.routeChanges, engine.cardReports)
        let heard = callee.report().received.packets
        #expect(Polling.wait { callee.report().received.packets > heard })
        try callee.stopRecording()
        try caller.end()
        try callee.end()
        #expect(caller.hasEnded && callee.hasEnded)
    }

    /// An engine of real time whose cards are null cards.
    private static func engine() throws -> CallEngine {
        var configuration = CallEngineConfiguration()
        configuration.cardBindings = try CardBindings(flags: ["au": "null", "aq": "null"], environment: [:])
        return try CallEngine(configuration)
    }

    /// A call on the call card and a socket.
    private static func onCard(_ name: String, _ codec: String) -> CallConfiguration {
        var call = CallConfiguration(network: .udp(local: .loopback(port: 0)))
        call.name = name
        call.stream.codec = codec
        return call
    }
}
