import MediaEngine

/// What happened to one call or registration, from the first question about its name to its outcome.
///
///     {"kind":"call","callID":…,"parties":[…],"clock":"monotonic","seed":null,"startUnixMs":1700000000000,
///      "steps":[{"t":0,"layer":"dns","what":"srv",…}],"outcome":{…}}
struct Story: Sendable {
    /// One thing that happened.
    struct Step: Sendable {
        /// What it belongs to.
        enum Layer: String, Sendable, CaseIterable { case dns, flow, transaction, dialog, offer, media, network }

        /// In ms from the first step on.
        var time: Double
        var layer: Layer
        /// A word, or the first line of a message.
        var what: String
        /// Of a message the remote address; nil of what happens here.
        var remote: String?
        /// Whether a message was sent; nil of what is none.
        var isSent: Bool?
        var detail: [(String, JSONValue)] = []
    }

    /// How it ended.
    struct Outcome: Sendable {
        var status: String
        var code: Int?
        /// The value of the header Reason, or "none".
        var reason: String
        /// What went wrong first; nil when nothing did.
        var because: String?
    }

    /// More is not kept, and not read.
    static let stepLimit = 2000

    var kind: String
    var callID: String?
    var parties: [String]
    /// What all of it was drawn by, in virtual time; nil of what has happened; in JSON a string beyond 2^63.
    var seed: UInt64?
    /// When the first step was, in ms since 1970; nil in virtual time.
    var startUnixMs: Int64?
    var steps: [Step] = []
    /// Steps that found no room.
    var leftOutCount = 0
    var outcome: Outcome?

    init(kind: String, parties: [String]) { (self.kind, self.parties) = (kind, parties) }
}

extension Story {
    var json: JSONValue {
        var members: [(String, JSONValue)] = [
            ("kind", .string(kind)), ("callID", JSONValue(callID)), ("parties", JSONValue(parties)),
            ("clock", .string(seed == nil ? "monotonic" : "virtual")),
            ("seed", seed.map { seed in Int(exactly: seed).map { .integer($0) } ?? .string("\(seed)") } ?? .null),
            ("startUnixMs", startUnixMs.map { .integer(Int($0)) } ?? .null),
            ("steps", .array(steps.map(\.json))), ("leftOut", .integer(leftOutCount)),
        ]
        if let outcome {
            members.append(
                (
                    "outcome",
                    [
                        "status": .string(outcome.status), "code": outcome.code.map { .integer($0) } ?? .null,
                        "reason": .string(outcome.reason), "because": JSONValue(outcome.because),
                    ]
                )
            )
        }
        return .object(members)
    }

    /// A story as `json` writes it.
    ///
    /// - Throws: `ToolFailure` when something is not as it has to be
    init(parsing bytes: [UInt8]) throws {
        let whole: JSONValue
        do { whole = try JSONValue(parsing: bytes) } catch {
            throw ToolFailure("It is no JSON: \(error). Give what --story wrote.")
        }
        guard let kind = whole["kind"]?.string, let rows = whole["steps"]?.values, let told = whole["outcome"] else {
            throw ToolFailure("It has no kind, no steps or no outcome. Give what --story wrote.")
        }
        guard rows.count <= Self.stepLimit else {
            throw ToolFailure("It has more than \(Self.stepLimit) steps. Give what --story wrote.")
        }
        self.init(kind: kind, parties: whole["parties"]?.values?.compactMap(\.string) ?? [])
        callID = whole["callID"]?.string
        switch whole["seed"] {
        case .integer(let number): seed = UInt64(exactly: number)
        case .string(let text): seed = UInt64(text)
        default: break
        }
        startUnixMs = whole["startUnixMs"]?.number.flatMap { Int64(exactly: $0) }
            .flatMap { TraceFile.unixMilliseconds.contains($0) ? $0 : nil }
        for (index, row) in rows.enumerated() {
            guard let step = Step(row) else {
                throw ToolFailure("Step \(index + 1) has no time, no known layer or no word. Give what --story wrote.")
            }
            steps.append(step)
        }
        leftOutCount = whole["leftOut"]?.number.map { Int(min(max($0, 0), 1e9)) } ?? 0
        outcome = Outcome(
            status: told["status"]?.string ?? "unknown",
            code: told["code"]?.number.flatMap { Int(exactly: $0) },
            reason: told["reason"]?.string ?? "none",
            because: told["because"]?.string
        )
    }

    /// A line for each step, and one for how it ended.
    var lines: [String] {
        var lines = steps.map { step in
            let way = step.remote.map { " \(step.isSent == true ? "to" : "from") \($0)" } ?? ""
            let detail = step.detail.map { " \($0.0)=\($0.1.text)" }.joined()
            return "\(step.time) ms \(step.layer.rawValue): \(step.what)\(way)\(detail)"
        }
        if leftOutCount > 0 { lines.append("\(English.count(leftOutCount, "step")) more") }
        if let outcome {
            let code = outcome.code.map { " (\($0))" } ?? ""
            lines.append("ended: \(outcome.status)\(code)" + (outcome.because.map { ", because \($0)" } ?? ""))
        }
        return lines
    }

    /// Whether a file looks like a story rather than a trace of sound.
    static func isLikely(_ bytes: [UInt8]) -> Bool {
        String(decoding: bytes.prefix(64), as: UTF8.self).filter { !$0.isWhitespace }.hasPrefix(#"{"kind":"#)
    }
}

extension Story.Step {
    fileprivate var json: JSONValue {
        var members: [(String, JSONValue)] = [
            ("t", .number(time)), ("layer", .string(layer.rawValue)), ("what", .string(what)),
        ]
        if let isSent { members.append(("direction", .string(isSent ? "sent" : "received"))) }
        if let remote { members.append(("remote", .string(remote))) }
        return .object(members + [("detail", .object(detail))])
    }

    fileprivate init?(_ row: JSONValue) {
        guard let time = row["t"]?.number, time.isFinite, let layer = row["layer"]?.string.flatMap(Layer.init),
            let what = row["what"]?.string
        else { return nil }
        (self.time, self.layer, self.what) = (time, layer, what)
        remote = row["remote"]?.string
        isSent = row["direction"]?.string.map { $0 == "sent" }
        if case .object(let members)? = row["detail"] { detail = members }
    }
}
