internal import FoundationEssentials
internal import MediaEngine

/// Twilio's Media Streams and the formats like it: JSON, and sound in Base64.
///
///     connected, start, media, dtmf, mark, stop ──► agent          media, mark, clear ──► call
///     speech, transferFailed ──► agent                             dtmf, hold, resume, transfer, hangup ──► call
///
/// The second line is of this project's own, and so are "played" and "positionMs" in a mark that comes back (whether what came
/// before it was heard, and how much of all that the agent has said by then), and "reason" in stop.
/// Source: Twilio, Media Streams, WebSocket messages; `MediaStreamsDialect` for the others.
package struct MediaStreamsCodec: AgentCodec {
    package static let canClear = true
    package private(set) var malformedCount = 0
    private let dialect: MediaStreamsDialect
    private var names: MediaStreamsDialect.Names
    private var sequence = 0
    private var chunk = 0
    private var heardFrameCount = 0

    package var sampleRate: Int { dialect.sampleRate }

    /// Twilio's own, with names that are drawn from `generator`.
    package init(_ generator: inout some RandomNumberGenerator) {
        self.init(MediaStreamsDialect(.twilio, sampleRate: 8000), &generator)
    }

    /// A stream whose names are drawn from `generator`.
    init(_ dialect: MediaStreamsDialect, _ generator: inout some RandomNumberGenerator) {
        func name(_ kind: String) -> String {
            let digits = (0..<4).map { _ in
                let part = String(UInt32.random(in: 0...UInt32.max, using: &generator), radix: 16)
                return String(repeating: "0", count: 8 - part.utf8.count) + part
            }
            return kind + digits.joined()
        }
        self.dialect = dialect
        names = MediaStreamsDialect.Names(stream: name("MZ"), account: name("AC"))
    }

    // MARK: To the agent

    package mutating func encode(_ notice: AgentNotice) -> [AgentFrame] {
        switch notice {
        case .begin(let call):
            names.call = call.callID
            let connected = dialect.connected.map { [AgentFrame.text(Array($0.utf8))] } ?? []
            return connected + [message("start", dialect.start(names, call.parameters))]
        case .sound(let samples):
            chunk += 1
            let time = heardFrameCount * 1000 / sampleRate
            heardFrameCount += samples.count
            return [message("media", dialect.media(samples, chunk: chunk, timestamp: time))]
        case .key(let key): return [message("dtmf", dialect.key(key))]
        case .speech(let isSpeaking, let position):
            let state = isSpeaking ? "started" : "stopped"
            return [message("speech", #""speech":{"state":"\#(state)","timestamp":"\#(position)"}"#)]
        case .mark(let name, let fate, let position):
            guard let (event, members) = dialect.mark(name, fate, position: position) else { return [] }
            return [message(event, members)]
        case .waiting: return []
        case .cleared: return dialect.format == .plivo ? [message("clearedAudio", "")] : []
        case .transferFailed(let target, let status):
            return [
                message("transferFailed", #""transferFailed":{"to":\#(JSONText.quoted(target)),"code":\#(status)}"#)
            ]
        case .end(let reason): return [message("stop", dialect.stop(names, reason))]
        }
    }

    private mutating func message(_ event: String, _ members: String) -> AgentFrame {
        sequence += 1
        return .text(Array(dialect.message(event, number: sequence, names, members).utf8))
    }

    // MARK: From the agent

    private struct Message: Decodable {
        struct Media: Decodable {
            let payload: String
            let contentType: String?
            let sampleRate: Int?

            private enum CodingKeys: CodingKey { case payload, contentType, sampleRate }

            init(from decoder: any Decoder) throws {
                let members = try decoder.container(keyedBy: CodingKeys.self)
                payload = try members.decode(String.self, forKey: .payload)
                contentType = try? members.decode(String.self, forKey: .contentType)
                // Some write the number as a text; what is none fits no rate.
                let isTold = members.contains(.sampleRate) && (try? members.decodeNil(forKey: .sampleRate)) != true
                let text = try? members.decode(String.self, forKey: .sampleRate)
                let number = try? members.decode(Int.self, forKey: .sampleRate)
                sampleRate = isTold ? number ?? text.flatMap { Int($0) } ?? 0 : nil
            }
        }
        struct Mark: Decodable { let name: String }
        /// Of `dtmf` a member, of Plivo's `sendDTMF` the text itself.
        struct Keys: Decodable {
            let digit: String

            private enum CodingKeys: CodingKey { case digit }

            init(from decoder: any Decoder) throws {
                if let text = try? decoder.singleValueContainer().decode(String.self) {
                    digit = text
                } else {
                    digit = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .digit)
                }
            }
        }
        struct Transfer: Decodable { let to: String }

        let event: String
        let media: Media?
        let mark: Mark?
        let dtmf: Keys?
        let transfer: Transfer?
        /// Of a checkpoint.
        let name: String?

        private enum CodingKeys: CodingKey { case event, media, mark, dtmf, transfer, name }

        /// What a message does not need may be anything.
        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            event = try members.decode(String.self, forKey: .event)
            media = try? members.decode(Media.self, forKey: .media)
            mark = try? members.decode(Mark.self, forKey: .mark)
            dtmf = try? members.decode(Keys.self, forKey: .dtmf)
            transfer = try? members.decode(Transfer.self, forKey: .transfer)
            name = try? members.decode(String.self, forKey: .name)
        }
    }

    package mutating func decode(_ frame: AgentFrame) -> [AgentRequest] {
        if case .text(let bytes) = frame, let payload = PlainMedia.payload(of: bytes, event: dialect.soundEvent),
            let samples = dialect.samples(Data(bytes[payload]))
        {
            return [.sound(samples)]
        }
        guard case .text(let bytes) = frame,
            let message = try? JSONDecoder().decode(Message.self, from: Data(bytes)),
            let command = command(message)
        else {
            malformedCount += 1
            return []
        }
        return command
    }

    /// What a message asks for, nothing where it is of a kind that is not known; nil where it lacks something.
    private func command(_ message: Message) -> [AgentRequest]? {
        switch message.event {
        case dialect.soundEvent:
            guard let media = message.media,
                dialect.takes(contentType: media.contentType, sampleRate: media.sampleRate),
                let samples = dialect.samples(Data(media.payload.utf8))
            else { return nil }
            return [.sound(samples)]
        case dialect.markEvent:
            guard let name = message.mark?.name ?? message.name, name.utf8.count <= AgentLimits.name else { return nil }
            return [.mark(name)]
        case dialect.clearEvent: return [.clear]
        case "dtmf", dialect.keysEvent:
            guard let keys = message.dtmf?.digit, 1...AgentLimits.keys ~= keys.utf8.count,
                keys.allSatisfy({ DTMFDigit($0) != nil })
            else { return nil }
            return [.press(keys)]
        case "hold": return [.hold(true)]
        case "resume": return [.hold(false)]
        case "transfer":
            guard let target = message.transfer?.to, 1...AgentLimits.name ~= target.utf8.count else { return nil }
            return [.transfer(to: target)]
        case "hangup": return [.hangUp]
        default: return []
        }
    }
}

/// What an agent may send of texts, in bytes.
enum AgentLimits {
    /// The name of a mark, and whom a call is handed to.
    static let name = 1024
    /// Keys of one message.
    static let keys = 64
}
