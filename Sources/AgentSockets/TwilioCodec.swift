internal import CallBasics
internal import FoundationEssentials
internal import MediaEngine

/// Twilio's Media Streams: JSON, and u-law of 8 kHz in Base64.
///
///     connected, start, media, dtmf, mark, stop ──► agent          media, mark, clear ──► call
///     speech, transferFailed ──► agent                             dtmf, hold, resume, transfer, hangup ──► call
///
/// The second line is of this project's own, and so are "played" and "positionMs" in a mark that comes back (whether what came
/// before it was heard, and how much of all that the agent has said by then), and "reason" in stop.
/// Source: Twilio, Media Streams, WebSocket messages.
package struct TwilioCodec: AgentCodec {
    package static let canClear = true
    package let sampleRate = 8000
    package private(set) var malformedCount = 0
    private let stream: String
    private let account: String
    private var call = ""
    private var sequence = 0
    private var chunk = 0
    private var heardFrameCount = 0

    /// A stream whose names are drawn from `generator`.
    package init(_ generator: inout some RandomNumberGenerator) {
        func name(_ kind: String) -> String {
            let digits = (0..<4).map { _ in
                let part = String(UInt32.random(in: 0...UInt32.max, using: &generator), radix: 16)
                return String(repeating: "0", count: 8 - part.utf8.count) + part
            }
            return kind + digits.joined()
        }
        (stream, account) = (name("MZ"), name("AC"))
    }

    // MARK: To the agent

    package mutating func encode(_ notice: AgentNotice) -> [AgentFrame] {
        switch notice {
        case .begin(let call):
            self.call = call.callID
            let format = #""mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000,"channels":1}"#
            let told = call.parameters.sorted { $0.key < $1.key }.map { "\(Self.quoted($0)):\(Self.quoted($1))" }
            let start =
                #"{"accountSid":"\#(account)","callSid":\#(Self.quoted(call.callID)),"streamSid":"\#(stream)","#
                + #""tracks":["inbound"],\#(format),"customParameters":{\#(told.joined(separator: ","))}}"#
            let connected = Array(#"{"event":"connected","protocol":"Call","version":"1.0.0"}"#.utf8)
            return [.text(connected), message("start", start)]
        case .sound(let samples):
            var payload = [UInt8](repeating: 0, count: samples.count)
            var bytes = payload.mutableSpan
            G711.encodeMuLaw(samples.span, into: &bytes)
            chunk += 1
            let time = heardFrameCount / 8
            heardFrameCount += samples.count
            let text = Data(payload).base64EncodedString()
            let media = #"{"track":"inbound","chunk":"\#(chunk)","timestamp":"\#(time)","payload":"\#(text)"}"#
            return [message("media", media)]
        case .key(let key):
            return [message("dtmf", #"{"track":"inbound_track","digit":\#(Self.quoted(String(key)))}"#)]
        case .speech(let isSpeaking, let position):
            return [
                message("speech", #"{"state":"\#(isSpeaking ? "started" : "stopped")","timestamp":"\#(position)"}"#)
            ]
        case .mark(let name, let fate, let position):
            let told = #""played":\#(fate == .played),"positionMs":\#(position)"#
            return [message("mark", #"{"name":\#(Self.quoted(name)),\#(told)}"#)]
        case .transferFailed(let target, let status):
            return [message("transferFailed", #"{"to":\#(Self.quoted(target)),"code":\#(status)}"#)]
        case .end(let reason):
            let told = reason.map { #","reason":\#(Self.quoted($0))"# } ?? ""
            return [message("stop", #"{"accountSid":"\#(account)","callSid":\#(Self.quoted(call))\#(told)}"#)]
        }
    }

    private mutating func message(_ event: String, _ content: String) -> AgentFrame {
        sequence += 1
        let head = #""event":"\#(event)","sequenceNumber":"\#(sequence)","streamSid":"\#(stream)""#
        return .text(Array(#"{\#(head),"\#(event)":\#(content)}"#.utf8))
    }

    private static func quoted(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        // Every string can be written.
        return (try? encoder.encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }

    // MARK: From the agent

    private struct Message: Decodable {
        struct Media: Decodable { let payload: String }
        struct Mark: Decodable { let name: String }
        struct Keys: Decodable { let digit: String }
        struct Transfer: Decodable { let to: String }

        let event: String
        let media: Media?
        let mark: Mark?
        let dtmf: Keys?
        let transfer: Transfer?
    }

    package mutating func decode(_ frame: AgentFrame) -> [AgentRequest] {
        guard case .text(let bytes) = frame,
            let message = try? JSONDecoder().decode(Message.self, from: Data(bytes)),
            let command = Self.command(message)
        else {
            malformedCount += 1
            return []
        }
        return command
    }

    /// What a message asks for, nothing where it is of a kind that is not known; nil where it lacks something.
    private static func command(_ message: Message) -> [AgentRequest]? {
        switch message.event {
        case "media":
            guard let payload = message.media?.payload, let bytes = Data(base64Encoded: payload) else { return nil }
            var samples = [Int16](repeating: 0, count: bytes.count)
            var room = samples.mutableSpan
            G711.decodeMuLaw(Array(bytes).span, into: &room)
            return [.sound(samples)]
        case "mark":
            guard let name = message.mark?.name, name.utf8.count <= Self.nameLimit else { return nil }
            return [.mark(name)]
        case "clear": return [.clear]
        case "dtmf":
            guard let keys = message.dtmf?.digit, 1...keyLimit ~= keys.utf8.count,
                keys.allSatisfy({ DTMFDigit($0) != nil })
            else { return nil }
            return [.press(keys)]
        case "hold": return [.hold(true)]
        case "resume": return [.hold(false)]
        case "transfer":
            guard let target = message.transfer?.to, 1...nameLimit ~= target.utf8.count else { return nil }
            return [.transfer(to: target)]
        case "hangup": return [.hangUp]
        default: return []
        }
    }

    private static let nameLimit = 1024
    /// Keys of one message.
    private static let keyLimit = 64
}
