internal import FoundationEssentials

/// What tells the formats apart that are like Twilio's Media Streams.
///
///                   Twilio          Telnyx            Exotel            Plivo
///     the stream    streamSid       stream_id         stream_sid        streamId
///     numbers       strings         strings           strings           numbers
///     sound         u-law           u-law             16 bits           u-law
///     commands      media, mark,    as Twilio         as Twilio         playAudio, checkpoint,
///                   clear                                               clearAudio, sendDTMF
///     answers       mark            mark              mark              playedStream, clearedAudio
///
/// Source: the documentation of each, "WebSocket messages", "media streaming", "AgentStream", "audio streaming".
struct MediaStreamsDialect: Sendable {
    let format: AgentFormat
    let sampleRate: Int

    init(_ format: AgentFormat, sampleRate: Int) { (self.format, self.sampleRate) = (format, sampleRate) }

    /// What a call and its stream are called.
    struct Names: Sendable {
        var stream: String
        var account: String
        var call = ""
    }

    private var isLinear: Bool { format == .exotel }
    private var hasNumbers: Bool { format == .plivo }

    /// The commands of the agent.
    var soundEvent: String { format == .plivo ? "playAudio" : "media" }
    var markEvent: String { format == .plivo ? "checkpoint" : "mark" }
    var clearEvent: String { format == .plivo ? "clearAudio" : "clear" }
    var keysEvent: String { format == .plivo ? "sendDTMF" : "dtmf" }

    // MARK: To the agent

    /// The first message; nil where there is none before start.
    var connected: String? {
        switch format {
        case .twilio: #"{"event":"connected","protocol":"Call","version":"1.0.0"}"#
        case .telnyx: #"{"event":"connected","version":"1.0.0"}"#
        case .exotel: #"{"event":"connected"}"#
        default: nil
        }
    }

    /// A message of the stream, its number known.
    func message(_ event: String, number: Int, _ names: Names, _ members: String) -> String {
        let (stream, sequence) =
            switch format {
            case .telnyx: ("stream_id", "sequence_number")
            case .exotel: ("stream_sid", "sequence_number")
            case .plivo: ("streamId", "sequenceNumber")
            default: ("streamSid", "sequenceNumber")
            }
        let head = #""event":"\#(event)","\#(sequence)":\#(numeral(number)),"\#(stream)":"\#(names.stream)""#
        return "{\(head)\(members.isEmpty ? "" : ",")\(members)}"
    }

    private func numeral(_ number: Int) -> String { hasNumbers ? "\(number)" : "\"\(number)\"" }

    /// The members of start, with what the agent is told of the call.
    func start(_ names: Names, _ parameters: [String: String]) -> String {
        let told = JSONText.object(parameters)
        let call = JSONText.quoted(names.call)
        // Where a format has a place of its own for them.
        let parties = ["from", "to"].compactMap { key in parameters[key].map { #""\#(key)":\#(JSONText.quoted($0)),"# }
        }
        switch format {
        case .telnyx:
            let media = #"{"encoding":"PCMU","sample_rate":\#(sampleRate),"channels":1}"#
            return #""start":{"user_id":"\#(names.account)","call_control_id":\#(call),\#(parties.joined())"#
                + #""custom_parameters":\#(told),"media_format":\#(media)}"#
        case .exotel:
            let media = #"{"encoding":"audio/x-raw","sample_rate":"\#(sampleRate)","bit_rate":"16"}"#
            return #""start":{"stream_sid":"\#(names.stream)","call_sid":\#(call),"account_sid":"\#(names.account)","#
                + #"\#(parties.joined())"custom_parameters":\#(told),"media_format":\#(media)}"#
        case .plivo:
            let media = #"{"encoding":"audio/x-mulaw","sampleRate":\#(sampleRate)}"#
            return #""start":{"callId":\#(call),"streamId":"\#(names.stream)","accountId":"\#(names.account)","#
                + #""tracks":["inbound"],"mediaFormat":\#(media)},"extra_headers":\#(JSONText.quoted(told))"#
        default:
            let media = #"{"encoding":"audio/x-mulaw","sampleRate":\#(sampleRate),"channels":1}"#
            return #""start":{"accountSid":"\#(names.account)","callSid":\#(call),"streamSid":"\#(names.stream)","#
                + #""tracks":["inbound"],"mediaFormat":\#(media),"customParameters":\#(told)}"#
        }
    }

    /// The members of sound: which piece it is, and how many ms came before it.
    func media(_ samples: [Int16], chunk: Int, timestamp: Int) -> String {
        let track = format == .exotel ? "" : #""track":"inbound","#
        let text = Data(isLinear ? LinearSound.bytes(samples) : MuLawSound.bytes(samples)).base64EncodedString()
        return #""media":{\#(track)"chunk":\#(numeral(chunk)),"timestamp":"\#(timestamp)","payload":"\#(text)"}"#
    }

    func key(_ key: Character) -> String {
        let digit = JSONText.quoted(String(key))
        return switch format {
        case .twilio: #""dtmf":{"track":"inbound_track","digit":\#(digit)}"#
        case .plivo: #""dtmf":{"track":"inbound","digit":\#(digit)}"#
        default: #""dtmf":{"digit":\#(digit)}"#
        }
    }

    /// What became of a mark: an event and its members; nil where that is not told.
    func mark(_ name: String, _ fate: MarkFate, position: Int) -> (event: String, members: String)? {
        let told = #""played":\#(fate == .played),"positionMs":\#(position)"#
        let name = #""name":\#(JSONText.quoted(name))"#
        guard format == .plivo else { return ("mark", #""mark":{\#(name),\#(told)}"#) }
        // Its agents take what is told for played; what was cleared they know by clearedAudio.
        return fate == .played ? ("playedStream", "\(name),\(told)") : nil
    }

    func stop(_ names: Names, _ reason: String?) -> String {
        let told = reason.map { #","reason":\#(JSONText.quoted($0))"# } ?? ""
        let (account, call) =
            switch format {
            case .telnyx: ("user_id", "call_control_id")
            case .exotel: ("account_sid", "call_sid")
            case .plivo: ("accountId", "callId")
            default: ("accountSid", "callSid")
            }
        return #""stop":{"\#(account)":"\#(names.account)","\#(call)":\#(JSONText.quoted(names.call))\#(told)}"#
    }

    // MARK: From the agent

    /// Sound that an agent has sent; nil where it is none.
    func samples(_ payload: Data) -> [Int16]? {
        guard let bytes = Data(base64Encoded: payload).map({ Array($0) }) else { return nil }
        if isLinear { return bytes.count % 2 == 0 ? LinearSound.samples(bytes[...]) : nil }
        return MuLawSound.samples(bytes)
    }

    /// Whether sound is what this stream has, where it says so.
    func takes(contentType: String?, sampleRate: Int?) -> Bool {
        (contentType ?? "audio/x-mulaw") == "audio/x-mulaw" && sampleRate ?? self.sampleRate == self.sampleRate
            || format != .plivo
    }
}
