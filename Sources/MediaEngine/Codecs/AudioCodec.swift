public import CallBasics

/// What a codec is called and what it needs, before any encoder or decoder exists.
public struct CodecDescription: Hashable, Sendable {
    /// The encoding name of the RTP payload format, as in `a=rtpmap`: "opus", "PCMU", "G722".
    public let name: String
    /// RTP timestamp units per second (RFC 3550, section 5.1).
    public let clockRate: Int
    /// The audio that encoders take and decoders give.
    ///
    /// The rate is not always `clockRate`: see G.722.
    public let format: AudioFormat
    /// The payload type that RFC 3551 assigns for good, or nil where it is negotiated.
    package let staticPayloadType: UInt8?
    /// Audio per packet unless told otherwise.
    public let defaultPtime: Duration
    /// The ptimes that encoders take.
    package let ptimes: ClosedRange<Duration>
    /// Of `ptimes`, encoders take the shortest and the multiples of this.
    package let ptimeStep: Duration
    /// Channels as `a=rtpmap` writes them, when other than those of `format`: Opus always says 2 (RFC 7587, 4.1).
    package let rtpmapChannelCount: Int

    /// A description with the given parts.
    ///
    /// A registry refuses one that is outside the ranges.
    /// - Parameters:
    ///   - name: The encoding name, of visible ASCII characters other than "/".
    ///   - clockRate: RTP timestamp units per second, 1000 to 384,000.
    ///   - format: What encoders take and decoders give, of 1000 to 384,000 Hz and 1 to 8 channels.
    ///   - staticPayloadType: The payload type that RFC 3551 assigns, 0 to 127; nil where it is negotiated.
    ///   - defaultPtime: Audio per packet unless told otherwise, one of `ptimes`.
    ///   - ptimes: The ptimes that encoders take, above 0 and at most 200 ms.
    ///   - ptimeStep: Of those, encoders take the shortest and the multiples of this, which is 1 ms at least.
    ///   - rtpmapChannelCount: Channels as `a=rtpmap` writes them, 1 to 8; nil for those of `format`.
    public init(
        name: String,
        clockRate: Int,
        format: AudioFormat,
        staticPayloadType: UInt8? = nil,
        defaultPtime: Duration = .milliseconds(20),
        ptimes: ClosedRange<Duration> = .milliseconds(10)...(.milliseconds(120)),
        ptimeStep: Duration = .milliseconds(10),
        rtpmapChannelCount: Int? = nil
    ) {
        self.name = name
        self.clockRate = clockRate
        self.format = format
        self.staticPayloadType = staticPayloadType
        self.defaultPtime = defaultPtime
        self.ptimes = ptimes
        self.ptimeStep = ptimeStep
        self.rtpmapChannelCount = rtpmapChannelCount ?? format.channelCount
    }
}

/// What an application asks of an encoder.
///
/// A codec that has no such knob ignores the value, and says so in its own documentation.
public struct EncoderConfiguration: Hashable, Sendable {
    /// Audio per packet; nil takes the codec's default.
    public var ptime: Duration?
    /// Channels to encode; the samples handed to `encode` have as many.
    ///
    /// A codec with a fixed count, such as L16, takes only its own.
    public var channelCount = 1
    /// Target rate of the payload in bit/s; nil takes the codec's default.
    public var bitrate: Int?
    /// Work per frame, 0 to 10: Opus costs twice the CPU at 9 that it costs at 5.
    public var complexity = 5
    /// Whether packets carry a coarse copy of the one before (in-band FEC).
    public var usesFEC = false
    /// The loss, 0 to 100 %, that FEC is to be strong against.
    public var expectedLossPercent = 10
    /// Whether silence is left out (DTX).
    public var usesDTX = false
    /// The receiver's format parameters, as in `a=fmtp` after the payload type: "useinbandfec=1;stereo=1".
    ///
    /// Empty means that nothing is known of the receiver.
    public var remoteParameters = ""

    /// The defaults: mono, complexity 5, no FEC, no DTX.
    public init() {}
}

/// A codec: it describes itself and makes encoders and decoders.
///
/// Thread: control; the encoders and decoders that it makes are then used by the media thread.
public protocol AudioCodec: Sendable {
    /// Name, rates and ptimes.
    var description: CodecDescription { get }

    /// The format parameters that tell a sender what this receiver takes (`a=fmtp`), or "" for none.
    ///
    /// - Parameter configuration: What the application wishes; a receiver that wants FEC says so here.
    /// - Returns: The parameters.
    func receiveParameters(for configuration: EncoderConfiguration) -> String

    /// Makes an encoder.
    ///
    /// - Throws: `CodecError` when the configuration asks for what the codec cannot do.
    func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder

    /// Makes a decoder whose samples have `channelCount` channels.
    ///
    /// - Throws: `CodecError` when the library refuses.
    func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder
}

extension AudioCodec {
    /// No parameters.
    public func receiveParameters(for configuration: EncoderConfiguration) -> String { "" }
}

/// Turns samples into payloads.
///
/// Thread: media; it must not allocate, lock or wait.
public protocol AudioEncoder: AnyObject {
    /// The samples that `encode` takes.
    var format: AudioFormat { get }
    /// Frames in each packet.
    var frameCount: Int { get }
    /// By how much a sound comes out of the decoder later than it went into the encoder, the packet's own length left
    /// out: 6.5 ms for Opus (RFC 6716, section 2), nothing for G.711.
    var lookahead: Duration { get }
    /// The bitrate that the encoder began with, in bit/s; nil when it has one rate, or cannot tell.
    var bitrate: Int? { get }
    /// Whether the encoder has in-band FEC, and the receiver takes it.
    var canUseFEC: Bool { get }

    /// Encodes one packet.
    ///
    /// - Parameters:
    ///   - samples: `frameCount` frames of `format`, interleaved: `frameCount` × channels samples.
    ///   - payload: Where the payload goes, from its first byte on, no more than there is room for: 4000 bytes in calls.
    /// - Returns: The payload's byte count; 0 means that nothing need be sent (DTX).
    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int

    /// Follows a change of rate, FEC or expected loss while running. What a codec cannot change it ignores.
    func adapt(bitrate: Int?, usesFEC: Bool, expectedLossPercent: Int)
}

extension AudioEncoder {
    /// None.
    public var lookahead: Duration { .zero }

    /// One rate.
    public var bitrate: Int? { nil }

    /// No FEC.
    public var canUseFEC: Bool { false }

    /// Ignores the change: the codec has one way to work.
    public func adapt(bitrate: Int?, usesFEC: Bool, expectedLossPercent: Int) {}
}

/// Turns payloads into samples.
///
/// Thread: media; it must not allocate, lock or wait. No payload makes it trap.
public protocol AudioDecoder: AnyObject {
    /// The samples that come out.
    var format: AudioFormat { get }

    /// Frames that `payload` holds, without decoding it; 0 when it is not of this codec.
    func frameCount(of payload: Span<UInt8>) -> Int

    /// Decodes one packet.
    ///
    /// - Parameters:
    ///   - payload: What the packet holds.
    ///   - samples: Where the frames go, interleaved, from the first sample on, no more than there is room for.
    /// - Returns: The frames written, of `format`; 0 when `payload` is not of this codec or does not fit.
    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int

    /// Decodes the copy of the packet before `next` that `next` carries.
    ///
    /// - Parameters:
    ///   - next: The packet after the lost one; it must be decoded itself afterwards.
    ///   - frameCount: Frames that the lost packet held.
    ///   - samples: Where the frames go, interleaved; there is room for `frameCount` at least.
    /// - Returns: The frames written; 0 when `next` carries no copy.
    func decodeFEC(in next: Span<UInt8>, frameCount: Int, into samples: inout MutableSpan<Int16>) -> Int

    /// Whether `payload` carries a copy of the packet before it.
    func carriesFEC(_ payload: Span<UInt8>) -> Bool

    /// Writes `frameCount` frames in place of audio that did not arrive, continuing what was decoded last.
    ///
    /// All of them are written, interleaved: `frameCount` × channels samples, for which there is room.
    func conceal(frameCount: Int, into samples: inout MutableSpan<Int16>)

    /// Forgets the past: the next packet belongs to another source.
    func reset()
}

extension AudioDecoder {
    /// Answers that there is no copy.
    public func carriesFEC(_ payload: Span<UInt8>) -> Bool { false }

    /// Answers that there is no copy.
    public func decodeFEC(in next: Span<UInt8>, frameCount: Int, into samples: inout MutableSpan<Int16>) -> Int { 0 }
}

/// Why an encoder or decoder could not be made.
public typealias CodecError = Failure<CodecFault>

/// The kinds of `CodecError`.
public enum CodecFault: Hashable, Sendable {
    /// No codec of that name is registered.
    case unknownCodec
    /// The codec cannot do what the configuration asks.
    case unsupportedConfiguration
    /// The codec's library failed.
    case libraryFailure
}
