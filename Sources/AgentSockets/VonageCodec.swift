internal import FoundationEssentials

/// Vonage's WebSocket: sound in binary frames, and JSON.
///
///     websocket:connected, sound, websocket:dtmf ──► agent         sound, clear, notify ──► call
///     websocket:cleared, websocket:notify ──► agent
///
/// A notice that an agent asks for comes back as it was, once what came before it has been played; one that was cleared never does.
/// Source: Vonage, Voice API, WebSockets.
struct VonageCodec: AgentCodec {
    static let canClear = true
    let sampleRate: Int
    private(set) var malformedCount = 0

    init(sampleRate: Int) { self.sampleRate = sampleRate }

    mutating func encode(_ notice: AgentNotice) -> [AgentFrame] {
        switch notice {
        case .begin(let call):
            // Members of its own, among those that the format has.
            var members = call.parameters
            members["call_id"] = call.callID
            (members["event"], members["content-type"]) = ("websocket:connected", "audio/l16;rate=\(sampleRate)")
            return [Self.text(JSONText.object(members))]
        case .sound(let samples): return [.binary(LinearSound.bytes(samples))]
        case .key(let key):
            return [Self.text(#"{"event":"websocket:dtmf","digit":\#(JSONText.quoted(String(key)))}"#)]
        case .mark(let name, .played, _): return [Self.text(#"{"event":"websocket:notify","payload":\#(name)}"#)]
        case .cleared: return [Self.text(#"{"event":"websocket:cleared"}"#)]
        case .mark(_, .dropped, _), .waiting, .speech, .transferFailed, .end: return []
        }
    }

    private static func text(_ text: String) -> AgentFrame { .text(Array(text.utf8)) }

    /// Bytes of a text: a notice, and what is around it.
    private static let textLimit = 4096

    private struct Message: Decodable {
        let action: String
        let payload: JSONTree?
    }

    mutating func decode(_ frame: AgentFrame) -> [AgentRequest] {
        switch frame {
        case .binary(let bytes) where bytes.count % 2 == 0: return [.sound(LinearSound.samples(bytes[...]))]
        case .text(let bytes):
            guard bytes.count <= Self.textLimit,
                let message = try? JSONDecoder().decode(Message.self, from: Data(bytes))
            else { break }
            switch message.action {
            case "clear": return [.clear]
            case "notify":
                guard let payload = message.payload?.text, payload.utf8.count <= AgentLimits.name else { break }
                return [.mark(payload)]
            default: return []
            }
        case .binary: break
        }
        malformedCount += 1
        return []
    }
}

/// Any JSON, as it came.
private enum JSONTree: Codable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
    case list([JSONTree])
    case object([String: JSONTree])

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let integer = try? value.decode(Int64.self) {
            self = .integer(integer)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let list = try? value.decode([JSONTree].self) {
            self = .list(list)
        } else {
            self = .object(try value.decode([String: JSONTree].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let bool): try container.encode(bool)
        case .integer(let integer): try container.encode(integer)
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let list): try container.encode(list)
        case .object(let object): try container.encode(object)
        }
    }

    /// It as JSON, its members sorted.
    var text: String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }
}
