public import MediaEngine
internal import Synchronization

/// A voice agent in the process itself, as the other end of a call.
///
///     let agent = AgentPort()
///     (configuration.source, configuration.sink) = (.stream(agent.voice), .stream(agent.ears))
///     agent.say(greeting)
///     agent.mark("greeting")
///     for await samples in agent.hearing { ... }      // 20 ms each, until the call has ended
///
/// What it says waits in a queue of up to ten minutes, and is spoken at the pace of the call. It pauses as soon as the other side speaks
/// into it, until it is cleared or 600 ms are over. It lasts for as long as somebody has it, and ends with its call.
/// Thread: any.
public final class AgentPort: Sendable {
    /// What happens to what it says, for one reader.
    ///
    /// The newest 256 events wait for it. It finishes with the end.
    public let events: AsyncStream<AgentVoiceEvent>
    /// What it hears, 20 ms each, for one reader.
    ///
    /// The newest 30 s wait for it, and what is left out is counted as `skipped`. It finishes with the end.
    public let hearing: AsyncStream<[Int16]>

    private let conversation: Conversation
    private let eventSink: AsyncStream<AgentVoiceEvent>.Continuation
    private let hearingSink: AsyncStream<[Int16]>.Continuation
    private let counts: Counts

    /// What was heard, in frames, and blocks that were left out.
    private final class Counts: Sendable {
        let heard = Atomic<Int>(0)
        let skipped = Atomic<Int>(0)
    }

    /// An agent for one call.
    ///
    /// - Parameters:
    ///   - sampleRate: Of the sound both ways: a multiple of 100 Hz.
    ///   - isPausedBySpeech: Whether what it says pauses as soon as the other side speaks into it.
    public init(sampleRate: Int = 16_000, isPausedBySpeech: Bool = true) {
        let (events, eventSink) = AsyncStream<AgentVoiceEvent>.makeStream(bufferingPolicy: .bufferingNewest(256))
        let (hearing, hearingSink) = AsyncStream<[Int16]>.makeStream(bufferingPolicy: .bufferingNewest(1500))
        let counts = Counts()
        (self.events, self.eventSink, self.hearing, self.hearingSink) = (events, eventSink, hearing, hearingSink)
        self.counts = counts
        conversation = Conversation(
            sampleRate: sampleRate,
            isPausedBySpeech: isPausedBySpeech,
            isBegun: true,
            heard: { samples, _ in
                counts.heard.wrappingAdd(samples.count, ordering: .relaxed)
                if case .dropped = hearingSink.yield(samples) { counts.skipped.wrappingAdd(1, ordering: .relaxed) }
            },
            tell: { eventSink.yield($0) }
        )
        conversation.start { [weak self] in self?.end() }
    }

    deinit {
        eventSink.finish()
        hearingSink.finish()
    }

    /// The call's source: what it says.
    public var voice: StreamSource { conversation.voice }
    /// The call's sink: what it hears.
    public var ears: StreamSink { conversation.ears }

    /// Says something behind what it has said; what finds no room is lost, and counted.
    ///
    /// - Parameter samples: Of one channel, any number.
    public func say(_ samples: [Int16]) { conversation.say(samples) }

    /// Marks the end of what it has said; it is told when that was played, or dropped.
    public func mark(_ name: String) { conversation.mark(name) }

    /// Takes back what was not heard yet: it is silent from the next packet on, after a ramp of 5 ms.
    public func clear() { conversation.clear() }

    /// Whether what it says waits until it is to be heard, after a ramp of 5 ms.
    public var isHeld: Bool {
        get { conversation.isHeld }
        set { conversation.isHeld = newValue }
    }

    /// What of its sound waits to be heard.
    public var waiting: Duration { conversation.waiting }

    /// What was carried up to now.
    public var report: AgentReport {
        var report = conversation.report
        report.heard = ears.format.duration(ofFrames: counts.heard.load(ordering: .relaxed))
        report.skipped = counts.skipped.load(ordering: .relaxed)
        return report
    }

    /// Ends it: marks that were not reached are told as dropped, and both streams finish.
    public func end() {
        _ = conversation.end {}
        eventSink.finish()
        hearingSink.finish()
    }
}
