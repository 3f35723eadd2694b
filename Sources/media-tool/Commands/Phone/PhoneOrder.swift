import CallCore
internal import FoundationEssentials

/// What somebody at the phone wants, as a line of words or of JSON says it.
///
///     call sip:bob@example.test      {"action":"start","to":"sip:bob@example.test","id":1}
///     hold 2                         {"action":"setHeld","held":true,"call":2,"id":2}
struct PhoneOrder: Equatable {
    enum Kind: Equatable {
        case start(to: String)
        case answer, end
        case setHeld(Bool)
        case setMuted(Bool)
        case playDTMF(String)
        /// Takes the call and another one into the conference; nil for the one that it can only mean.
        case join(Int?)
        /// Takes the call out of it.
        case split
        /// Records the call, or the conference that it is in; nil records no longer.
        case record(String?)
        case transfer(to: String)
        /// Hands the call over to whom another one is with.
        case handOver(to: Int)
        /// Calls whom the other side asks to call, or does not.
        case follow(Bool)
        case text(String, to: String)
        /// Sends a text as soon as that is possible.
        case queue(String, to: String)
        /// Holds who talks, and resumes who is held.
        case swap
        case calls, devices
        /// What calls are over.
        case log
        case device(String)
        case volume(Double)
        /// A push has come.
        case push(PushPayload)
        /// Says whether there is a network.
        case network(isReachable: Bool)
        case help, quit
    }

    var kind: Kind
    /// The number of the call; nil for the one that it can only mean.
    var call: Int?
    /// What the outcome names; nil where nobody asked for one.
    var id: Int?

    /// What people can say.
    static let help = """
        call URI             call somebody; who talks is held
        answer [N]           answer the call that rings, or call N
        end [N]              end a call; decline one that rings
        hold [N], resume [N], swap
        mute [N], unmute [N]
        keys DIGITS [N]      send keys: 0-9 * # A-D; a comma is a pause
        join [N M]           take two calls into the conference, in which all hear each other
        split [N]            talk with a call of the conference alone
        record FILE [N]      record a call, you on the left, or the whole conference
        record off
        transfer URI [N]     have the other side call somebody else
        transfer M [N]       have the other sides of two calls talk with each other, without you
        follow [N], stay [N] call whom the other side asks you to call, or do not
        text URI WORDS...    send a text
        queue URI WORDS...   send a text as soon as that is possible, for three days
        calls                what is on, with its quality
        log                  what is over, and what was missed
        devices, device NAME, volume DB
        push JSON            take a push, as its service delivers it
        network off, network on
                             take the network for gone, and for back
        quit                 hang up, un-register, end
        """

    /// Reads a line; nil for an empty one.
    ///
    /// Throws: `PhoneOrderFault`
    init?(parsing line: String) throws(PhoneOrderFault) {
        let words = line.split(separator: " ").map(String.init)
        guard let first = words.first else { return nil }
        if first.lowercased() == "push" {
            let json = line.drop { $0 != "{" }
            guard let payload = try? JSONDecoder().decode(PushPayload.self, from: Data(json.utf8)) else {
                throw PhoneOrderFault("'push' needs what the push says. Say push {\"call-id\": \"...\"}.")
            }
            self = Self(.push(payload))
        } else if first.hasPrefix("{") {
            self = try Self(json: line)
        } else {
            self = try Self(words: words)
        }
    }

    private init(_ kind: Kind, call: Int? = nil) { (self.kind, self.call) = (kind, call) }

    private init(words: [String]) throws(PhoneOrderFault) {
        let (verb, rest) = (words[0].lowercased(), Array(words.dropFirst()))
        func number(_ index: Int) throws(PhoneOrderFault) -> Int? {
            guard rest.count <= index + 1 else { throw PhoneOrderFault("'\(verb)' takes less. Say help.") }
            return try rest.count > index ? Self.number(rest[index]) : nil
        }
        func argument(_ what: String) throws(PhoneOrderFault) -> String {
            guard let argument = rest.first else { throw PhoneOrderFault("'\(verb)' needs \(what). Say help.") }
            return argument
        }
        func alone(_ kind: Kind) throws(PhoneOrderFault) -> Self {
            guard rest.isEmpty else { throw PhoneOrderFault("'\(verb)' stands alone. Say help.") }
            return Self(kind)
        }
        switch verb {
        case "call", "dial":
            let uri = try argument("a URI")
            guard rest.count == 1 else { throw PhoneOrderFault("'\(verb)' takes one URI. Say help.") }
            self = Self(.start(to: uri))
        case "answer": self = Self(.answer, call: try number(0))
        case "end", "hangup", "decline": self = Self(.end, call: try number(0))
        case "hold": self = Self(.setHeld(true), call: try number(0))
        case "resume": self = Self(.setHeld(false), call: try number(0))
        case "mute": self = Self(.setMuted(true), call: try number(0))
        case "unmute": self = Self(.setMuted(false), call: try number(0))
        case "keys": self = Self(.playDTMF(try argument("digits")), call: try number(1))
        case "join":
            guard rest.count != 1, rest.count <= 2 else {
                throw PhoneOrderFault("'join' takes two calls. Say join 1 2.")
            }
            let first = try rest.isEmpty ? nil : Self.number(rest[0])
            self = Self(.join(try rest.isEmpty ? nil : Self.number(rest[1])), call: first)
        case "split": self = Self(.split, call: try number(0))
        case "record":
            let path = try argument("a file, or off")
            self = Self(.record(path == "off" ? nil : path), call: try number(1))
        case "transfer":
            let whom = try argument("a URI, or a call")
            self = Self(Int(whom).map { .handOver(to: $0) } ?? .transfer(to: whom), call: try number(1))
        case "follow": self = Self(.follow(true), call: try number(0))
        case "stay": self = Self(.follow(false), call: try number(0))
        case "text", "queue":
            let uri = try argument("a URI and words")
            guard rest.count > 1 else { throw PhoneOrderFault("'\(verb)' needs a URI and words. Say help.") }
            let text = rest.dropFirst().joined(separator: " ")
            self = Self(verb == "text" ? .text(text, to: uri) : .queue(text, to: uri))
        case "device": self = Self(.device(try argument("a name")))
        case "volume":
            guard let value = Double(try argument("a value in dB")), value >= -60, value <= 20 else {
                throw PhoneOrderFault("A volume is -60 to 20 dB. Say volume -6.")
            }
            self = Self(.volume(value))
        case "network":
            let word = try argument("on or off")
            guard rest.count == 1, word == "on" || word == "off" else {
                throw PhoneOrderFault("A network is on or off. Say network on.")
            }
            self = Self(.network(isReachable: word == "on"))
        case "swap": self = try alone(.swap)
        case "calls": self = try alone(.calls)
        case "log": self = try alone(.log)
        case "devices": self = try alone(.devices)
        case "help", "?": self = try alone(.help)
        case "quit", "exit": self = try alone(.quit)
        default: throw PhoneOrderFault("'\(verb)' is no word of the phone. Say help.")
        }
    }

    private static func number(_ word: String) throws(PhoneOrderFault) -> Int {
        if let number = Int(word) { return number }
        throw PhoneOrderFault("'\(word)' is no number of a call. Say calls.")
    }

    private struct Wire: Decodable {
        var action: String
        var id: Int?
        var call: Int?
        var to: String?
        var held: Bool?
        var muted: Bool?
        var digits: String?
        var with: Int?
        var file: String?
        var text: String?
        var name: String?
        var db: Double?
        var payload: PushPayload?
        var reachable: Bool?
    }

    private init(json line: String) throws(PhoneOrderFault) {
        let wire: Wire
        do { wire = try JSONDecoder().decode(Wire.self, from: Data(line.utf8)) } catch {
            throw PhoneOrderFault("The line is no action. Write {\"action\":\"answer\",\"call\":1,\"id\":1}.")
        }
        func need<Value>(_ value: Value?, _ name: String) throws(PhoneOrderFault) -> Value {
            if let value { return value }
            throw PhoneOrderFault("The action \(wire.action) needs \"\(name)\". Give it.", id: wire.id)
        }
        switch wire.action {
        case "start": kind = .start(to: try need(wire.to, "to"))
        case "answer": kind = .answer
        case "end": kind = .end
        case "setHeld": kind = .setHeld(try need(wire.held, "held"))
        case "setMuted": kind = .setMuted(try need(wire.muted, "muted"))
        case "playDTMF": kind = .playDTMF(try need(wire.digits, "digits"))
        case "setGroup": kind = wire.with.map { .join($0) } ?? .split
        case "record": kind = .record(wire.file)
        case "transfer":
            if let other = wire.with {
                kind = .handOver(to: other)
            } else {
                kind = .transfer(to: try need(wire.to, "to"))
            }
        case "acceptTransfer": kind = .follow(true)
        case "refuseTransfer": kind = .follow(false)
        case "text": kind = .text(try need(wire.text, "text"), to: try need(wire.to, "to"))
        case "queue": kind = .queue(try need(wire.text, "text"), to: try need(wire.to, "to"))
        case "swap": kind = .swap
        case "calls": kind = .calls
        case "log": kind = .log
        case "devices": kind = .devices
        case "device": kind = .device(try need(wire.name, "name"))
        case "volume":
            let value = try need(wire.db, "db")
            guard value >= -60, value <= 20 else { throw PhoneOrderFault("A volume is -60 to 20 dB.", id: wire.id) }
            kind = .volume(value)
        case "push": kind = .push(try need(wire.payload, "payload"))
        case "setNetworkReachable": kind = .network(isReachable: try need(wire.reachable, "reachable"))
        case "quit": kind = .quit
        default: throw PhoneOrderFault("There is no action \(wire.action). See media-tool help phone.", id: wire.id)
        }
        (call, id) = (wire.call, wire.id)
    }
}

/// Why a line at the phone says nothing that can be done.
struct PhoneOrderFault: Error, Equatable {
    let message: String
    let id: Int?

    init(_ message: String, id: Int? = nil) { (self.message, self.id) = (message, id) }
}
