import Foundation
import Logging
import MediaEngine
import TestSupport
import Testing

/// Engines with their own media thread, and programs that use them from several threads.
@Suite(.serialized, .timeLimit(.minutes(5)), .tags(.realtime), .onSteadyMachine) struct CallEngineRealTimeTests {
    @Test func `real time cannot be moved by hand`() async throws {
        let engine = try CallEngine()
        #expect(throws: EngineError.self) { try engine.advance(by: .seconds(1)) }
    }

    @Test func `an engine answers while its media thread is being started`() async throws {
        let (asked, answers) = (Watched<CallEngine?>(nil), Watched<[Int]>([]))
        let logger = Logger(label: "test") { _ in AskingHandler(engine: asked, answers: answers) }
        var configuration = CallEngineConfiguration(logger: logger)
        configuration.cardBindings = try CardBindings(flags: ["au": "null", "aq": "null"], environment: [:])
        // There is no such priority: that it is refused is logged as soon as the thread runs.
        configuration.time = .real(priority: 1000)
        let engine = try CallEngine(configuration)
        asked.update { $0 = engine }
        let call = try await engine.makeCall(Self.onCard("A", "PCMU"))
        #expect(answers.value == [0])
        asked.update { $0 = nil }
        try await call.end()
        await engine.shutDown()
    }

    /// What four threads do to one engine at once, over sockets; the thread sanitizer looks on.
    @Test func `calls are made, joined, muted, held, recorded, routed, reported on and ended from four tasks`()
        async throws
    {
        let engine = try Self.engine()
        let folder = FileManager.default.temporaryDirectory.appending(path: "calls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let rounds = thorough(8, quick: 3)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    for round in 0..<rounds {
                        try await Self.makeAndEndCalls(on: engine, folder.path + "/\(thread)-\(round)", thread: thread)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(engine.calls.isEmpty)
        let recordings = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(recordings.count == 4 * rounds * 2)
        for name in recordings {
            let samples = try WAVFile.read(folder.path + "/" + name).1
            #expect(!samples.isEmpty, "\(name)")
        }
        await engine.shutDown()
        await #expect(throws: EngineError.self) { try await engine.makeCall(Self.onCard("late", "PCMU")) }
    }

    @Test func `an engine that is shut down while calls are made and ended leaves none`() async throws {
        for _ in 0..<thorough(10, quick: 4) {
            let engine = try Self.engine()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    pass(.milliseconds(30))
                    await engine.shutDown()
                }
                for _ in 0..<3 {
                    group.addTask {
                        do throws(EngineError) {
                            while true {
                                let call = try await engine.makeCall(Self.onCard("call", "PCMU"))
                                _ = call.report()
                                try await call.end()
                            }
                        } catch {
                            guard case .state(let failure) = error, failure.code == .engineEnded else { throw error }
                        }
                    }
                }
                try await group.waitForAll()
            }
            await engine.shutDown()
            #expect(engine.calls.isEmpty)
        }
    }

    /// Two legs that hear each other and both cards, and what a program does with them and with the calls of others.
    private static func makeAndEndCalls(on engine: CallEngine, _ path: String, thread: Int) async throws {
        let codec = ["PCMU", "opus", "G722", "L16"][thread]
        let callee = try await engine.makeCall(onCard("B", codec))
        var calling = onCard("A", codec)
        calling.agreement.remote = callee.localAddress
        let caller = try await engine.makeCall(calling)
        try await callee.startRecording(near: path + ".near.wav", far: path + ".far.wav")
        #expect(await Polling.eventually { callee.report(hearing: caller).received.packets > 5 })
        caller.isMuted = true
        caller.volume = Decibels(-6)
        caller.isOnHold = true
        try caller.sendDTMF("5", duration: .milliseconds(40), gap: .zero)
        switch thread {
        case 0: try await engine.setCard(NullCard(name: path), .playback)
        case 1: try await engine.setCard(NullCard(name: path), .capture)
        case 2:
            try await engine.playDTMF(DTMFDigit.all[7])
            try await engine.startDTMFStream()
            await engine.stopDTMFStream()
        default:
            engine.beginInterruption()
            _ = try engine.drawing(asDOT: false)
            engine.endInterruption()
        }
        caller.isOnHold = false
        caller.isMuted = false
        // Those of the other threads are among them.
        for call in engine.calls {
            call.volume = Decibels(-3)
            call.isMuted = false
            _ = (call.report(), call.sentLevel, call.heardLevel, call.receivedKeys)
        }
        _ = (
            engine.tickStatistics, engine.scheduling, engine.cardStatistics(.playback), engine.cardStatistics(.capture)
        )
        _ = (engine.routeChanges, engine.cardReports)
        let heard = callee.report().received.packets
        #expect(await Polling.eventually { callee.report().received.packets > heard })
        try await callee.stopRecording()
        try await caller.end()
        try await callee.end()
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
        call.agreement.codec = AgreedCodec(codec)
        return call
    }
}

/// Asks an engine how many calls it has, whenever something is logged.
private struct AskingHandler: LogHandler {
    let engine: Watched<CallEngine?>
    let answers: Watched<[Int]>
    var logLevel = Logger.Level.notice
    var metadata = Logger.Metadata()

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        guard let count = engine.value?.calls.count else { return }
        answers.update { $0.append(count) }
    }
}
