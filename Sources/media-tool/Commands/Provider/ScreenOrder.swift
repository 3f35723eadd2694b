import CallCore
import SharedPhone
internal import FoundationEssentials

/// What somebody at a call screen wants, as words or a line of JSON say it.
///
///     answer                  {"action":"answer","uuid":"...","id":7}
///     hold UUID               {"action":"setHeld","held":true,"id":8}
///                             {"transaction":[{"action":"end","uuid":"..."},{"action":"answer","uuid":"..."}],"id":9}
struct ScreenOrder: Equatable {
    enum Step: Equatable {
        /// Calls somebody.
        case start(to: String)
        /// Does something with a call; nil is the one that it can only mean.
        case act(ProviderAction.Kind, CallUUID?)
    }

    enum Kind: Equatable {
        case steps([Step])
        case audio(isActive: Bool)
        case reset, quit
    }

    let kind: Kind
    /// What the outcome names; nil where nobody asked for one.
    var id: Int?

    /// What people can say.
    static let help = """
        call URI | answer | end | hold | resume | mute | unmute | keys DIGITS | join UUID | split, each with the UUID of its call \
        where several can be meant; activate, deactivate the sound; reset; quit
        """

    /// Reads a line; nil for an empty one.
    ///
    /// Throws: `PhoneOrderFault`
    init?(parsing line: String) throws(PhoneOrderFault) {
        if line.hasPrefix("{") {
            try self.init(json: line)
            return
        }
        let words = line.split(separator: " ").map(String.init)
        guard !words.isEmpty else { return nil }
        try self.init(words: words)
    }

    /// Reads words, as a line or a command line has them.
    ///
    /// Throws: `PhoneOrderFault`
    init(words: [String]) throws(PhoneOrderFault) {
        let (verb, rest) = (words[0].lowercased(), Array(words.dropFirst()))
        func act(_ kind: ProviderAction.Kind, after count: Int = 0) throws(PhoneOrderFault) -> Kind {
            guard rest.count <= count + 1 else { throw PhoneOrderFault("'\(verb)' takes less. Say: \(Self.help)") }
            return .steps([.act(kind, try rest.count > count ? Self.uuid(rest[count]) : nil)])
        }
        func argument(_ what: String) throws(PhoneOrderFault) -> String {
            guard let first = rest.first else { throw PhoneOrderFault("'\(verb)' needs \(what). Say: \(Self.help)") }
            return first
        }
        switch verb {
        case "call", "start": kind = .steps([.start(to: try argument("a URI"))])
        case "answer": kind = try act(.answer)
        case "end": kind = try act(.end)
        case "hold": kind = try act(.setHeld(true))
        case "resume": kind = try act(.setHeld(false))
        case "mute": kind = try act(.setMuted(true))
        case "unmute": kind = try act(.setMuted(false))
        case "keys": kind = try act(.playDTMF(try argument("digits")), after: 1)
        case "join": kind = try act(.setGroup(with: try Self.uuid(try argument("a UUID"))), after: 1)
        case "split": kind = try act(.setGroup(with: nil))
        case "activate": kind = .audio(isActive: true)
        case "deactivate": kind = .audio(isActive: false)
        case "reset": kind = .reset
        case "quit": kind = .quit
        default: throw PhoneOrderFault("'\(verb)' is no word of a call screen. Say: \(Self.help)")
        }
    }

    private static func uuid(_ word: String) throws(PhoneOrderFault) -> CallUUID {
        if let uuid = CallUUID(word) { return uuid }
        throw PhoneOrderFault("'\(word)' is no UUID of a call. See media-tool provider status.")
    }

    private struct Wire: Decodable {
        var action: String?
        var id: Int?
        var uuid: CallUUID?
        var to: String?
        var held: Bool?
        var muted: Bool?
        var digits: String?
        var with: CallUUID?
        var transaction: [Wire]?
        var audio: String?
        var reset: Bool?

        func step() throws(PhoneOrderFault) -> Step {
            func need<Value>(_ value: Value?, _ name: String) throws(PhoneOrderFault) -> Value {
                if let value { return value }
                throw PhoneOrderFault("The action \(action ?? "") needs \"\(name)\". Give it.", id: id)
            }
            switch action {
            case "start": return .start(to: try need(to, "to"))
            case "answer": return .act(.answer, uuid)
            case "end": return .act(.end, uuid)
            case "setHeld": return .act(.setHeld(try need(held, "held")), uuid)
            case "setMuted": return .act(.setMuted(try need(muted, "muted")), uuid)
            case "playDTMF": return .act(.playDTMF(try need(digits, "digits")), uuid)
            case "setGroup": return .act(.setGroup(with: with), uuid)
            default:
                throw PhoneOrderFault("There is no action \(action ?? "here"). See media-tool help provider.", id: id)
            }
        }
    }

    private init(json line: String) throws(PhoneOrderFault) {
        let wire: Wire
        do { wire = try JSONDecoder().decode(Wire.self, from: Data(line.utf8)) } catch {
            throw PhoneOrderFault("The line is no action. Write {\"action\":\"answer\",\"id\":1}.")
        }
        id = wire.id
        if wire.reset == true {
            kind = .reset
        } else if let audio = wire.audio {
            guard audio == "activate" || audio == "deactivate" else {
                throw PhoneOrderFault("\"audio\" is activate or deactivate, not \(audio).", id: wire.id)
            }
            kind = .audio(isActive: audio == "activate")
        } else if let transaction = wire.transaction {
            guard !transaction.isEmpty, transaction.count <= 16 else {
                throw PhoneOrderFault("A transaction has 1 to 16 actions.", id: wire.id)
            }
            var steps: [Step] = []
            for step in transaction { steps.append(try step.step()) }
            kind = .steps(steps)
        } else {
            kind = .steps([try wire.step()])
        }
    }
}

extension [ShownCall] {
    /// The call that a step means: the one it names, else of those that it can mean the last.
    ///
    /// Throws: `PhoneOrderFault`
    func target(of kind: ProviderAction.Kind, _ named: CallUUID?) throws(PhoneOrderFault) -> CallUUID {
        if let named { return named }
        let fitting = filter { call in
            switch kind {
            case .start: false
            case .answer: !call.isOutgoing && !call.isConnected
            case .end: true
            case .setHeld(let isHeld): call.isConnected && call.update.isHeld != isHeld
            case .setMuted(let isMuted): call.isMuted != isMuted
            case .setGroup(with: nil): call.update.isGrouped
            case .setGroup, .playDTMF: call.isConnected
            }
        }
        if let last = fitting.last { return last.call }
        throw PhoneOrderFault("There is no such call. See media-tool provider status.")
    }

    /// What a screen is to do, and with which call.
    ///
    /// Throws: `PhoneOrderFault`
    func actions(_ steps: [ScreenOrder.Step]) throws(PhoneOrderFault) -> [(call: CallUUID, kind: ProviderAction.Kind)] {
        var actions: [(call: CallUUID, kind: ProviderAction.Kind)] = []
        for step in steps {
            switch step {
            case .start(let uri): actions.append((CallUUID(), .start(to: uri)))
            case .act(let kind, let named): actions.append((try target(of: kind, named), kind))
            }
        }
        return actions
    }
}

extension ShownCall {
    var json: JSONValue {
        [
            "uuid": .string("\(call)"), "remote": .string(update.remote), "displayName": JSONValue(update.displayName),
            "outgoing": .bool(isOutgoing), "connected": .bool(isConnected), "held": .bool(update.isHeld),
            "grouped": .bool(update.isGrouped), "muted": .bool(isMuted), "hasVideo": .bool(update.hasVideo),
            "placeholder": .bool(update.isPlaceholder),
        ]
    }

    var text: String {
        let state = update.isHeld ? "held" : isConnected ? "talking" : isOutgoing ? "calling" : "ringing"
        return "\(call): \(update.remote.printable), \(state)\(isMuted ? ", muted" : "")\n"
    }
}

extension ProviderAction.Kind {
    /// As lines name it.
    var word: String {
        switch self {
        case .start: "start"
        case .answer: "answer"
        case .end: "end"
        case .setHeld: "setHeld"
        case .setGroup: "setGroup"
        case .setMuted: "setMuted"
        case .playDTMF: "playDTMF"
        }
    }
}

extension ActionOutcome {
    /// As lines have it: `fulfilled` or `failed`.
    var word: String { self == .fulfilled ? "fulfilled" : "failed" }

    /// Why it failed; nil when it has not.
    var fault: String? { if case .failed(let fault) = self { fault.rawValue } else { nil } }
}
