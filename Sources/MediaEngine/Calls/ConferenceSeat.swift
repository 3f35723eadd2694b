/// What links a call with a conference: it leaves there what is heard of it, and takes all the others.
///
///     receiving  … ─► meter ┬► tap ─► (conference)
///                           └► (gate) ─► sink, or the mixer of the call card
///     sending    source ─► gain ┬► adder ─► meter ─► …
///                               │   ▲
///                     others ───┼───┘
///                               └► voice ─► (recording of the conference)
///
/// The gate, which stands behind the converter to the sink's format, is shut, and the gain silent, while this side is not in the
/// conference.
/// Thread: control.
struct ConferenceSeat {
    /// Where the conference hears the call, and this side speaking to it.
    let heardInput: Int
    let voiceInput: Int
    let tap: SharedBlockWriter
    let voice: SharedBlockWriter
    /// Gives what the call hears of the conference, and adds it to what is said.
    let others: (source: Filter, adder: Filter)
    private let format: AudioFormat
    private let presence: GainControl

    /// A seat for the call of `stream`.
    ///
    /// - Parameters:
    ///   - stream: The call's.
    ///   - heard: The call's input of `mixer`.
    ///   - said: The call's input of the mixer of what this side says.
    ///   - mixer: Adds up what is heard of all calls.
    ///   - presence: Silences the conference here.
    init(
        _ stream: AudioStream,
        heard: (number: Int, block: SharedBlock),
        voice said: (number: Int, block: SharedBlock),
        in mixer: MixerFilter,
        _ presence: GainControl
    ) {
        (heardInput, voiceInput) = (heard.number, said.number)
        tap = SharedBlockWriter(heard.block, purpose: "what is heard, for the conference")
        voice = SharedBlockWriter(said.block, purpose: "what is said, for the conference's recording")
        let source = OthersFilter(mixer, without: heard.block, format: CallEngine.cardFormat)
        others = (source, AdderFilter(format: stream.format))
        format = stream.format
        self.presence = presence
    }

    private init(_ former: ConferenceSeat, _ stream: AudioStream) {
        (heardInput, voiceInput) = (former.heardInput, former.voiceInput)
        (tap, voice, presence) = (former.tap, former.voice, former.presence)
        format = stream.format
        let adder = former.format == format ? former.others.adder : AdderFilter(format: format)
        others = (former.others.source, adder)
    }

    /// The seat for another stream of the call; what fits stays.
    func adapted(to stream: AudioStream) -> ConferenceSeat { ConferenceSeat(self, stream) }

    /// What shuts a sink of `format` while this side is not in the conference.
    func makeGate(_ format: AudioFormat) -> GainFilter { GainFilter(format: format, presence) }

    var filters: [Filter] { [tap, voice, others.source, others.adder] }
}
