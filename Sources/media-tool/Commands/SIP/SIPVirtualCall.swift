import CallBasics
import CallCore
import MediaEngine
import SDP
import SIP
import SIPTesting

/// A whole call in virtual time: two user agents, the network between them, and their sound, without a socket.
///
/// Alice calls Bob, who rings for half a second and answers. The same seed gives the same bytes.
struct SIPVirtualCall {
    let audio: CallSoundOptions
    let dtmf: Digits?
    let encryption: MediaEncryption
    let network: ImpairmentOptions
    let transport: SIPTransportName?
    let seconds: Double?
    /// Who writes down how it goes for Alice; nil for nobody.
    let recorder: StoryRecorder?

    private static let step = Duration.milliseconds(10)
    private static let (alice, bob) = (0, 1)

    /// What became of the call so far.
    private struct Course {
        var handle: CallHandle
        var callID = ""
        var ringTime, answerTime, endTime: MediaTime?
        var end: CallEnd?
        /// When Bob answers, and which call.
        var pickUp: (time: MediaTime, call: CallHandle)?
        var isKeyed = false
    }

    func run(on engine: CallEngine) async throws -> SIPCallReport {
        var world = VirtualNetwork(seed: network.seed, conditions)
        for name in ["alice", "bob"] { _ = try world.add(name) }
        world.tap = { [recorder] place, message in if place == .agent(Self.alice) { recorder?.note(message) } }
        let codec = try engine.registry.codec(named: audio.format.codecs[0]).description
        let input = try AudioInput(path: audio.input, seconds: seconds ?? 3, format: codec.format)
        let (left, right) = MemoryLink.pair()
        let sounds = try [left, right].enumerated().map { index, link in
            try sound(engine, link, input.makePlayback().source, index)
        }
        var course = try begin(&world, sounds[Self.alice])
        let talk = seconds.map { .seconds(fraction: $0) } ?? input.length ?? .seconds(3)
        while course.end == nil || world.nodes[Self.bob].agent.counts.calls > 0 {
            guard !Interruption.hasCome else { break }
            world.run(for: Self.step)
            try await note(&course, &world, sounds)
            try engine.advance(by: Self.step)
            try await act(&course, &world, sounds, talk)
        }
        let report = try await media(engine, sounds, course)
        let keys = await sounds[Self.bob].call?.receivedKeys ?? ""
        for sound in sounds { _ = try await sound.end(after: .zero) }
        let result = SIPCallReport(
            end: course.end ?? CallEnd(.us, .cancelled),
            peer: "bob",
            callID: course.callID,
            setup: course.answerTime.map { $0 - .zero },
            ringing: course.ringTime.map { (course.answerTime ?? world.now) - $0 },
            talk: course.answerTime.map { (course.endTime ?? world.now) - $0 },
            media: report,
            counts: counts(world.nodes[Self.alice].agent),
            keys: keys,
            security: await sounds[Self.alice].security,
            soundFailure: nil
        )
        try recorder?.finish(result, at: world.now)
        return result
    }

    private var conditions: VirtualNetwork.Conditions {
        var conditions = VirtualNetwork.Conditions()
        conditions.delay += network.impairment.delay
        conditions.jitter = network.impairment.jitter
        conditions.loss = network.loss / 100
        return conditions
    }

    private func counts(_ agent: UserAgent) -> (sent: Int, received: Int, repeats: Int) {
        (agent.sentCount, agent.receivedCount, agent.repeatCount)
    }

    /// The sound of one side; what Alice hears may go to a file.
    private func sound(_ engine: CallEngine, _ link: MemoryLink, _ source: CallSource, _ index: Int) throws -> CallSound
    {
        let (impairment, seed) = (network.impairment, network.seed &+ UInt64(1 - index))
        let output = index == Self.alice ? audio.output : nil
        return try CallSound(
            engine,
            .link(link),
            codecs: audio.format.codecs,
            packetTime: audio.format.ptime,
            encryption: encryption
        ) { configuration in
            configuration.name = index == Self.alice ? "alice" : "bob"
            (configuration.impairment, configuration.impairmentSeed) = (impairment, seed)
            (configuration.source, configuration.sink) = (source, output.map { .file($0) } ?? .none)
        }
    }

    private func begin(_ world: inout VirtualNetwork, _ sound: CallSound) throws -> Course {
        let parameter = transport.map { ";transport=\($0.rawValue)" } ?? ""
        let bob = try SIPURI("sip:bob@\(world.nodes[Self.bob].address.host)\(parameter)")
        let wishes = UserAgent.CallWishes(session: sound.session)
        return try world.with(Self.alice) { agent, now in
            let handle = try agent.call(bob, wishes, at: now)
            return Course(handle: handle, callID: agent.callID(of: handle) ?? "")
        }
    }

    /// Takes what both agents tell.
    private func note(_ course: inout Course, _ world: inout VirtualNetwork, _ sounds: [CallSound]) async throws {
        for index in [Self.alice, Self.bob] {
            for event in world.takeEvents(index) {
                if index == Self.alice { recorder?.note(event, at: world.now) }
                switch event {
                case .incoming(let handle, _):
                    try world.with(index) { agent, now in try agent.ring(handle, at: now) }
                    course.pickUp = (world.now + .milliseconds(500), handle)
                case .agreed(_, let session): try await sounds[index].apply(session)
                case .progress: course.ringTime = course.ringTime ?? world.now
                case .established where index == Self.alice: course.answerTime = world.now
                case .ended(_, let end) where index == Self.alice: (course.end, course.endTime) = (end, world.now)
                default: break
                }
            }
        }
    }

    /// Does what is due: Bob answers, Alice presses keys, and hangs up.
    private func act(
        _ course: inout Course,
        _ world: inout VirtualNetwork,
        _ sounds: [CallSound],
        _ talk: Duration
    ) async throws {
        if let pickUp = course.pickUp, world.now >= pickUp.time {
            course.pickUp = nil
            let session = sounds[Self.bob].session
            world.with(Self.bob) { agent, now in
                // A call that was taken back meanwhile is gone; its end is told.
                try? agent.answer(pickUp.call, session, at: now)
            }
        }
        guard course.end == nil, let start = course.answerTime else { return }
        if !course.isKeyed, world.now >= start + EncoderOptions.keyStart {
            course.isKeyed = true
            if let dtmf { try await sounds[Self.alice].call?.sendDTMF(dtmf.sequence.description) }
        }
        guard world.now >= start + talk else { return }
        let handle = course.handle
        world.with(Self.alice) { agent, now in agent.hangUp(handle, at: now) }
    }

    private func media(_ engine: CallEngine, _ sounds: [CallSound], _ course: Course) async throws -> CallReport? {
        guard let a = await sounds[Self.alice].call, let b = await sounds[Self.bob].call else { return nil }
        let talk = course.answerTime.map { (course.endTime ?? engine.now) - $0 } ?? .zero
        return CallReport(
            codec: await sounds[Self.alice].agreed?.sending.codecs.first?.encodingName ?? "",
            mode: .virtual,
            seconds: talk.roundedSeconds,
            legs: [a.report(hearing: b), b.report(hearing: a)],
            ticks: engine.tickReport
        )
    }
}
