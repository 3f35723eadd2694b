import MediaEngine
import SDP

/// What a captured stream is, and so what can be made of it.
enum StreamContent: Sendable {
    /// Sound that can be heard.
    case sound(Sound)
    /// Telephone events alone.
    case keys
    /// Ciphertext, which is not taken for sound.
    case encrypted(EncryptionSigns.Sign)
    /// Of a kind that has no decoder here: its name, who says so, and why there is none.
    case undecodable(name: String, saidBy: String, reason: String)
    /// A payload type that nothing describes, and whose lengths are not those of Opus.
    case unknown

    /// Sound with a decoder.
    struct Sound: Sendable {
        let codec: CodecDescription
        /// The codec's name with rate and channels, as the registry finds it.
        let codecName: String
        /// What says that it is that codec.
        let saidBy: String
        let ptime: Duration
        /// The stream's other payload types that have a decoder, too.
        let others: [AgreedCodec]
    }

    /// Who says what a stream is.
    enum Source {
        static let option = "option"
        static let description = "session description"
        static let payloadType = "payload type"
        static let guess = "guess"
    }

    /// Finds out what `stream` is.
    ///
    /// - Parameters:
    ///   - stream: One of `capture`.
    ///   - capture: The streams, and what is said of them.
    ///   - survey: What its packets tell.
    ///   - payloadType: That of the sound.
    ///   - asked: The codec that the user names; it is believed, unless the stream is encrypted.
    ///   - registry: The decoders that there are.
    /// - Throws: `CodecError` when the codec that is named is not here.
    init(
        of stream: CapturedStreams.Stream,
        in capture: CapturedStreams,
        _ survey: StreamSurvey,
        payloadType: UInt8,
        asked: String?,
        _ registry: PluginRegistry
    ) throws(CodecError) {
        if let sign = capture.encryption(of: stream, survey) {
            self = .encrypted(sign)
            return
        }
        let others = Self.others(of: stream, in: capture, payloadType, registry)
        func sound(_ name: String, _ saidBy: String) throws(CodecError) -> StreamContent {
            let codec = try registry.codec(named: name).description
            let ptime = survey.packetUnits.map {
                Duration.nanoseconds(Int64($0) * 1_000_000_000 / Int64(codec.clockRate))
            }
            let isUsual = ptime.map { Duration.milliseconds(1)...Duration.milliseconds(200) ~= $0 } ?? false
            return .sound(
                Sound(
                    codec: codec,
                    codecName: name,
                    saidBy: saidBy,
                    ptime: isUsual ? ptime ?? codec.defaultPtime : codec.defaultPtime,
                    others: others
                )
            )
        }
        if let asked {
            self = try sound(asked, Source.option)
        } else if capture.hasKeysAlone(stream) {
            self = .keys
        } else if let (format, isDescribed) = capture.format(payloadType, of: stream) {
            let saidBy = isDescribed ? Source.description : Source.payloadType
            do throws(CodecError) {
                self = try sound(Self.name(format), saidBy)
            } catch {
                self = .undecodable(name: format.encodingName, saidBy: saidBy, reason: error.message)
            }
        } else {
            self = survey.isNoOpus ? .unknown : try sound("opus", Source.guess)
        }
    }

    /// The codecs that the stream changes to in its middle, as far as they have a decoder.
    private static func others(
        of stream: CapturedStreams.Stream,
        in capture: CapturedStreams,
        _ payloadType: UInt8,
        _ registry: PluginRegistry
    ) -> [AgreedCodec] {
        var codecs: [AgreedCodec] = []
        for type in capture.otherSoundTypes(of: stream, than: payloadType) {
            guard let format = capture.format(type, of: stream)?.format else { continue }
            do throws(CodecError) {
                _ = try registry.codec(named: name(format))
                codecs.append(AgreedCodec(name(format), payloadType: type))
            } catch {
                // A type without a decoder is told of by `CaptureReplay.notes`.
                continue
            }
        }
        return codecs
    }

    /// As `a=rtpmap` writes it, so that the registry finds the very one.
    private static func name(_ format: SDP.PayloadFormat) -> String {
        "\(format.encodingName)/\(format.clockRate)" + (format.channelCount > 1 ? "/\(format.channelCount)" : "")
    }

    /// The codec's name, or what stands for it, and who says so; nil where nobody knows.
    var codec: (name: String, saidBy: String)? {
        switch self {
        case .sound(let sound): (sound.codec.name, sound.saidBy)
        case .undecodable(let name, let saidBy, _): (name, saidBy)
        case .keys: ("telephone-event", Source.payloadType)
        case .encrypted, .unknown: nil
        }
    }

    /// Why no sound is heard, in a sentence; nil when it is.
    var notHeard: String? {
        switch self {
        case .sound: nil
        case .keys: "It has telephone events alone, and no sound."
        case .encrypted(let sign): "It is encrypted (\(sign.text)), so no sound is heard and no quality is told."
        case .undecodable(_, _, let reason): "No sound is heard: \(reason)"
        case .unknown: "Nothing says what it is, and its lengths are not those of Opus. Name the codec with --codec."
        }
    }
}
