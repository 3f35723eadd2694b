import CallBasics
import Testing

@testable import SIP

/// One party of a recorded flow, played by our agent or server, while all others say what is recorded.
///
///     step to our party     recorded ── names of ours in the place of recorded ones ──► element
///     step of our party     element ──► what it has sent is like what is recorded, and its names stand for those
///
/// Names are Call-IDs, tags, and the addresses of Contacts and Routes. A connection is there as soon as it is asked for, and
/// nothing is under way: time goes on between the steps only.
struct FlowReplay<Element: SIPElement> {
    var element: Element
    let party: String
    private(set) var now = MediaTime.zero
    /// What the element told since somebody took it.
    var events: [Element.Event] = []
    /// The own address, without port.
    private(set) var host: String
    let transports: [Flow.Transport]
    private(set) var flow: RecordedFlow
    var places: FlowPlaces
    /// Names as they are recorded, with what stands for them.
    var words = FlowWords()
    /// What our party has sent, and nobody has looked at.
    private var waiting: [(message: SIPMessage, flow: Flow)] = []
    private var known: Set<[UInt8]> = []
    /// How often a message has left once more.
    private(set) var repeatCount = 0
    /// Requests of our party, as recorded and as they are.
    private var pairs: [(recorded: SIPMessage, live: SIPMessage, flow: Flow)] = []
    private var connections: [Flow] = []
    /// What others answer our challenges with.
    private var digest: DigestClient
    private var challenge: SIPMessage?
    private var generator = SecretGenerator(seed: 1)

    /// What a step of our party may have that differs from what is recorded, and why.
    typealias Differences = [String: String]

    init(
        _ element: Element,
        as party: String,
        in flow: RecordedFlow,
        _ transports: [Flow.Transport],
        _ credentials: Credentials
    ) {
        (self.element, self.party, self.flow, self.transports) = (element, party, flow, transports)
        digest = DigestClient(credentials: [credentials])
        places = FlowPlaces(flow.folder, flow.section)
        host = places.address(of: party)
        move(to: host)
        begin(flow)
    }

    /// Goes on with another flow.
    mutating func begin(_ next: RecordedFlow) {
        (flow, places, pairs) = (next, FlowPlaces(next.folder, next.section), [])
        words.forgetNumbers()
        for tag in next.tags { words.set(tag: tag.recorded, of: tag.callID, to: tag.live) }
    }

    /// The steps in which our party takes part.
    var ownSteps: [RecordedFlow.Step] { flow.steps.filter { $0.from == party || $0.to == party } }

    // MARK: Steps

    /// Gives the element what another party sends.
    mutating func give(_ step: RecordedFlow.Step) throws {
        now = now + .milliseconds(5)
        let filled = try filled(step)
        if filled.method != nil { return try give(request: filled, of: step) }
        let number = try filled.cSeq()
        let pair = try #require(
            pairs.last { try $0.recorded.callID == filled.callID && $0.recorded.cSeq() == number },
            "\(step.name) answers nothing that was sent."
        )
        let response = try words.translate(response: filled, to: pair.live)
        receive(response.bytes, on: pair.flow)
    }

    /// Takes what our party has sent, which is to be like a step.
    mutating func expect(_ step: RecordedFlow.Step, but allowed: Differences) throws {
        let filled = try filled(step)
        // Of 100s, the others are not shown.
        let place =
            waiting.indices.reversed().first { waiting[$0].message.isLike(filled) && filled.statusCode == 100 }
            ?? waiting.firstIndex { $0.message.isLike(filled) }
        let (live, way) = waiting.remove(at: try #require(place, "\(step.name) was not sent, but \(waitingLines)."))
        var found = try words.learn(filled, live, at: host)
        if !(places.parties[step.to] ?? []).contains(way.remote.host) { found["way"] = "it goes to \(way.remote)" }
        if let via = try filled.topVia(), via.transport.text != "\(way.transport.name)" {
            found["transport"] = "\(way.transport.name)"
        }
        if Element.self is SIPServer.Type, live.body != filled.body { found["body"] = "it is another one" }
        for (topic, what) in found where allowed[topic] == nil { Issue.record("\(step.name), \(topic): \(what)") }
        for topic in allowed.keys where found[topic] == nil {
            Issue.record("\(step.name), \(topic): it does not differ any more.")
        }
        if live.method != nil { pairs.append((filled, live, way)) }
        if live.statusCode == 401 || live.statusCode == 407 { challenge = live }
    }

    /// Our party has sent nothing that the flow does not show, but for 100s, by which each hop may stop repeats.
    func expectNothingElse() {
        #expect(waiting.allSatisfy { $0.message.statusCode == 100 }, "The flow does not show \(waitingLines).")
    }

    private var waitingLines: [String] { waiting.map { String($0.message.description.prefix { $0 != "\r\n" }) } }

    /// A step with all that a message needs, also where its document leaves it out.
    private func filled(_ step: RecordedFlow.Step) throws -> SIPMessage {
        var message = step.message
        let cSeq = try #require(try message.cSeq(), "\(step.name) has no CSeq.")
        if message.method != nil, message.first(.via) == nil, step.to == party {
            let via = Via(
                transport: Bytes("\(transports[0].name)"),
                host: Bytes(places.address(of: step.from)),
                port: nil,
                branch: Bytes("z9hG4bK\(message.callID?.text.prefix { $0 != "@" } ?? "")")
            )
            try message.prepend(.via, via)
        }
        let isOfInvite = cSeq.method == .invite && (message.method != nil || 200..<300 ~= message.statusCode ?? 0)
        if flow.folder != "rfc3665", isOfInvite, message.body.isEmpty {
            try message.set(.contentType, to: Bytes("application/sdp"))
            let lines = [
                "v=0", "o=- 1 1 IN IP4 192.0.2.9", "s=-", "c=IN IP4 192.0.2.9", "t=0 0", "m=audio 49172 RTP/AVP 0",
            ]
            message.setBody(Array(lines.map { $0 + "\r\n" }.joined().utf8))
        }
        return message
    }

    private mutating func give(request recorded: SIPMessage, of step: RecordedFlow.Step) throws {
        var request = try words.translate(request: recorded)
        let isProved = recorded.count(of: .authorization) + recorded.count(of: .proxyAuthorization) > 0
        request.remove(.authorization)
        request.remove(.proxyAuthorization)
        if isProved, let asked = challenge.take() {
            var attempt = DigestAttempt()
            _ = try digest.answer(asked, to: &request, &attempt, using: &generator)
        } else if isProved {
            try digest.authorize(&request, using: &generator)
        }
        let via = try #require(try request.topVia())
        let source = places.hosts[via.host.text] ?? via.host.text
        let transport = try #require(transports.first { "\($0.name)" == via.transport.text }, "\(step.name): \(via)")
        #expect((places.parties[step.from] ?? []).contains(source), "\(step.name) comes from \(source).")
        receive(request.bytes, on: try connection(transport, from: source))
    }

    // MARK: Sockets, names, time

    /// The own party has another address from now on.
    mutating func move(to host: String) {
        self.host = host
        let now = now
        for transport in transports {
            guard let address = SocketAddress(host: host, port: transport.defaultPort) else { continue }
            element.setLocalAddresses([address], of: transport, at: now)
        }
        carry()
    }

    /// Lets the element do something.
    @discardableResult
    mutating func with<Result>(_ body: (inout Element, MediaTime) throws -> Result) rethrows -> Result {
        let result = try body(&element, now)
        carry()
        return result
    }

    mutating func run(for duration: Duration) {
        let end = now + duration
        while let next = element.deadline, next <= end {
            now = max(now, next)
            element.handle(.timeout, at: now)
            carry()
        }
        now = end
    }

    /// Forgets what was sent without being looked at.
    mutating func dropWaiting() { waiting = [] }

    private mutating func receive(_ bytes: [UInt8], on flow: Flow) {
        if flow.transport == .udp {
            element.handle(.datagram(bytes, local: flow.local, remote: flow.remote), at: now)
        } else {
            element.handle(.bytes(bytes, flow), at: now)
        }
        carry()
    }

    /// The way by which somebody's request comes: the connection that there is, or another one.
    private mutating func connection(_ transport: Flow.Transport, from source: String) throws -> Flow {
        let local = try #require(SocketAddress(host: host, port: transport.defaultPort))
        let remote = try #require(SocketAddress(host: source, port: transport.defaultPort), "\(source) is no address.")
        guard transport != .udp else { return Flow(.udp, local: local, remote: remote) }
        if let known = connections.last(where: { $0.transport == transport && $0.remote.host == source }) {
            return known
        }
        let made = element.accept(transport, local: local, remote: remote.with(port: 40_000), at: now)
        let accepted = try #require(made)
        connections.append(accepted)
        return accepted
    }

    private mutating func carry() {
        while let output = element.poll() {
            switch output {
            case .open(let flow, _):
                connections.append(flow)
                element.handle(.opened(flow), at: now)
            case .send(let bytes, let flow):
                guard bytes.count > 4 else { continue }
                guard known.insert(bytes).inserted else {
                    repeatCount += 1
                    continue
                }
                do { waiting.append((try SIPMessage(datagram: bytes).validated(), flow)) } catch {
                    Issue.record("What was sent cannot be read: \(error)")
                }
            case .close(let flow): connections.removeAll { $0 == flow }
            case .ask(let question): element.handle(.answer(answer(to: question), to: question), at: now)
            case .event(let event): events.append(event)
            }
        }
    }

    private func answer(to question: DNSQuestion) -> DNSAnswer {
        guard let address = places.hosts.first(where: { DNSName($0.key) == question.name })?.value else {
            return .noSuchName(nil)
        }
        guard question.kind == .a, let found = SocketAddress(host: address, port: 0) else { return .noData(nil) }
        return .records([DNSRecord(question.name, seconds: 3600, .address(found))])
    }
}

extension SIPMessage {
    /// Whether both are requests of a method, or responses of a status to such.
    fileprivate func isLike(_ other: SIPMessage) -> Bool {
        guard let status = other.statusCode else { return method == other.method }
        return statusCode == status && (try? cSeq()?.method == other.cSeq()?.method) == true
    }
}
