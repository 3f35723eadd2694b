public import CallBasics
import Logging
import Synchronization

/// The engine: it makes calls, runs them on one media thread, and owns the sound cards and the codecs.
///
/// Each call is a chain of filters of its own, which the media thread takes in, changes and lets go of between two ticks;
/// other calls do not hear it. Cards are open and the thread ticks while a call or a tone needs them.
///
/// An engine that nobody holds any more ends its calls. To wait for that, and for the last byte of their files, call
/// `shutDown`.
/// Thread: control, any; nothing here blocks but `init`.
public final class CallEngine: Sendable {
    /// The samples that cards are opened with.
    package static let cardFormat = AudioFormat(sampleRate: 48000)

    let core: EngineCore

    /// An engine; its media thread starts with the first call.
    ///
    /// It alone blocks, some milliseconds as a rule: before it returns, ALSA has read its configuration and asked which cards
    /// there are. An application that draws makes the engine off its main thread.
    ///
    /// - Throws: `EngineError` when a role is bound to nothing that can be, or a thread cannot be started.
    public init(_ configuration: CallEngineConfiguration = CallEngineConfiguration()) throws(EngineError) {
        core = try EngineCore(configuration)
    }

    deinit {
        Task.detached { [core] in await core.shutDown() }
    }

    /// Ends every call and tone, and the engine's threads, when their files are whole, or given up.
    public func shutDown() async { await core.shutDown() }

    /// What happens outside of single calls: cards that come and go.
    ///
    /// One task reads it; the newest 256 events wait for it. It finishes when the engine has been shut down.
    public var events: AsyncStream<EngineEvent> { core.events }

    /// Tells whoever reads the log.
    package func warn(_ message: String) { core.configuration.logger.warning("\(message)") }

    // MARK: Time

    /// The present instant of the engine's clock.
    public var now: MediaTime { core.now }

    /// Moves virtual time on, and with it every call.
    ///
    /// Thread: one at a time; the caller is the media thread meanwhile.
    /// - Throws: `EngineError` in an engine of real time.
    public func advance(by duration: Duration) throws(EngineError) {
        guard core.timebase.advance(by: duration) else {
            throw .state(
                .notVirtual,
                "This engine runs in real time. Make it with CallEngineConfiguration.virtual to move time."
            )
        }
    }

    /// How punctual the ticks of calls were, and what was lost of what they told, for a `CallReport`.
    public var tickReport: CallReport.Ticks {
        CallReport.Ticks(tickStatistics, lostEvents: core.loop.runner.droppedEventCount)
    }

    /// How punctual the ticks of calls were, in full.
    package var tickStatistics: TickStatistics { core.loop.statistics }

    /// How the media thread is scheduled; nil before the first call and in virtual time.
    public var scheduling: SchedulingResult? { core.loop.scheduling }

    /// The filters that run, as text or in Graphviz's DOT language.
    ///
    /// - Throws: `EngineError` never while they run, for they were planned.
    package func drawing(asDOT: Bool) throws(EngineError) -> String {
        let graph = core.graph
        return try EngineError.wrapping {
            asDOT ? graph.dot() : try graph.text(profile: { [core] in core.loop.runner.profile(of: $0) })
        }
    }

    // MARK: Codecs

    /// The codecs and plugins that calls can use.
    public var registry: PluginRegistry { core.registry }

    /// Changes the registry: loads plugins, adds codecs, enables and disables them.
    ///
    /// Calls made from now on use the changed one.
    /// Plugins may use the engine meanwhile, whose registry is the former one until `body` is done; they must not change
    /// it from there.
    public func updateRegistry(_ body: (inout PluginRegistry) -> Void) {
        core.updateRegistry(body)
    }

    // MARK: Calls

    /// Opens ports for a call that is still to be agreed on: an offer names them before a codec is known.
    ///
    /// - Parameters:
    ///   - address: The address of this machine; port 0 takes any free port.
    ///   - hasControlPort: Whether RTCP gets the port after RTP's, for another side that does not multiplex (RFC 5761);
    ///     without it, a call with such a side is an error.
    /// - Returns: The ports, for `CallNetwork.reserved`.
    /// - Throws: `EngineError` when they are not to be had.
    public func reserve(
        _ address: SocketAddress,
        hasControlPort: Bool = false
    ) async throws(EngineError) -> MediaReservation {
        try core.reserve(.udp(local: address), hasControlPort: hasControlPort)
    }

    /// Makes a call; it sends and receives from the next tick on.
    ///
    /// - Throws: `EngineError` when the codec, a socket, a card of the call's own or a file is not to be had.
    public func makeCall(_ configuration: CallConfiguration) async throws(EngineError) -> Call {
        try await core.makeCalls([configuration])[0]
    }

    /// Makes calls that all begin in the same tick: the legs of a test call.
    ///
    /// - Throws: `EngineError` when the codec, a socket, a card of a call's own or a file is not to be had.
    public func makeCalls(_ configurations: [CallConfiguration]) async throws(EngineError) -> [Call] {
        try await core.makeCalls(configurations)
    }

    /// Ends calls, all of them beside each other: as `Call.end`, but they wait for the same ticks and files.
    ///
    /// - Throws: `EngineError` of the first whose file could not be completed; all have ended all the same.
    public func endCalls(_ calls: [Call]) async throws(EngineError) {
        try await core.endCalls(calls)
    }

    /// The calls that have not ended, in the order in which they were made.
    public var calls: [Call] { core.calls }

    // MARK: Interruption

    /// Something else needs the sound: a call on the mobile network, an alarm.
    ///
    /// Every running call is put on hold, and says so in an event. A second call without an end between changes nothing.
    public func beginInterruption() {
        for call in calls where call.interrupt() { call.tell(.interruptionBegan) }
    }

    /// The sound is ours again: calls that `beginInterruption` has put on hold go on, and only those.
    ///
    /// Not those that the application has held or taken off hold meanwhile, nor those that have ended.
    public func endInterruption() {
        for call in calls where call.resumeAfterInterruption() { call.tell(.interruptionEnded) }
    }
}
