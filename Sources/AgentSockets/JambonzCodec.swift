internal import FoundationEssentials

/// What `listen` of jambonz speaks: sound in binary frames, and JSON.
///
///     attributes of the call, sound, dtmf, mark ──► agent          sound, playAudio, killAudio, mark, disconnect ──► call
///
/// Marks come back as "playout" or "cleared". An odd byte at the end of a frame belongs to the next one.
/// Source: jambonz, `listen`; its documentation.
struct JambonzCodec: AgentCodec {
    static let canClear = true
    let sampleRate: Int
    private(set) var malformedCount = 0
    private var stream = LinearSoundStream()

    init(sampleRate: Int) { self.sampleRate = sampleRate }

    mutating func encode(_ notice: AgentNotice) -> [AgentFrame] {
        switch notice {
        case .begin(let call):
            let call = ["callSid": call.callID].merging(call.parameters) { id, _ in id }
            let members = JSONText.object(call).dropLast()
            return [Self.text(#"\#(members),"sampleRate":\#(sampleRate),"mixType":"mono"}"#)]
        case .sound(let samples): return [.binary(LinearSound.bytes(samples))]
        case .key(let key): return [Self.text(#"{"event":"dtmf","dtmf":\#(JSONText.quoted(String(key)))}"#)]
        case .mark(let name, let fate, _):
            let event = fate == .played ? "playout" : "cleared"
            return [Self.text(#"{"type":"mark","data":{"name":\#(JSONText.quoted(name)),"event":"\#(event)"}}"#)]
        case .waiting, .speech, .cleared, .transferFailed, .end: return []
        }
    }

    private static func text(_ text: String) -> AgentFrame { .text(Array(text.utf8)) }

    private struct Message: Decodable {
        struct Content: Decodable {
            let name: String?
            let audioContentType: String?
            let sampleRate: Int?
            let audioContent: String?
        }

        let type: String
        let data: Content?
    }

    mutating func decode(_ frame: AgentFrame) -> [AgentRequest] {
        switch frame {
        case .binary(let bytes):
            return [.sound(stream.samples(bytes))]
        case .text(let bytes):
            if let message = try? JSONDecoder().decode(Message.self, from: Data(bytes)),
                let requests = requests(message)
            {
                return requests
            }
        }
        malformedCount += 1
        return []
    }

    private mutating func requests(_ message: Message) -> [AgentRequest]? {
        switch message.type {
        case "killAudio":
            stream.reset()
            return [.clear]
        case "disconnect": return [.hangUp]
        case "mark":
            guard let name = message.data?.name, name.utf8.count <= AgentLimits.name else { return nil }
            return [.mark(name)]
        case "playAudio":
            // Of the stream's own rate, and without a header.
            guard let data = message.data, data.audioContentType == "raw", data.sampleRate ?? sampleRate == sampleRate,
                let bytes = data.audioContent.flatMap({ Data(base64Encoded: $0) }).map({ Array($0) }),
                bytes.count % 2 == 0
            else { return nil }
            return [.sound(LinearSound.samples(bytes[...]))]
        default: return []
        }
    }
}
