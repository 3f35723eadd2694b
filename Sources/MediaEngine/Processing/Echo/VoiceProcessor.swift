package import CallBasics

/// One way of making a microphone's signal fit to send, found by name in the registry: echo cancelling, noise
/// suppression, gain control.
///
/// Thread: control.
package protocol VoiceProcessing: Sendable {
    /// The name by which a configuration asks for it: "built-in".
    var name: String { get }

    /// Makes a processor of mono audio of `format`; `configuration` says what it does.
    ///
    /// Its `echoCancelling` is `on` or `off` here.
    ///
    /// - Throws: `VoiceProcessingError` when it cannot do what is asked.
    func makeProcessor(
        _ configuration: VoiceProcessingConfiguration,
        format: AudioFormat
    ) throws(VoiceProcessingError) -> any VoiceProcessor
}

/// Takes the echo out of one microphone's signal, and makes it better otherwise.
///
/// Thread: media; it must not allocate, lock or wait.
package protocol VoiceProcessor: AnyObject {
    /// By how much sound comes out later than it goes in.
    var latency: Duration { get }
    /// What was found and done about the echo; nil where none is cancelled.
    var echoStatistics: EchoStatistics? { get }

    /// Works on 10 ms.
    ///
    /// - Parameters:
    ///   - captured: What the microphone gave.
    ///   - played: What was played at the same time.
    ///   - output: What is sent, as many frames.
    func process(captured: Span<Int16>, played: Span<Int16>, into output: inout MutableSpan<Int16>)

    /// Takes into account that `frameCount` frames of what was captured are missing from here on, or of what was
    /// played were never heard: echoes come that much earlier. Negative when there are frames too many.
    func noteLostFrames(_ frameCount: Int)

    /// Forgets the room: other cards.
    func reset()
}

/// Why a microphone's signal cannot be processed as asked.
package typealias VoiceProcessingError = Failure<VoiceProcessingFault>

/// The kinds of `VoiceProcessingError`.
package enum VoiceProcessingFault: Hashable, Sendable {
    /// No such processing is registered.
    case unknown
    /// It cannot do what is asked: that format, or that combination.
    case unsupported
}
