import CallBasics
import MediaEngine
import SDP
import SIP
import SIPTransport
import Synchronization

/// Writes down what happens to a call or a registration; first lines and addresses, nothing of what they prove or describe.
///
/// Thread: any.
final class StoryRecorder: Sendable {
    private struct State {
        var story: Story
        var start: MediaTime?
        var cause = StoryCause()
    }

    private let path: String
    private let state: Mutex<State>

    init(path: String, kind: String, parties: [String], seed: UInt64? = nil) {
        self.path = path
        var story = Story(kind: kind, parties: parties)
        story.seed = seed
        state = Mutex(State(story: story))
    }

    private func add(
        _ layer: Story.Step.Layer,
        _ what: String,
        at now: MediaTime,
        _ message: (remote: String, isSent: Bool)? = nil,
        _ detail: [(String, JSONValue)] = []
    ) {
        state.withLock { state in
            guard state.story.steps.count < Story.stepLimit else { return state.story.leftOutCount += 1 }
            let start = state.start ?? now
            if state.start == nil, state.story.seed == nil {
                let unix = MonotonicClock.wallOffset.nanoseconds &+ now.nanoseconds
                state.story.startUnixMs = max(unix / 1_000_000, 0)
            }
            state.start = start
            let time = ((now - start).milliseconds * 100).rounded() / 100
            state.story.steps.append(
                Story.Step(
                    time: time,
                    layer: layer,
                    what: what,
                    remote: message?.remote,
                    isSent: message?.isSent,
                    detail: detail
                )
            )
        }
    }

    // MARK: What comes from below

    func note(_ tapped: TappedMessage) {
        // A trace beside it may have secrets.
        let (flow, bytes) = (tapped.flow, Redaction.redacted(tapped.bytes))
        let line = String(decoding: bytes.prefix { $0 != 0x0D && $0 != 0x0A }, as: UTF8.self)
        let remote = "\(flow.transport.name)".lowercased() + " \(flow.remote)"
        var detail: [(String, JSONValue)] = [("bytes", .integer(bytes.count))]
        if let message = try? SIPMessage(datagram: bytes) {
            if let cSeq = message.first(.cSeq)?.text { detail.append(("cseq", .string(cSeq))) }
            if let callID = message.callID?.text { detail.append(("callID", .string(callID))) }
            if let reason = message.first(.reason)?.text { detail.append(("reason", .string(reason))) }
            state.withLock { $0.cause.note(message, isSent: tapped.isSent, remote) }
        }
        add(.transaction, line, at: tapped.time, (remote, tapped.isSent), detail)
    }

    func note(_ step: EndpointStep, at now: MediaTime) {
        switch step {
        case .asked(let question):
            add(.dns, "\(question.kind)", at: now, nil, [("name", .string("\(question.name)"))])
        case .answered(let answer, let question):
            let (words, isFailure) = Self.words(answer)
            let detail: [(String, JSONValue)] = [
                ("name", .string("\(question.name)")), ("answer", .string(words)),
            ]
            if isFailure { state.withLock { $0.cause.note("dns: \(question.name): \(words)") } }
            add(.dns, "\(question.kind) answered", at: now, nil, detail)
        case .opening(let flow): add(.flow, "opening", at: now, nil, Self.members(flow))
        case .opened(let flow): add(.flow, "open", at: now, nil, Self.members(flow))
        case .failed(let flow, let why):
            state.withLock { $0.cause.note("flow failed: \(Self.text(flow)): \(why)") }
            add(.flow, "failed", at: now, nil, Self.members(flow) + [("why", .string(why))])
        }
    }

    private static func text(_ flow: Flow) -> String { "\(flow.transport.name)".lowercased() + " \(flow.remote)" }

    private static func members(_ flow: Flow) -> [(String, JSONValue)] {
        [("to", .string(text(flow))), ("from", .string("\(flow.local)"))]
    }

    /// What an answer says, and whether nothing can come of it.
    ///
    /// That a name has no record of a kind is usual.
    private static func words(_ answer: DNSAnswer) -> (String, isFailure: Bool) {
        switch answer {
        case .records(let records): (English.count(records.count, "record"), false)
        case .noSuchName: ("no such name", true)
        case .noData: ("no record of that kind", false)
        case .failure: ("the name server failed", true)
        case .timeout: ("no name server answered", true)
        }
    }

    // MARK: What the agent tells

    func note(_ event: AgentEvent, at now: MediaTime) {
        switch event {
        case .targets(_, let targets):
            let names = targets.map { JSONValue.string(SIPParty.text($0.transport, $0.address)) }
            add(.dns, "targets", at: now, nil, [("targets", .array(names))])
        case .agreed(_, let session):
            let media = session.audio
            add(
                .offer,
                "agreed",
                at: now,
                nil,
                [
                    ("codec", JSONValue(media?.sending.codecs.first?.encodingName)),
                    ("direction", JSONValue(media?.direction.rawValue)),
                    ("remoteMedia", JSONValue(media?.remote.map { "\($0.host):\($0.port)" })),
                ]
            )
        case .established: add(.dialog, "established", at: now)
        case .changeRefused(_, let status): add(.offer, "change refused", at: now, nil, [("code", .integer(status))])
        case .transfer(_, let progress): add(.dialog, "transfer \(progress)", at: now)
        case .ended(_, let end): add(.dialog, "ended by \(end.sideName)", at: now)
        case .registration(_, let state, _): add(.dialog, "registration \(state)", at: now)
        default: break
        }
    }

    /// The network has changed, or is taken for gone or back.
    func noteNetwork(_ change: String, from: String, to: String?, at now: MediaTime) {
        add(.network, change, at: now, nil, [("from", .string(from)), ("to", JSONValue(to))])
    }

    /// What became of the sound.
    func note(_ media: CallReport?, at now: MediaTime) {
        guard let media, let leg = media.legs.first else { return }
        add(
            .media,
            "report",
            at: now,
            nil,
            [
                ("codec", .string(media.codec)), ("sent", .integer(leg.sent.packets)),
                ("received", .integer(leg.received.packets)), ("lost", .integer(leg.received.lost)),
            ]
        )
    }

    // MARK: The end

    /// Writes the file.
    ///
    /// - Throws: `ToolFailure` when it cannot be written
    func finish(callID: String?, status: String, code: Int?, reason: String, failure: String?) throws {
        let story = state.withLock { state in
            state.story.callID = callID
            let cause = status == "ok" ? nil : state.cause.first ?? failure
            state.story.outcome = Story.Outcome(status: status, code: code, reason: reason, because: cause)
            return state.story
        }
        try TextFile.write(story.json.text + "\n", to: path)
    }
}

/// The first thing that went wrong, where later ones are its consequences.
struct StoryCause: Sendable {
    private var trouble: String?
    private var challenge: String?
    private var firstRequest: String?
    private var hasAnswer = false

    mutating func note(_ text: String) { trouble = trouble ?? text }

    mutating func note(_ message: SIPMessage, isSent: Bool, _ remote: String) {
        guard let status = message.statusCode else {
            if isSent { firstRequest = firstRequest ?? "\(message.method?.name ?? "request") to \(remote)" }
            return
        }
        hasAnswer = hasAnswer || !isSent
        guard status >= 300 else {
            // Whoever is let in has answered the challenge.
            if status >= 200 { challenge = nil }
            return
        }
        let words = "\(status) \(message.reasonPhrase) \(isSent ? "to" : "from") \(remote)"
        if status == 401 || status == 407 { challenge = words } else { note(words) }
    }

    var first: String? {
        trouble ?? challenge ?? (hasAnswer ? nil : firstRequest.map { "nothing answered the \($0)" })
    }
}
