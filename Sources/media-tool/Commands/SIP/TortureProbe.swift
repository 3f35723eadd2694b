import CallBasics
import SIP

/// Sends messages to a peer, one after the other, and sees what it answers, and whether it lives on.
///
///     OPTIONS, three times at most ──► is there at all
///     message ──► its final answer, or none in time ──► OPTIONS, three times at most ──► the next message
///
/// By TCP each message has a connection of its own, which the peer may close.
struct TortureProbe: SIPElement {
    struct Event: Sendable {
        /// Which message it is about; -1 for the question before all.
        let index: Int
        /// The status of the final answer; nil when none came.
        let status: Int?
        let delay: Duration
        /// Whether the peer answered a question behind it.
        let isAlive: Bool
    }

    struct Item: Sendable {
        let bytes: [UInt8]
        /// Whether its answer is waited for.
        let isWaitedFor: Bool
        private let callID: String?

        init(_ bytes: [UInt8], isWaitedFor: Bool) {
            (self.bytes, self.isWaitedFor) = (bytes, isWaitedFor)
            callID = (try? SIPMessage(datagram: bytes))?.callID?.text
        }

        /// Whether a response may be the answer; anything may be where the message has no Call-ID that can be read.
        func isAnswered(by response: SIPMessage) -> Bool { callID == nil || response.callID?.text == callID }
    }

    private enum Stage {
        /// The message, or the question behind it, waits for a connection.
        case opening(isQuestion: Bool)
        case waiting(since: MediaTime)
        case asking(callID: String)
        case over
    }

    /// How long an answer is waited for, and that to a question.
    private let patience: Duration
    private static let questionPatience = Duration.milliseconds(500)
    private static let questionLimit = 3

    private let items: [Item]
    private let peer: SocketAddress
    private let transport: Flow.Transport
    private var local: SocketAddress?
    private var flow: Flow?
    private var framer = StreamFramer()
    private var index = -1
    private var questionCount = 0
    private var stage = Stage.over
    private var answer: (status: Int, delay: Duration)?
    private var outputs: [ElementOutput<Event>] = []
    private(set) var deadline: MediaTime?

    init(_ items: [Item], to peer: SocketAddress, by transport: Flow.Transport, patience: Duration) {
        (self.items, self.peer, self.transport, self.patience) = (items, peer, transport, patience)
    }

    mutating func poll() -> ElementOutput<Event>? { outputs.isEmpty ? nil : outputs.removeFirst() }

    mutating func setLocalAddresses(_ addresses: [SocketAddress], of transport: Flow.Transport, at _: MediaTime) {
        if transport == self.transport { local = addresses.first }
    }

    /// Answers to what came over UDP come by UDP; nobody else is expected.
    mutating func accept(_: Flow.Transport, local _: SocketAddress, remote _: SocketAddress, at _: MediaTime) -> Flow? {
        nil
    }

    /// Asks whether the peer is there, and sends message after message.
    mutating func begin(at now: MediaTime) { ask(at: now) }

    mutating func handle(_ input: ElementInput, at now: MediaTime) {
        switch input {
        case .opened(let flow) where flow == self.flow: send(at: now)
        case .failed(let flow) where flow == self.flow: handleLoss(at: now)
        case .bytes(let bytes, let flow) where flow == self.flow:
            framer.append(bytes)
            while let element = framer.next() {
                if case .message(let message) = element { receive(message, at: now) }
            }
        case .datagram(let bytes, _, let remote) where remote.host == peer.host:
            if let message = try? SIPMessage(datagram: bytes) { receive(message, at: now) }
        case .timeout: handleTimeout(at: now)
        default: break
        }
    }

    private mutating func beginItem(at now: MediaTime) {
        guard index < items.count else {
            (stage, deadline) = (.over, nil)
            return
        }
        (answer, questionCount) = (nil, 0)
        open(isQuestion: false, at: now)
    }

    private mutating func open(isQuestion: Bool, at now: MediaTime) {
        guard let local else { return }
        stage = .opening(isQuestion: isQuestion)
        if transport == .udp {
            flow = Flow(.udp, local: local, remote: peer)
            return send(at: now)
        }
        if let flow { outputs.append(.close(flow)) }
        let next = Flow(transport, local: local, remote: peer, number: (flow?.number ?? 0) + 1)
        (flow, framer) = (next, StreamFramer())
        outputs.append(.open(next, tlsName: nil))
        deadline = now + patience
    }

    private mutating func send(at now: MediaTime) {
        guard let flow, case .opening(let isQuestion) = stage else { return }
        if isQuestion {
            let callID = "alive-\(index)-\(questionCount)"
            stage = .asking(callID: callID)
            deadline = now + Self.questionPatience
            outputs.append(.send(question(callID, on: flow), flow))
        } else {
            stage = .waiting(since: now)
            deadline = items[index].isWaitedFor ? now + patience : now
            outputs.append(.send(items[index].bytes, flow))
        }
    }

    private mutating func receive(_ message: SIPMessage, at now: MediaTime) {
        guard let status = message.statusCode, status >= 200 else { return }
        switch stage {
        case .waiting(let start):
            guard items[index].isAnswered(by: message), message.callID?.text.hasPrefix("alive-") != true else { return }
            answer = (status, now - start)
            ask(at: now)
        case .asking(let callID): if message.callID?.text == callID { finish(isAlive: true, at: now) }
        case .opening, .over: break
        }
    }

    private mutating func ask(at now: MediaTime) {
        guard questionCount < Self.questionLimit else { return finish(isAlive: false, at: now) }
        questionCount += 1
        open(isQuestion: true, at: now)
    }

    /// The peer has closed the connection, or refused it.
    private mutating func handleLoss(at now: MediaTime) {
        switch stage {
        case .waiting: ask(at: now)
        case .opening, .asking:
            // A peer that refuses now may take connections in a moment.
            deadline = now + Self.questionPatience
        case .over: break
        }
    }

    private mutating func handleTimeout(at now: MediaTime) {
        guard let deadline, deadline <= now else { return }
        self.deadline = nil
        if case .over = stage { return }
        ask(at: now)
    }

    private mutating func finish(isAlive: Bool, at now: MediaTime) {
        let event = Event(index: index, status: answer?.status, delay: answer?.delay ?? .zero, isAlive: isAlive)
        outputs.append(.event(event))
        index += 1
        beginItem(at: now)
    }

    private func question(_ callID: String, on flow: Flow) -> [UInt8] {
        let host = { (address: SocketAddress) in "\(address)" }
        let name = transport == .udp ? "UDP" : "TCP"
        let lines = [
            "OPTIONS sip:\(host(peer)) SIP/2.0",
            "Via: SIP/2.0/\(name) \(host(flow.local));branch=z9hG4bK\(callID);rport",
            "Max-Forwards: 70", "From: <sip:\(host(flow.local))>;tag=\(callID)", "To: <sip:\(host(peer))>",
            "Call-ID: \(callID)", "CSeq: 1 OPTIONS", "Contact: <sip:\(host(flow.local))>", "Content-Length: 0", "", "",
        ]
        return Array(lines.joined(separator: "\r\n").utf8)
    }
}
