import MediaEngine

/// A call of PCMU between a listener and an agent, in real time.
struct TestCall {
    let engine: CallEngine
    /// The listener's, and the agent's.
    let calls: [Call]
    let ears = StreamSink(format: AudioFormat(sampleRate: 8000))
    let speech = StreamSource(format: AudioFormat(sampleRate: 8000))

    init(voice: StreamSource, ears agentEars: StreamSink) async throws {
        engine = try CallEngine()
        calls = try await engine.makeCalls(Self.legs((speech, ears), (voice, agentEars)))
    }

    /// Two legs of PCMU that meet in memory: the listener's, which so much of what is sent does not reach, and the agent's.
    static func legs(
        _ listener: (source: StreamSource, sink: StreamSink),
        _ other: (source: StreamSource, sink: StreamSink),
        lossPercent: Double = 0,
        seed: UInt64 = 1
    ) -> [CallConfiguration] {
        let (left, right) = MemoryLink.pair()
        var impairment = Impairment()
        impairment.lossPercent = lossPercent
        let link = ImpairedLink(left, impairment, seed: seed)
        var caller = CallConfiguration(network: .link(link, local: left.localAddress))
        caller.agreement.codec = "PCMU"
        var agent = caller
        agent.network = .link(right, local: right.localAddress)
        (caller.agreement.remote, agent.agreement.remote) = (right.localAddress, left.localAddress)
        (caller.source, caller.sink) = (.stream(listener.source), .stream(listener.sink))
        (agent.source, agent.sink) = (.stream(other.source), .stream(other.sink))
        return [caller, agent]
    }

    /// Hears so many blocks of 20 ms; answers how many of them were loud.
    func hear(_ count: Int) async -> Int {
        var (loud, rest) = (0, count)
        for await block in ears {
            if block.samples.contains(where: { abs(Int($0)) > 1000 }) { loud += 1 }
            rest -= 1
            if rest == 0 { break }
        }
        return loud
    }

    enum Loudness { case loud, silent }

    /// How many blocks of 20 ms go by until one is so, its own counted.
    func blocks(until loudness: Loudness, atMost limit: Int) async -> Int {
        for count in 1...limit where await hear(1) == (loudness == .loud ? 1 : 0) { return count }
        return limit + 1
    }

    func end() async throws {
        for call in calls { try await call.end() }
        await engine.shutDown()
    }
}
