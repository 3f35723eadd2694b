internal import FoundationEssentials

/// The WebSocket channel of Asterisk: sound in binary frames, events and commands in text.
///
///     MEDIA_START, sound, DTMF_END, MEDIA_XOFF, MEDIA_XON,          sound, START_ and STOP_MEDIA_BUFFERING, MARK_MEDIA,
///     MEDIA_MARK_PROCESSED, MEDIA_BUFFERING_COMPLETED,              FLUSH_, PAUSE_ and CONTINUE_MEDIA, GET_STATUS,
///     QUEUE_DRAINED, STATUS, ERROR ──► agent                        REPORT_QUEUE_DRAINED, SET_MEDIA_DIRECTION, HANGUP ──► call
///
/// Sound that fills no frame is not lost, and what is said behind MEDIA_XOFF is neither; half a sample is, but between pieces that are
/// buffered. What is told of the queue, and ERROR, come with the next 20 ms of the call; ERROR in JSON alone. MEDIA_MARK_DROPPED, and "position_ms" in both
/// events of marks, are of this project's own, in JSON alone.
/// Source: Asterisk, WebSocket channel driver; its documentation.
struct AsteriskCodec: AgentCodec {
    static let canClear = true
    let sampleRate: Int
    private(set) var malformedCount = 0
    private let isPlain: Bool
    /// What the connection is called, a UUID.
    private let connection: String
    /// What the call is called.
    private var channel = ""
    private var stream = LinearSoundStream()
    private var direction = Direction.both
    /// Whether the agent has said that it sends in pieces, and that what waits goes on waiting.
    private var (isBuffering, isPaused) = (false, false)
    /// Whether it was told that too much waits.
    private var isFull = false
    /// What was wrong with commands, to be told.
    private var complaints: [String] = []
    /// Whether it has asked how much waits, and when nothing does.
    private var (isStatusWanted, isDrainWanted) = (false, false)

    private enum Direction: String {
        case both
        /// What the agent says is heard by nobody.
        case `in`
        /// The agent hears nothing.
        case out
    }

    init(sampleRate: Int, isPlain: Bool, connection: String) {
        (self.sampleRate, self.isPlain, self.connection) = (sampleRate, isPlain, connection)
    }

    /// Draws a name for a connection, a UUID.
    static func connectionName(_ generator: inout some RandomNumberGenerator) -> String {
        let digits = String(UInt128.random(in: 0...UInt128.max, using: &generator), radix: 16)
        let all = String(repeating: "0", count: 32 - digits.utf8.count) + digits
        var rest = all[...]
        return [8, 4, 4, 4, 12].map { count in
            defer { rest = rest.dropFirst(count) }
            return String(rest.prefix(count))
        }.joined(separator: "-")
    }

    private var isMuLaw: Bool { sampleRate == 8000 }

    // MARK: To the agent

    mutating func encode(_ notice: AgentNotice) -> [AgentFrame] {
        switch notice {
        case .begin(let call): return begin(call)
        case .sound(let samples):
            guard direction != .out else { return [] }
            return [.binary(isMuLaw ? MuLawSound.bytes(samples) : LinearSound.bytes(samples))]
        case .waiting(let frameCount): return tell(waiting: frameCount)
        case .key(let key):
            let digit = String(key)
            let own: [(String, Member)] = isPlain ? [("channel_id", .text(lineName))] : []
            return [event("DTMF_END", [("digit", .text(digit))] + own)]
        case .mark(let name, let fate, let position): return mark(name, fate, position)
        case .speech, .cleared, .transferFailed, .end: return []
        }
    }

    private mutating func begin(_ call: AgentCall) -> [AgentFrame] {
        channel = call.callID
        let format = isMuLaw ? "ulaw" : "slin\(sampleRate / 1000)"
        let frameSize = sampleRate / 50 * (isMuLaw ? 1 : 2)
        guard isPlain else {
            let members: [(String, Member)] = [
                ("connection_id", .text(connection)), ("channel", .text("WebSocket/\(connection)")),
                ("format", .text(format)), ("optimal_frame_size", .number(frameSize)), ("ptime", .number(20)),
                ("channel_variables", .object(call.parameters)),
            ]
            return [event("MEDIA_START", members)]
        }
        return [
            Self.text(
                "MEDIA_START connection_id:\(connection) channel:WebSocket/\(connection) channel_id:\(lineName) format:\(format) "
                    + "optimal_frame_size:\(frameSize) ptime:20"
            )
        ]
    }

    /// What the call is called in lines, whose members end with a blank.
    private var lineName: String { String(channel.map { $0.isWhitespace || !$0.isASCII ? "_" : $0 }) }

    /// What there is to tell of the queue.
    private mutating func tell(waiting frameCount: Int) -> [AgentFrame] {
        let count = (frameCount * 50 + sampleRate - 1) / sampleRate
        var frames = complaints.map { event("ERROR", [("error_text", .text($0))]) }
        complaints = []
        if !isFull, count >= Self.fullCount {
            isFull = true
            frames.append(event("MEDIA_XOFF"))
        } else if isFull, count < Self.roomCount {
            isFull = false
            frames.append(event("MEDIA_XON"))
        }
        if isDrainWanted, count == 0 {
            isDrainWanted = false
            frames.append(event("QUEUE_DRAINED"))
        }
        if isStatusWanted {
            isStatusWanted = false
            let own: [(String, Member)] = isPlain ? [("channel_id", .text(lineName))] : []
            let members: [(String, Member)] = [
                ("queue_length", .number(count)), ("xon_level", .number(Self.roomCount)),
                ("xoff_level", .number(Self.fullCount)), ("queue_full", .bool(isFull)),
                ("bulk_media", .bool(isBuffering)), ("media_paused", .bool(isPaused)),
            ]
            frames.append(event("STATUS", own + members))
        }
        return frames
    }

    private func mark(_ name: String, _ fate: MarkFate, _ position: Int) -> [AgentFrame] {
        let isBuffered = name.hasPrefix(Self.buffered)
        let identifier = isBuffered ? Substring(name.utf8.dropFirst(Self.buffered.utf8.count + 1)) : name[...]
        let word =
            switch fate {
            case .played: isBuffered ? "MEDIA_BUFFERING_COMPLETED" : "MEDIA_MARK_PROCESSED"
            // Asterisk says neither, and agents that read lines know no other word.
            case .dropped: isBuffered || isPlain ? nil : "MEDIA_MARK_DROPPED"
            }
        guard let word else { return [] }
        guard !isPlain else { return [Self.text(identifier.isEmpty ? word : "\(word) \(identifier)")] }
        return [
            event(
                word,
                [("correlation_id", .text(String(identifier)))]
                    + (isBuffered ? [] : [("position_ms", .number(position))])
            )
        ]
    }

    private enum Member {
        case text(String)
        case number(Int)
        case bool(Bool)
        case object([String: String])

        var json: String {
            switch self {
            case .text(let text): JSONText.quoted(text)
            case .number(let number): "\(number)"
            case .bool(let bool): "\(bool)"
            case .object(let members): JSONText.object(members)
            }
        }

        var plain: String {
            switch self {
            case .text(let text): text
            case .number(let number): "\(number)"
            case .bool(let bool): "\(bool)"
            case .object: ""
            }
        }
    }

    private func event(_ word: String, _ members: [(String, Member)] = []) -> AgentFrame {
        guard !isPlain else {
            return Self.text(([word] + members.map { "\($0):\($1.plain)" }).joined(separator: " "))
        }
        let all = [("channel_id", Member.text(channel))] + members
        let told = all.map { #""\#($0)":\#($1.json)"# }.joined(separator: ",")
        return Self.text(#"{"event":"\#(word)",\#(told)}"#)
    }

    private static func text(_ text: String) -> AgentFrame { .text(Array(text.utf8)) }

    // MARK: From the agent

    mutating func decode(_ frame: AgentFrame) -> [AgentRequest] {
        switch frame {
        case .binary(let bytes):
            guard direction != .in else { return [] }
            if !isBuffering { stream.reset() }
            return [.sound(isMuLaw ? MuLawSound.samples(bytes) : stream.samples(bytes))]
        case .text(let bytes):
            guard let command = command(bytes) else { return refuse("This is no command: it cannot be read.") }
            if let requests = requests(command) { return requests }
            return refuse("\(command.command) is not known, or may not come now or in this form.")
        }
    }

    /// Counts what is not understood, and keeps for the agent why.
    private mutating func refuse(_ complaint: String) -> [AgentRequest] {
        malformedCount += 1
        if !isPlain, complaints.count < Self.complaintLimit { complaints.append(complaint) }
        return []
    }

    private struct Command: Decodable {
        let command: String
        var correlation: String?
        var direction: String?

        enum CodingKeys: String, CodingKey {
            case command
            case correlation = "correlation_id"
            case direction
        }
    }

    private func command(_ bytes: [UInt8]) -> Command? {
        guard bytes.count <= Self.textLimit else { return nil }
        guard isPlain else { return try? JSONDecoder().decode(Command.self, from: Data(bytes)) }
        let line = bytes.drop { $0 <= 0x20 }
        let end = line.lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? line.startIndex
        let word = line[..<end].prefix { $0 != 0x20 }
        guard !word.isEmpty else { return nil }
        let others = line[..<end].dropFirst(word.count + 1)
        let rest = others.isEmpty ? nil : String(decoding: others, as: UTF8.self)
        return Command(command: String(decoding: word, as: UTF8.self), correlation: rest, direction: rest)
    }

    /// What a command asks for; nil where it is not known, or may not come.
    private mutating func requests(_ command: Command) -> [AgentRequest]? {
        switch command.command {
        case "START_MEDIA_BUFFERING":
            guard direction != .in else { return nil }
            isBuffering = true
            return []
        case "STOP_MEDIA_BUFFERING":
            guard direction != .in else { return nil }
            isBuffering = false
            stream.reset()
            return mark(Self.buffered, command.correlation)
        case "MARK_MEDIA":
            let identifier = command.correlation ?? ""
            guard direction != .in, !identifier.hasPrefix(Self.buffered) else { return nil }
            return mark(nil, identifier)
        case "FLUSH_MEDIA":
            forget()
            return [.clear]
        case "PAUSE_MEDIA", "CONTINUE_MEDIA":
            guard direction != .in else { return nil }
            isPaused = command.command == "PAUSE_MEDIA"
            return [.pause(isPaused)]
        case "REPORT_QUEUE_DRAINED": isDrainWanted = true
        case "GET_STATUS": isStatusWanted = true
        case "SET_MEDIA_DIRECTION":
            guard let wanted = command.direction.flatMap(Direction.init) else { return nil }
            direction = wanted
            stream.reset()
        // At once: who wants to be heard to the end sets a mark, and waits for it.
        case "HANGUP":
            forget()
            return [.clear, .hangUp]
        // The call is answered before the agent is told of it.
        case "ANSWER": break
        default: return nil
        }
        return []
    }

    /// Nothing waits any more, of whatever kind.
    private mutating func forget() {
        (isBuffering, isPaused) = (false, false)
        stream.reset()
    }

    private func mark(_ kind: String?, _ identifier: String?) -> [AgentRequest]? {
        let name = [kind, identifier].compactMap { $0 }.joined(separator: " ")
        return name.utf8.count <= AgentLimits.name ? [.mark(name)] : nil
    }

    /// What marks are called that end what was said in pieces.
    private static let buffered = "STOP_MEDIA_BUFFERING"
    /// So many frames of 20 ms wait when the agent is told to stop, and when it may go on.
    private static let (fullCount, roomCount) = (900, 800)
    private static let complaintLimit = 8
    /// Bytes of a command.
    private static let textLimit = 2048
}
