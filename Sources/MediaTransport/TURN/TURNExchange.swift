import CallBasics
import Cryptography
import MediaEngine

/// Requests to a server of TURN, each until it is answered: signed as the server wishes, sent again while it is silent.
///
///     ask ──► request ──► 401 realm, nonce ──► signed request ──► success, or a failure that ends it
///                           438 new nonce ──► signed anew, however often
///
/// Requests go beside each other, some at a time, but for those whose nonce was old: of these one at a time, since a server may want
/// a new one each time.
/// Source: RFC 8656, section 5; RFC 8489, sections 6.2.1 and 9.2.
struct TURNExchange: Sendable {
    /// What is asked for.
    enum Purpose: Hashable, Sendable {
        case allocate
        /// To have it for longer; for 0 s to give it back.
        case refresh(seconds: UInt32)
        /// That a host, whatever its port, may send to the relayed address.
        case permit(SocketAddress)
        case bind(SocketAddress, channel: UInt16)

        var method: STUNMessage.Method {
            switch self {
            case .allocate: .allocate
            case .refresh: .refresh
            case .permit: .createPermission
            case .bind: .channelBind
            }
        }
    }

    /// What a request has come to.
    enum Outcome {
        case success(Purpose, STUNMessage)
        case failure(Purpose, TURNError, STUNMessage?)
    }

    private struct Request: Sendable {
        let purpose: Purpose
        let transaction: STUNMessage.Transaction
        let bytes: [UInt8]
        /// What it is signed with; nil for one that is not.
        let nonce: [UInt8]?
        /// How often the password was refused.
        let refusalCount: Int
        /// Whether its nonce was old before.
        let isAgain: Bool
        /// When it is sent again, or given up.
        var time: MediaTime
        var pause: Duration
        var sendsLeft: Int
    }

    private let (user, password): (String, String)
    private let isIPv4: Bool
    private let isReliable: Bool
    private var generator: any RandomNumberGenerator & Sendable
    private var realm: [UInt8] = []
    private var key: STUNKey?
    private var nonce: [UInt8]?
    private var requests: [Request] = []
    /// What waits: for others to be answered, or to be asked again by the newest nonce.
    private var waiting: [(purpose: Purpose, refusalCount: Int, isAgain: Bool)] = []
    private var leaving: [[UInt8]] = []
    /// What transactions begin with, by which the media thread knows their answers.
    let tag: UInt32

    /// Requests of `user`, for an address of IPv4 or of IPv6; over a connection each is sent once (`isReliable`).
    init(
        _ user: String,
        _ password: String,
        isIPv4: Bool,
        isReliable: Bool = false,
        _ generator: some RandomNumberGenerator & Sendable
    ) {
        (self.user, self.password, self.isIPv4, self.isReliable) = (user, password, isIPv4, isReliable)
        self.generator = generator
        tag = self.generator.next()
    }

    /// When `advance` has something to do.
    var next: MediaTime? { requests.map(\.time).min() }

    /// Whether something is asked for that has not been answered.
    private func isAsking(for purpose: Purpose) -> Bool {
        requests.contains { $0.purpose == purpose } || waiting.contains { $0.purpose == purpose }
    }

    mutating func ask(for purpose: Purpose, at now: MediaTime) {
        guard !isAsking(for: purpose) else { return }
        // What the way in use needs goes before what others may.
        if case .permit = purpose {
            waiting.append((purpose, 0, false))
        } else {
            waiting.insert((purpose, 0, false), at: 0)
        }
        sendWaiting(at: now)
    }

    /// Forgets what was asked for.
    mutating func cease() { (requests, waiting) = ([], []) }

    /// Forgets who waits to be let through.
    mutating func ceasePermits() {
        waiting.removeAll { if case .permit = $0.purpose { true } else { false } }
    }

    /// Whether the server has said what requests are signed with.
    var isSigned: Bool { key != nil }

    /// Whether everything has been answered, or given up.
    var isIdle: Bool { requests.isEmpty && waiting.isEmpty }

    /// A new one, by which the media thread knows what comes back.
    mutating func transaction() -> STUNMessage.Transaction {
        STUNMessage.Transaction(high: tag, low: generator.next())
    }

    /// Asks for what waits, as much as may be under way.
    private mutating func sendWaiting(at now: MediaTime) {
        while requests.count < Self.limit {
            let isBusy = requests.contains(where: \.isAgain)
            guard let index = waiting.firstIndex(where: { !($0.isAgain && isBusy) }) else { return }
            let (purpose, refusalCount, isAgain) = waiting.remove(at: index)
            send(purpose, refusalCount: refusalCount, isAgain: isAgain, at: now)
        }
    }

    private mutating func send(_ purpose: Purpose, refusalCount: Int, isAgain: Bool = false, at now: MediaTime) {
        let transaction = transaction()
        var writer = STUNWriter(.request, purpose.method, transaction)
        switch purpose {
        case .allocate:
            // UDP, by its number as a protocol of IP.
            writer.append(.requestedTransport, [17, 0, 0, 0])
            if !isIPv4 { writer.append(.requestedAddressFamily, [2, 0, 0, 0]) }
        case .refresh(let seconds): writer.append(.lifetime, number: seconds)
        case .permit(let host): writer.append(.xorPeerAddress, host)
        case .bind(let peer, let channel):
            writer.append(.channelNumber, number: UInt32(channel) << 16)
            writer.append(.xorPeerAddress, peer)
        }
        if let key, let nonce {
            writer.append(.username, user)
            writer.append(.realm, realm)
            writer.append(.nonce, nonce)
            writer.sign(with: key)
        }
        let bytes = writer.finish(withFingerprint: false)
        let pause = isReliable ? Self.reliableLimit : purpose == .allocate ? Self.firstPause : Self.pause
        requests.append(
            Request(
                purpose: purpose,
                transaction: transaction,
                bytes: bytes,
                nonce: key == nil ? nil : nonce,
                refusalCount: refusalCount,
                isAgain: isAgain,
                time: now + pause,
                pause: pause,
                sendsLeft: isReliable ? 0 : Self.sendLimit - 1
            )
        )
        leaving.append(bytes)
    }

    /// Sends again what its time has come for; reports what is given up.
    mutating func advance(to now: MediaTime) -> [Outcome] {
        var lost: [Outcome] = []
        for index in requests.indices where requests[index].time <= now && requests[index].sendsLeft > 0 {
            leaving.append(requests[index].bytes)
            requests[index].sendsLeft -= 1
            requests[index].pause *= 2
            requests[index].time = now + (requests[index].sendsLeft > 0 ? requests[index].pause : Self.lastPause)
        }
        requests.removeAll { request in
            guard request.time <= now else { return false }
            lost.append(.failure(request.purpose, .silent, nil))
            return true
        }
        sendWaiting(at: now)
        return lost
    }

    /// Takes what may be an answer; nil for one to nothing, or one that is asked for again.
    mutating func take(_ answer: STUNMessage, at now: MediaTime) -> Outcome? {
        guard answer.kind == .success || answer.kind == .failure,
            let place = requests.firstIndex(where: { $0.transaction == answer.transaction }),
            requests[place].purpose.method == answer.method, answer.hasRightFingerprint != false
        else { return nil }
        let request = requests[place]
        // What a server refuses for want of a right name, or nonce, it cannot sign.
        let code = answer.kind == .failure ? answer.error?.code : nil
        if let key, request.nonce != nil, code != 401, code != 438, !answer.isSigned(with: key) { return nil }
        requests.remove(at: place)
        defer { sendWaiting(at: now) }
        guard answer.notUnderstood.isEmpty else { return .failure(request.purpose, .malformed, answer) }
        guard answer.kind == .failure else { return .success(request.purpose, answer) }
        guard let (code, reason) = answer.error else { return .failure(request.purpose, .malformed, answer) }
        switch code {
        case 401 where !HashFunction.md5.isAvailable: return .failure(request.purpose, .noHash, answer)
        case 401:
            // Signed by a nonce that was old, it is signed once more.
            guard request.refusalCount == 0, takeRealm(answer), nonce != request.nonce else {
                return .failure(request.purpose, .unauthorized, answer)
            }
            send(request.purpose, refusalCount: request.nonce == nil ? 0 : 1, at: now)
            return nil
        case 438 where request.nonce != nil:
            guard takeRealm(answer) else { return .failure(request.purpose, .malformed, answer) }
            waiting.append((request.purpose, request.refusalCount, true))
            return nil
        default: return .failure(request.purpose, .refused(code: code, reason: reason), answer)
        }
    }

    /// Takes what requests are signed with from now on; answers false when the server has not told it.
    private mutating func takeRealm(_ answer: STUNMessage) -> Bool {
        guard let nonce = answer[.nonce], nonce.count <= Self.valueLimit, user.utf8.count <= Self.valueLimit,
            let realm = answer[.realm] ?? (self.realm.isEmpty ? nil : self.realm[...]), realm.count <= Self.valueLimit
        else { return false }
        (self.realm, self.nonce) = (Array(realm), Array(nonce))
        key = STUNKey(user: user, realm: String(decoding: realm, as: UTF8.self), password: password)
        return true
    }

    /// What is to be sent, in order, since it was asked last.
    mutating func takeDatagrams() -> [[UInt8]] {
        defer { leaving = [] }
        return leaving
    }

    /// How long an answer is waited for at first: a call waits for the first of all.
    private static let firstPause = Duration.milliseconds(150)
    private static let pause = Duration.milliseconds(500)
    private static let sendLimit = 7
    /// How long an answer is waited for where nothing that is sent is lost (RFC 8489, section 6.2.2).
    private static let reliableLimit = Duration.milliseconds(39_500)
    /// How long the last request is waited for (Rm · RTO).
    private static let lastPause = Duration.seconds(8)
    /// How many are under way at once, before others wait.
    private static let limit = 4
    /// Bytes of a name, a realm and a nonce (RFC 8489, sections 14.3, 14.9 and 14.10).
    private static let valueLimit = 763
}
